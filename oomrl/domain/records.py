"""What the store keeps of a run, as frozen records: one class a noun, values only, no way to reach a
database.

Times are aware UTC instants given by the caller's clock (virtual in simulation, so that the same seed writes
the same bytes). Identities are deterministic strings, so that writing the same thing twice changes nothing.

Long by nature: it is a table of nouns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any

from oomrl.domain.ledger import Entry
from oomrl.domain.market import Session
from oomrl.domain.trading import Decision, Execution, Orders, UnfilledCause

Json = Mapping[str, object]


class RunStatus(StrEnum):
    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Run:
    """One account's life: a simulation, a replay, a live or paper account. `id` is unique in its state
    directory.
    """

    id: str
    kind: str
    settings: Json
    seed: int
    tape_digest: str
    started_at: datetime
    status: RunStatus = RunStatus.RUNNING
    result: Json | None = None


@dataclass(frozen=True, slots=True)
class Mark:
    """One close, valued. Dollars are whole cents; returns, turnover and reward are plain fractions.

    `cash` is the economic book's cash, `broker_cash` the broker's; `flow` the endowments of the day; `parts`
    the decomposition of `pnl` by line (dollars); `turnover` traded value over equity; `friction` the day's
    costs in dollars; `drawdown` from the high-water mark and `principal_loss` against the endowments, both
    0..1; `reward` is Eq. 1-2 of the step, None where there was no equity before it.
    """

    day: date
    equity: Decimal
    cash: Decimal
    broker_cash: Decimal
    pnl: Decimal
    flow: Decimal = Decimal(0)
    benchmark: float | None = None
    drawdown: float = 0.0
    principal_loss: float = 0.0
    reward: float | None = None
    parts: Mapping[str, Decimal] = field(default_factory=dict)
    turnover: float = 0.0
    friction: Decimal = Decimal(0)
    state: str = "trading"


@dataclass(frozen=True, slots=True)
class Decided:
    """A decision as it was taken after the close of `day` by `revision` of the strategy."""

    day: date
    revision: str
    decision: Decision


@dataclass(frozen=True, slots=True, eq=False)
class SessionRecord:
    """All that one session changes, committed in one transaction.

    `session` is the bars as sent to the worker; `execution` what happened during it to the orders of earlier
    decisions; `decided` and `orders` what was decided after its close, to be live on `live_on`; `entries` its
    lines of the ledger; `checkpoint` the state from which the next session can go on (only the newest is
    kept).
    """

    mark: Mark
    session: Session | None = None
    execution: Execution | None = None
    decided: Decided | None = None
    orders: Orders | None = None
    live_on: date | None = None
    entries: Sequence[Entry] = ()
    checkpoint: Json | None = None

    @property
    def day(self) -> date:
        return self.mark.day


class OrderState(StrEnum):
    """The life of an order. `intended` is durable before the broker hears of it; the last five are final."""

    INTENDED = "intended"
    WORKING = "working"
    PARTIAL = "partial"
    FILLED = "filled"
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    REJECTED = "rejected"
    REFUSED = "refused"


#: States that no later event may leave.
FINAL_STATES = frozenset(
    {OrderState.FILLED, OrderState.EXPIRED, OrderState.CANCELLED, OrderState.REJECTED, OrderState.REFUSED}
)


@dataclass(frozen=True, slots=True)
class StoredOrder:
    """One order as the store knows it. `shares` and `unfilled` are signed (buys positive)."""

    client_order_id: str
    decided_on: date
    live_on: date | None
    symbol: str
    shares: Decimal
    limit_price: Decimal | None
    participation: float
    state: OrderState
    reason: str = ""
    attempt: int = 1
    unfilled: Decimal | None = None
    cause: UnfilledCause = UnfilledCause.NONE


@dataclass(frozen=True, slots=True)
class OrderEvent:
    """What was heard or done about one order; `sequence` counts from 1 within the order."""

    client_order_id: str
    sequence: int
    at: datetime
    kind: str
    detail: Json = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StoredFill:
    """One execution: signed shares, dollars a share, the signed cash in whole cents, its fees in whole cents."""

    client_order_id: str
    sequence: int
    day: date
    symbol: str
    shares: Decimal
    price: Decimal
    amount: Decimal
    commission: Decimal = Decimal(0)
    regulatory: Decimal = Decimal(0)
    reference: float | None = None
    open: float | None = None
    spread: float | None = None
    impact: float | None = None


@dataclass(frozen=True, slots=True)
class Loss:
    """A loss that crossed a threshold: which measure, how far, against what."""

    id: str
    run: str
    day: date
    level: str
    measure: str
    value: float
    threshold: float
    at: datetime
    detail: Json = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StoredDiagnostic:
    """The diagnostic of a loss: its JSON, and the mandate once someone has drafted and confirmed it."""

    id: str
    loss: str
    run: str
    day: date
    payload: Json
    at: datetime
    mandate: str = ""
    mandate_by: str = ""
    confirmed: bool = False
    status: str = "open"


class PromptStatus(StrEnum):
    PENDING = "pending"
    ANSWERED = "answered"
    FAILED = "failed"
    WITHDRAWN = "withdrawn"


@dataclass(frozen=True, slots=True)
class Prompt:
    """A question to a model and, once there, its reply and its price (`cost` in dollars, exact to 1e-8).

    `finish` is "stop", or "length" where the reply was cut off.
    """

    id: str
    run: str
    diagnostic: str
    role: str
    attempt: int
    text: str
    asked_at: datetime
    version: str = ""
    status: PromptStatus = PromptStatus.PENDING
    reply: str | None = None
    model: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: Decimal = Decimal(0)
    answered_at: datetime | None = None
    note: str = ""
    finish: str = "stop"


class ProposalStatus(StrEnum):
    PROPOSED = "proposed"
    REFUSED = "refused"
    PASSED = "passed"
    APPROVED = "approved"
    CHANGES_REQUESTED = "changes_requested"
    REJECTED = "rejected"
    DEPLOYED = "deployed"
    ESCALATED = "escalated"
    SUPERSEDED = "superseded"


@dataclass(frozen=True, slots=True)
class Proposal:
    """The ordered pair {tests patch or none, logic patch} against `base_tree`.

    `digest` names the bytes of the pair, `id` the pair as the answer to one diagnostic at one attempt;
    `author` is who proposed (a model's name or a person); `result_tree` is the digest of the tree that the
    patch gives, empty until it has been applied; `repairs` what was mended mechanically in the reply;
    `explanation` the words around the diff; an escalation has empty patches and its reason in `explanation`.
    """

    id: str
    digest: str
    run: str
    diagnostic: str
    attempt: int
    author: str
    base_revision: str
    base_tree: str
    at: datetime
    logic_patch: str = ""
    tests_patch: str = ""
    result_tree: str = ""
    explanation: str = ""
    repairs: tuple[str, ...] = ()
    prompt: str = ""
    status: ProposalStatus = ProposalStatus.PROPOSED


@dataclass(frozen=True, slots=True)
class StoredVerdict:
    """What the gate said of a proposal (by its id). `outcome` is pass, refuse or error; only pass may be
    approved.
    """

    digest: str
    proposal: str
    run: str
    outcome: str
    base_tree: str
    result_tree: str
    payload: Json
    at: datetime


def lock_steps(verdict: StoredVerdict) -> Sequence[dict[str, Any]]:
    """Return the steps of the lock's cycle as the gate took them, each as in its JSON; none in a verdict of old.

    Where tests were refused, the logic after them was not offered.
    """
    phases: Any = verdict.payload.get("phases", {})
    judged = [phase for phase in phases.values() if phase["decision"] != "pass"] or list(phases.values())[-1:]
    return judged[0].get("transitions", ()) if judged else ()


#: What a reviewer is told of new tests, by where the gate names them.
CAUTIONS = {
    "alone": "demands what no curated version of the strategy does: that it is right only its author says",
    "idle": "noticed none of the faults that the gate planted in what the new tests name",
}


def cautions(verdict: StoredVerdict) -> list[str]:
    """Return what to read with care in the new tests, a sentence each; nothing in a verdict of old."""
    return [
        f"{name} {caution}"
        for evidence in _evidence(verdict, "references")
        for kind, caution in CAUTIONS.items()
        for name in evidence.get(kind, ())
    ]


def changed_decisions(verdict: StoredVerdict) -> list[str]:
    """Return how much of what the strategy decides is other than before, a sentence for the gate's made-up markets and
    one for odd inputs, with the two decisions furthest apart. A verdict of old says less."""
    told = []
    for evidence in _evidence(verdict, "acceptance"):
        for where, found in (("in made-up markets", evidence), ("on odd inputs", evidence.get("odd") or {})):
            made, changed = found.get("decisions") or 0, found.get("changed") or 0
            most = f"; furthest apart {found['largest']}" if found.get("largest") else ""
            if changed:
                told.append(
                    f"{where} {changed} of {made} decisions are other than those of the version that trades{most}"
                )
    return told


def _evidence(verdict: StoredVerdict, name: str) -> list[dict[str, Any]]:
    """Return the evidence of a stage, in each phase that has it."""
    phases: Any = verdict.payload.get("phases", {})
    stages = [stage for phase in phases.values() for stage in phase.get("stages") or ()]
    return [stage.get("evidence") or {} for stage in stages if stage["name"] == name]


class Act(StrEnum):
    APPROVE = "approve"
    REJECT = "reject"
    REQUEST_CHANGES = "request_changes"
    #: Of one's own approval, before anything is deployed under it.
    WITHDRAW = "withdraw"


@dataclass(frozen=True, slots=True)
class Review:
    """One act of a reviewer, bound to what was looked at: base tree, result tree and verdict."""

    id: str
    proposal: str
    run: str
    reviewer: str
    act: Act
    reason: str
    base_tree: str
    result_tree: str
    verdict: str
    at: datetime


class DeploymentKind(StrEnum):
    START = "start"
    DEPLOY = "deploy"
    ROLLBACK = "rollback"


@dataclass(frozen=True, slots=True)
class Deployment:
    """A revision that took over after the close of `day`. `base` is the revision that it replaced."""

    run: str
    sequence: int
    revision: str
    base: str
    kind: DeploymentKind
    day: date
    at: datetime
    proposal: str = ""
    reason: str = ""


class CapitalKind(StrEnum):
    ENDOW = "endow"
    ENDOW_COMPUTE = "endow_compute"
    HALT = "halt"
    RESUME = "resume"
    OUT_OF_MONEY = "out_of_money"


@dataclass(frozen=True, slots=True)
class CapitalEvent:
    """One change of the right to trade. `key` is unique in its run; `amount` counts for endowments alone."""

    key: str
    run: str
    kind: CapitalKind
    day: date
    at: datetime
    amount: Decimal = Decimal(0)
    by: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class CapitalState:
    """Where the events of a run have led: may it trade, and with how much was it endowed in all."""

    endowed: Decimal = Decimal(0)
    halted: bool = False
    halt_reason: str = ""
    out_of_money: bool = False

    @property
    def may_trade(self) -> bool:
        return not self.halted and not self.out_of_money

    def after(self, event: CapitalEvent) -> CapitalState:
        """Return the state after one more event. Out of money is left by a new endowment alone, never by
        resume.
        """
        if event.kind is CapitalKind.ENDOW:
            return CapitalState(self.endowed + event.amount, self.halted, self.halt_reason, False)
        if event.kind is CapitalKind.HALT:
            return CapitalState(self.endowed, True, event.reason, self.out_of_money)
        if event.kind is CapitalKind.RESUME:
            return CapitalState(self.endowed, False, "", self.out_of_money)
        if event.kind is CapitalKind.OUT_OF_MONEY:
            return CapitalState(self.endowed, self.halted, self.halt_reason, True)
        return self


@dataclass(frozen=True, slots=True)
class StoredAttestation:
    """One link of the attestation chain; `digest` covers `previous` and the envelope."""

    sequence: int
    digest: str
    previous: str
    kind: str
    subject: str
    envelope: str
    at: datetime


class JobState(StrEnum):
    DUE = "due"
    RUNNING = "running"
    DONE = "done"
    SKIPPED = "skipped"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Job:
    """One piece of the daemon's work for one session; (run, job, session) is unique, so it is done once."""

    run: str
    job: str
    session: date
    due_at: datetime
    state: JobState = JobState.DUE
    attempts: int = 0
    started_at: datetime | None = None
    ended_at: datetime | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Lease:
    """Who leads until when. `term` grows by one with each change of holder, so that a late leader can be told."""

    name: str
    holder: str
    term: int
    until: datetime
