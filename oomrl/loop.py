"""The loop, top to bottom, as the paper draws it: trade, lose, diagnose, propose, gate, review, deploy, watch.

What is stored are facts (marks, decisions, losses, proposals, verdicts, reviews, deployments), each under a key that
is unique for ever. What is in memory is a fold over those facts: a start folds them again and goes on where they end,
so that a kill at any instruction loses nothing and repeats nothing. No transaction is held across a call outside, but
for the commit of a deployment: nobody acts between it and its record.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import partial

from oomrl.domain.account import Account, SessionRecord
from oomrl.domain.ledger import Kind
from oomrl.domain.loss import Loss
from oomrl.domain.market import Session
from oomrl.domain.records import (
    Act,
    CapitalEvent,
    Deployment,
    DeploymentKind,
    Proposal,
    ProposalStatus,
    Review,
    StoredDiagnostic,
    StoredVerdict,
)
from oomrl.domain.trading import Hold, TargetPortfolio
from oomrl.errors import StrategyFailure
from oomrl.judging import Judge, resumed_by, rolled_back
from oomrl.ports import Broker, Market, StrategyWorker
from oomrl.stages import Facts, Gate, Planned, Proposer, Reviewer, Strategies, Waiting, Watcher

STAGES = (
    "trade",
    "record fills",
    "mark and judge",
    "diagnose",
    "propose",
    "gate",
    "review",
    "deploy",
    "watch",
)


@dataclass(frozen=True, slots=True)
class Rules:
    """How the loop behaves: attempts a diagnostic, what a waiting review does to trading, when trading begins.

    `may` names the stages that this run carries out on the last session; `live` says that sessions pass by themselves,
    so that one whose time for trading is over is left untraded.
    """

    attempts: int = 3
    while_waiting: str = "hold"
    pause_while_waiting: bool = False
    from_day: date | None = None
    may: frozenset[str] = frozenset(STAGES)
    live: bool = False


@dataclass(slots=True)
class Loop:
    """One account, one strategy, one store; one session after the other."""

    rules: Rules
    market: Market
    broker: Broker
    account: Account
    judge: Judge
    facts: Facts
    strategies: Strategies
    proposer: Proposer
    gate: Gate
    reviewer: Reviewer
    watcher: Watcher
    worker: StrategyWorker | None = None
    revision: str = ""

    def run(self, until: date | None = None) -> Waiting | None:
        """Go on from where the facts end to `until`, the market's end, or where a person must act first."""
        closed, traded = self.facts.progress()
        self._switch(self.facts.deployments()[0])
        try:
            for session in self.market.sessions(until=until):
                if self.rules.from_day is not None and session.day < self.rules.from_day:
                    self.broker.collect(session)
                    self.judge.observe(self.account.observe(session))
                    continue
                record = self.close(session, known=session.day <= closed)
                if session.day <= closed:
                    self._act_again(session.day)
                if session.day <= traded:
                    self._plan(record, self.facts.planned(session.day))
                    continue
                if self.rules.live and until is not None and session.day < until:
                    self.miss(session, record)
                    continue
                self._act(*self.facts.news(session.day))
                waiting = self.repair(session)
                if self.rules.live and "trade" not in self.rules.may:
                    return waiting
                if waiting is not None and self.rules.pause_while_waiting and waiting.what != "window":
                    return waiting
                self.trade(session, record, waiting)
        finally:
            self._dismiss()
        return None

    # -- record fills, mark and judge

    def close(self, session: Session, known: bool) -> SessionRecord:
        """Collect what a session did to the account, value and explain it, and find losses: one transaction."""
        flows = self.facts.flows(session.day)
        record = self.account.settle(session, self.broker.collect(session), flows)
        for flow in flows:
            if flow.kind is Kind.ENDOWMENT:
                self.broker.deposit(flow.amount)
        loss = self.judge.judge(record)
        if known:
            self.facts.verify(record)
        else:
            self.facts.save_close(record, session, self.judge, loss)
        self.watcher.closed(record, self.judge.capital, loss)
        return record

    # -- diagnose, propose, gate, review, deploy, watch

    def repair(self, session: Session) -> Waiting | None:
        """Undo what must be undone, then carry every open diagnostic as far as it goes; say what it waits for."""
        if "watch" in self.rules.may:
            self.watch(session)
        for loss in self.judge.losses:
            if not self.facts.diagnosed(loss):
                if "diagnose" not in self.rules.may:
                    return Waiting("diagnosis", loss.id)
                self.diagnose(loss)
        for diagnostic in self.facts.open_diagnostics():
            waiting = self._attempts(diagnostic, session)
            if waiting is not None:
                return waiting
        return None

    def diagnose(self, loss: Loss) -> None:
        """Explain a loss. What the strategy merely shared with the market, or a rollback undid, demands no patch."""
        diagnostic = self.proposer.diagnose(loss, self.judge, self.revision)
        if self._undone(loss):
            diagnostic = replace(diagnostic, status="rolled_back")
        self.facts.save_diagnostic(diagnostic)
        self.watcher.diagnosed(loss, diagnostic)

    def _undone(self, loss: Loss) -> bool:
        last = self.facts.deployments()[-1]
        return last.kind is DeploymentKind.ROLLBACK and loss.day <= last.day

    def _attempts(self, diagnostic: StoredDiagnostic, session: Session) -> Waiting | None:
        drafted = self._draft(diagnostic)
        if isinstance(drafted, Waiting):
            return drafted
        diagnostic = drafted
        if diagnostic.status == "escalated":
            return self.facts.end_diagnostic(diagnostic, "escalated")
        if not diagnostic.confirmed:
            return Waiting("mandate", diagnostic.id)
        attempt, most = 0, self.rules.attempts
        while attempt < most:
            attempt += 1
            proposal = self.facts.proposal(diagnostic, attempt) or self._propose(diagnostic, attempt)
            if isinstance(proposal, Waiting):
                return proposal
            if proposal.status is ProposalStatus.ESCALATED:
                return self.facts.end_diagnostic(diagnostic, "escalated")
            if proposal.status is ProposalStatus.SUPERSEDED:
                most = max(most, attempt + 1)
                continue
            verdict = self.facts.verdict(proposal) or self._judge(proposal, session)
            if isinstance(verdict, Waiting):
                return verdict
            if verdict.outcome != "pass":
                continue
            review = self._review(proposal, verdict)
            if isinstance(review, Waiting):
                return self._criticise(diagnostic, proposal) or review
            if review.act is Act.APPROVE:
                if "deploy" not in self.rules.may:
                    return Waiting("deployment window", proposal.id)
                if not self.deploy(proposal, review, verdict, session):
                    return Waiting("review", proposal.id)
                return self.facts.end_diagnostic(diagnostic, "repaired")
            if review.act is Act.REQUEST_CHANGES:
                # Who asks for changes wants to see them, whatever the number of attempts.
                most = max(most, attempt + 1)
        return self.facts.end_diagnostic(diagnostic, "exhausted")

    def _draft(self, diagnostic: StoredDiagnostic) -> StoredDiagnostic | Waiting:
        if "propose" not in self.rules.may:
            return diagnostic
        drafted = self.proposer.draft(diagnostic, self.revision)
        if not isinstance(drafted, Waiting) and drafted != diagnostic:
            self.facts.save_mandate(drafted)
        return drafted

    def _criticise(self, diagnostic: StoredDiagnostic, proposal: Proposal) -> Waiting | None:
        """Give a person the critic's objections to what waits for a review."""
        return self.proposer.criticise(diagnostic, proposal) if "propose" in self.rules.may else None

    def _propose(self, diagnostic: StoredDiagnostic, attempt: int) -> Proposal | Waiting:
        if "propose" not in self.rules.may:
            return Waiting("proposal", diagnostic.id)
        answer = self.proposer.propose(diagnostic, attempt, self.revision)
        if isinstance(answer, Proposal):
            self.facts.save_proposal(answer)
            self.watcher.proposed(answer)
        return answer

    def _judge(self, proposal: Proposal, session: Session) -> StoredVerdict | Waiting:
        if "gate" not in self.rules.may:
            return Waiting("verdict", proposal.id)
        verdict = self.gate.judge(proposal, session.day)
        self.facts.save_verdict(proposal, verdict)
        self.watcher.judged(proposal, verdict)
        return verdict

    def _review(self, proposal: Proposal, verdict: StoredVerdict) -> Review | Waiting:
        review = self.reviewer.review(proposal, verdict, self.revision)
        if isinstance(review, Waiting):
            return review
        self.facts.save_review(review)
        return review

    def deploy(self, proposal: Proposal, review: Review, verdict: StoredVerdict, session: Session) -> bool:
        """Commit the approved tree, which decides from this close on; approval ends the halt that the loss caused.

        Return False, with nothing done, where the approval was withdrawn or overtaken meanwhile.
        """

        def commit() -> str | None:
            if self.reviewer.review(proposal, verdict, self.revision) != review:
                return None
            return self.strategies.deploy(proposal, review, verdict)

        kind, base = DeploymentKind.DEPLOY, proposal.base_revision
        made = self.facts.save_deployment(kind, commit, base, session.day, proposal.id, review.reason)
        if made is None:
            return False
        self._switch(made)
        if self.judge.halted_by_itself:
            self._resume(resumed_by(review, session.day))
        return True

    def watch(self, session: Session) -> None:
        """Roll back a deployment that its tripwires condemn; a failure of its own no longer halts the one before."""
        watched = self.facts.watched()
        trip = None if watched is None else self.judge.tripwire(watched)
        if trip is None:
            return
        undone, reason = self.revision, f"{trip.wire.value}: {trip.evidence}"
        made = self.facts.save_deployment(
            DeploymentKind.ROLLBACK, partial(self.strategies.rollback, undone, reason), undone, session.day, "", reason
        )
        assert made is not None, "Expected a rollback to commit"
        self._switch(made)
        if self.judge.halted_by_failure:
            self._resume(rolled_back(made))

    def _resume(self, event: CapitalEvent) -> None:
        self.facts.save_capital_event(event)
        self.judge.act(event)

    # -- trade

    def trade(self, session: Session, record: SessionRecord, waiting: Waiting | None = None) -> None:
        """Show the session to the strategy and, when it is due, decide and place the next session's orders."""
        try:
            planned = self._decide(session, waiting)
            record, loss = self._sized(record, planned)
        except StrategyFailure as failure:
            self._dismiss()
            planned = Planned(Hold(f"strategy failure: {failure}"), failure, rested=True)
            record, loss = self._sized(record, planned)
        self.facts.save_trade(session.day, self.revision, planned, record, loss)
        self._submit(record)

    def miss(self, session: Session, record: SessionRecord) -> None:
        """Write down that nothing was traded after a session: its time passed while the service could not."""
        planned = Planned(Hold("missed: the time for these orders had passed"), rested=True)
        record, loss = self._sized(record, planned)
        self.facts.save_trade(session.day, self.revision, planned, record, loss)

    def _decide(self, session: Session, waiting: Waiting | None) -> Planned:
        """Ask the strategy when it is due; where trading must rest, hold without asking."""
        if not self.judge.may_trade:
            capital = self.judge.capital
            return Planned(Hold(f"{capital.state.value}: {capital.reason}"), rested=True)
        worker = self._worker(session)
        if waiting is not None and self.rules.while_waiting == "flatten":
            return Planned(TargetPortfolio({}), rested=True)
        if waiting is not None and self.rules.while_waiting == "hold":
            return Planned(Hold(f"waits for a {waiting.what}: {waiting.subject}"), rested=True)
        return Planned(worker.decide(self.account.portfolio()) if self.account.due() else None)

    def _sized(self, record: SessionRecord, planned: Planned) -> tuple[SessionRecord, Loss | None]:
        loss: Loss | None = None
        if planned.rested:
            self.account.stop_working()
        if planned.failure is not None:
            loss = self.judge.failed(planned.failure, record.day)
        record = self.account.plan(record, planned.decision)
        self.judge.planned(record)
        return record, loss

    def _plan(self, record: SessionRecord, planned: Planned) -> None:
        """Fold a stored decision again: the same orders, known to the broker by their ids."""
        record, _ = self._sized(record, planned)
        self._submit(record)

    def _submit(self, record: SessionRecord) -> None:
        if record.sized is not None:
            self.broker.submit(record.sized.orders)

    # -- what is shared

    def _act_again(self, day: date) -> None:
        """Apply what persons did to the capital and which deployments were made after a close that is known."""
        self._act(self.facts.capital_events(day), self.facts.deployments(day))

    def _act(self, events: Sequence[CapitalEvent], deployments: Sequence[Deployment]) -> None:
        for event in events:
            self.judge.act(event)
        for deployment in deployments:
            if deployment.kind is not DeploymentKind.START:
                self._switch(deployment)

    def _switch(self, deployment: Deployment) -> None:
        """Let a revision decide from now on."""
        if deployment.revision == self.revision:
            return
        self._dismiss()
        self.revision = deployment.revision
        self.account.switch(deployment.revision[:12], self.strategies.cadence(deployment.revision))
        if deployment.kind is not DeploymentKind.START:
            self.judge.switched(deployment.day)
        self.watcher.deployed(deployment)

    def _worker(self, session: Session) -> StrategyWorker:
        """Return the worker of the deployed revision, with every session up to this one shown."""
        if self.worker is not None:
            self.worker.show(session)
            return self.worker
        self.worker = self.strategies.start(self.revision)
        for past in self.market.sessions(until=session.day):
            self.worker.show(past)
        return self.worker

    def _dismiss(self) -> None:
        if self.worker is not None:
            self.worker.close()
        self.worker = None
