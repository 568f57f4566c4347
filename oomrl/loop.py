"""The loop, top to bottom, as the paper draws it: trade, lose, diagnose, propose, gate, review, deploy, watch.

What is stored are facts (marks, decisions, losses, proposals, verdicts, reviews, deployments), each under a key that
is unique for ever. What is in memory is a fold over those facts: a start folds them again and goes on where they end,
so that a kill at any instruction loses nothing and repeats nothing. No transaction is held across a call outside.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date

from oomrl.domain.market import Session
from oomrl.domain.records import (
    Act,
    CapitalEvent,
    CapitalKind,
    Decided,
    Deployment,
    DeploymentKind,
    Loss,
    Proposal,
    ProposalStatus,
    Review,
    StoredDiagnostic,
    StoredVerdict,
)
from oomrl.domain.trading import Decision, Hold, TargetPortfolio
from oomrl.errors import Halt, StrategyFailure
from oomrl.ports import Parts

STAGES = (
    "trade", "record fills", "mark and judge", "diagnose", "propose", "gate", "review", "deploy", "watch",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Waiting:
    """The loop cannot go on with a repair before someone acts: what for, and what is waited on."""

    what: str
    subject: str


class Loop:
    """One account, one strategy, one store. Single-threaded: one session after the other."""

    def __init__(self, run: str, parts: Parts) -> None:
        self.run_id = run
        self.parts = parts
        self.desk, self.store, self.judge = parts.desk, parts.store, parts.judge
        self.worker = None
        self.revision = ""
        self._fold()

    def run(self, until: date | None = None) -> Waiting | None:
        """Go on from where the store stands to `until`, the market's end, or where a person must act."""
        try:
            for session in self._unfinished(until):
                self.close(session)
                waiting = self.repair(session)
                if waiting is not None and self.parts.rules.pause_while_waiting:
                    return waiting
                self.trade(session, waiting)
        finally:
            self._dismiss()
        return None

    # -- record fills, mark and judge -------------------------------------------------------------------

    def close(self, session: Session) -> None:
        """Collect what the session did to the account, value it, and find losses: one transaction."""
        if self.closed is not None and session.day <= self.closed:
            return
        closing = self.desk.close(session)
        found = self.judge.losses(closing)
        events = self.judge.capital_events(closing)
        with self.store.begin() as work:
            work.sessions.save(self.run_id, closing.record(session))
            for loss in found:
                work.losses.save(loss)
            for event in events:
                work.capital.save(event)
        self.closed = session.day
        self.parts.progress.closed(closing, found)

    # -- diagnose, propose, gate, review, deploy ----------------------------------------------------------

    def repair(self, session: Session) -> Waiting | None:
        """Carry every open diagnostic as far as it goes; say what it waits for."""
        with self.store.read() as view:
            undiagnosed = view.losses.undiagnosed(self.run_id)
        for loss in undiagnosed:
            self.diagnose(loss, session)
        with self.store.read() as view:
            open_now = view.losses.diagnostics(self.run_id, status="open")
        for diagnostic in open_now:
            waiting = self._attempts(diagnostic, session)
            if waiting is not None:
                return waiting
        self.watch(session)
        return None

    def diagnose(self, loss: Loss, session: Session) -> None:
        """Explain a loss; one that demands no patch is closed at once."""
        diagnostic = self.judge.diagnose(loss, session)
        with self.store.begin() as work:
            work.losses.save_diagnostic(diagnostic)

    def _attempts(self, diagnostic: StoredDiagnostic, session: Session) -> Waiting | None:
        for attempt in range(1, self.parts.rules.attempts + 1):
            proposal = self._proposal(diagnostic, attempt, session)
            if isinstance(proposal, Waiting):
                return proposal
            if proposal.status is ProposalStatus.ESCALATED:
                return self._end(diagnostic, "escalated")
            verdict = self._verdict(proposal, session)
            if verdict.outcome != "pass":
                continue
            review = self._review(proposal, verdict)
            if isinstance(review, Waiting):
                return review
            if review.act is Act.APPROVE:
                self.deploy(proposal, review, session)
                return self._end(diagnostic, "repaired")
        return self._end(diagnostic, "exhausted")

    def _proposal(self, diagnostic: StoredDiagnostic, attempt: int, session: Session) -> Proposal | Waiting:
        with self.store.read() as view:
            made = [p for p in view.proposals.all(self.run_id, diagnostic.id) if p.attempt == attempt]
        if made:
            return made[0]
        answer = self.parts.proposer.propose(diagnostic, attempt, self.revision)
        if isinstance(answer, Waiting):
            return answer
        with self.store.begin() as work:
            work.proposals.save(answer)
        self.parts.progress.proposed(answer)
        return answer

    def _verdict(self, proposal: Proposal, session: Session) -> StoredVerdict:
        with self.store.read() as view:
            given = view.proposals.verdict(self.run_id, proposal.id)
        if given is not None:
            return given
        verdict = self.parts.gate.judge(proposal, session.day)
        status = ProposalStatus.PASSED if verdict.outcome == "pass" else ProposalStatus.REFUSED
        with self.store.begin() as work:
            work.proposals.save_verdict(verdict)
            work.proposals.set_status(self.run_id, proposal.id, status, verdict.result_tree)
            self.parts.attest(work, "verdict", verdict.digest, verdict.payload, verdict.at)
        self.parts.progress.judged(proposal, verdict)
        return verdict

    def _review(self, proposal: Proposal, verdict: StoredVerdict) -> Review | Waiting:
        with self.store.read() as view:
            acts = view.proposals.reviews(self.run_id, proposal.id)
        if acts:
            return acts[-1]
        review = self.parts.reviewer.review(proposal, verdict)
        if review is None:
            return Waiting("review", proposal.id)
        self.parts.record_review(review)
        return review

    def deploy(self, proposal: Proposal, review: Review, session: Session) -> None:
        """Commit the approved tree; the new revision decides from this close on."""
        revision = self.parts.repository.deploy(proposal, review, self.parts.clock.now())
        self._switch(revision, self.revision, DeploymentKind.DEPLOY, session, proposal.id, review.reason)

    def watch(self, session: Session) -> None:
        """Roll back a deployment that a tripwire condemns."""
        reason = self.judge.tripwire(session.day)
        if reason:
            base, revision = self.parts.repository.rollback(self.revision, reason, self.parts.clock.now())
            self._switch(revision, base, DeploymentKind.ROLLBACK, session, "", reason)

    # -- trade ------------------------------------------------------------------------------------------------

    def trade(self, session: Session, waiting: Waiting | None = None) -> None:
        """Show the session to the strategy and, when it is due, decide and place the next session's orders."""
        failure: StrategyFailure | None = None
        try:
            decision = self._decision(session, waiting)
        except StrategyFailure as error:
            failure, decision = error, Hold(f"strategy failure: {error}")
        orders = self.desk.plan(decision, session, self.revision)
        with self.store.begin() as work:
            if not isinstance(decision, Hold) or decision.reason:
                work.sessions.save_decision(self.run_id, Decided(session.day, self.revision, decision))
            if len(orders):
                work.orders.save(self.run_id, orders, None)
            if failure is not None:
                self._halt(work, session, failure)
        self.desk.submit(orders)
        self.decided = session.day

    def _decision(self, session: Session, waiting: Waiting | None) -> Decision:
        worker = self._worker(session)
        if self.parts.rules.cadence_due(session.day, self.desk.previous_day, self.revision):
            if not self.desk.may_trade:
                return Hold("trading is halted")
            if waiting is not None and self.parts.rules.while_waiting == "hold":
                return Hold(f"a {waiting.what} waits: {waiting.subject}")
            if waiting is not None and self.parts.rules.while_waiting == "flatten":
                return TargetPortfolio({})
            return worker.decide(self.desk.portfolio(session.day))
        return Hold()
