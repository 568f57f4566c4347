"""What the loop's stages need of the outside, one small protocol each; bootstrap puts real parts behind them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Protocol

from oomrl.domain.account import SessionRecord
from oomrl.domain.capital import Capital
from oomrl.domain.deployment import Watched
from oomrl.domain.ledger import Entry
from oomrl.domain.loss import Loss
from oomrl.domain.market import Session
from oomrl.domain.records import (
    CapitalEvent,
    Deployment,
    DeploymentKind,
    Proposal,
    Review,
    StoredDiagnostic,
    StoredVerdict,
)
from oomrl.domain.trading import Decision
from oomrl.errors import StrategyFailure
from oomrl.judging import Judge
from oomrl.ports import StrategyWorker


@dataclass(frozen=True, slots=True)
class Waiting:
    """A repair cannot go on before someone acts: on what (a prompt, a review, a qualification), and which one.

    A "window" opens by itself as sessions pass.
    """

    what: str
    subject: str


@dataclass(frozen=True, slots=True)
class Planned:
    """What was decided after a close: the decision (None when none was due), and the failure that took its place.

    `rested` says that the service decided for the strategy, which gives up open plans.
    """

    decision: Decision | None
    failure: StrategyFailure | None = None
    rested: bool = False


class Facts(Protocol):
    """The store, in the loop's words. Writing the same fact twice changes nothing."""

    def progress(self) -> tuple[date, date]:
        """Return the last session that was closed and the last after which trading was done (date.min: none)."""
        ...

    def deployments(self, day: date | None = None) -> Sequence[Deployment]:
        """Return all deployments, or those of one day, oldest first; the first is the start."""
        ...

    def flows(self, day: date) -> Sequence[Entry]:
        """Return the endowments and model bills to book on a day: those booked then, or what is due now."""
        ...

    def capital_events(self, day: date) -> Sequence[CapitalEvent]:
        """Return what persons did to the capital after a day's close, oldest first."""
        ...

    def news(self, day: date) -> tuple[Sequence[CapitalEvent], Sequence[Deployment]]:
        """Return what persons did while this run went on; it takes effect after the close of `day`, and is dated so."""
        ...

    def planned(self, day: date) -> Planned:
        """Return what was decided after a day's close."""
        ...

    def verify(self, record: SessionRecord) -> None:
        """Raise `Halt` where a session folded again differs from what was stored of it."""
        ...

    def save_close(self, record: SessionRecord, session: Session, judge: Judge, loss: Loss | None) -> None:
        """Store a close with the capital and the reward that the judge reads off it, and the loss it completes."""
        ...

    def save_trade(
        self, day: date, revision: str, planned: Planned, record: SessionRecord, loss: Loss | None
    ) -> None: ...

    def diagnosed(self, loss: Loss) -> bool: ...

    def save_diagnostic(self, diagnostic: StoredDiagnostic) -> None: ...

    def save_mandate(self, diagnostic: StoredDiagnostic) -> None:
        """Write what the analyst asks for."""
        ...

    def open_diagnostics(self) -> Sequence[StoredDiagnostic]: ...

    def end_diagnostic(self, diagnostic: StoredDiagnostic, status: str) -> None: ...

    def proposal(self, diagnostic: StoredDiagnostic, attempt: int) -> Proposal | None: ...

    def save_proposal(self, proposal: Proposal) -> None: ...

    def verdict(self, proposal: Proposal) -> StoredVerdict | None: ...

    def save_verdict(self, proposal: Proposal, verdict: StoredVerdict) -> None: ...

    def save_review(self, review: Review) -> None: ...

    def watched(self) -> Watched | None:
        """Return the deployment that tripwires watch, with what its replay promised; None after a rollback."""
        ...

    def save_deployment(
        self, kind: DeploymentKind, commit: Callable[[], str | None], base: str, day: date, proposal: str, reason: str
    ) -> Deployment | None:
        """Store the deployment of what `commit` returns, which nobody's act comes between; None where that is None."""
        ...

    def save_capital_event(self, event: CapitalEvent) -> None: ...


class Strategies(Protocol):
    """The deployment repository and the workers that run its revisions."""

    def cadence(self, revision: str) -> str: ...

    def start(self, revision: str) -> StrategyWorker: ...

    def deploy(self, proposal: Proposal, review: Review, verdict: StoredVerdict) -> str:
        """Commit the approved tree, as the lock accepted it, and return its revision; doing it again returns the
        same. Raises `Halt` where it is another tree."""
        ...

    def rollback(self, revision: str, reason: str) -> str: ...


class Proposer(Protocol):
    """Explain losses and ask models for repairs."""

    def diagnose(self, loss: Loss, judge: Judge, revision: str) -> StoredDiagnostic: ...

    def draft(self, diagnostic: StoredDiagnostic, revision: str) -> StoredDiagnostic | Waiting:
        """Return the diagnostic with the analyst's mandate, where there is an analyst and nobody else has spoken."""
        ...

    def propose(self, diagnostic: StoredDiagnostic, attempt: int, revision: str) -> Proposal | Waiting: ...

    def criticise(self, diagnostic: StoredDiagnostic, proposal: Proposal) -> Waiting | None:
        """Have a proposal attacked for its reviewer; return what that waits for."""
        ...


class Gate(Protocol):
    """Judge a proposal with nothing later than a day."""

    def judge(self, proposal: Proposal, today: date) -> StoredVerdict: ...


class Reviewer(Protocol):
    """Say what was decided about a proposal that passed, or what it waits for: a person, or a window."""

    def review(self, proposal: Proposal, verdict: StoredVerdict, revision: str) -> Review | Waiting:
        """Return the act that counts now, with `revision` deployed: an approval of anything else is void."""
        ...


class Watcher(Protocol):
    """Hear of everything that happens, for a person to see."""

    def closed(self, record: SessionRecord, capital: Capital, loss: Loss | None) -> None: ...

    def diagnosed(self, loss: Loss, diagnostic: StoredDiagnostic) -> None: ...

    def proposed(self, proposal: Proposal) -> None: ...

    def judged(self, proposal: Proposal, verdict: StoredVerdict) -> None: ...

    def deployed(self, deployment: Deployment) -> None: ...
