"""The loop's facts in the store: what one stage found out, written once and read back in the loop's words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date, datetime, timedelta
from decimal import Decimal

from oomrl.adapters.audit import Audit
from oomrl.adapters.database import Store
from oomrl.agents.billing import bill_entry
from oomrl.domain.account import SessionRecord
from oomrl.domain.deployment import Watched
from oomrl.domain.ledger import Book, Entry, Kind
from oomrl.domain.loss import Loss
from oomrl.domain.market import Session
from oomrl.domain.records import (
    CapitalEvent,
    CapitalKind,
    Decided,
    Deployment,
    DeploymentKind,
    Mark,
    Proposal,
    ProposalStatus,
    Review,
    StoredDiagnostic,
    StoredVerdict,
)
from oomrl.domain.records import Loss as StoredLoss
from oomrl.domain.records import SessionRecord as StoredSession
from oomrl.errors import Halt, StrategyFailure
from oomrl.judging import Judge
from oomrl.stages import Planned

#: Who decided where the service let trading rest; no revision has this name.
SERVICE = "service"


@dataclass(frozen=True, slots=True)
class _Known:
    """What a start reads once: all that earlier starts wrote of the past."""

    marks: dict[date, Mark]
    decisions: dict[date, Decided]
    events: dict[date, list[CapitalEvent]]
    flows: dict[date, list[Entry]]
    traded: date


class StoredFacts:
    """Implement `oomrl.stages.Facts` on a store. `keep_bars` stores sessions as they were sent."""

    def __init__(self, store: Store, run: str, audit: Audit, now: Callable[[], datetime], keep_bars: bool) -> None:
        self.store, self.run, self.audit, self.now, self.keep_bars = store, run, audit, now, keep_bars
        with store.read() as view:
            events: dict[date, list[CapitalEvent]] = {}
            for event in view.capital.events(run):
                events.setdefault(event.day, []).append(event)
            flows: dict[date, list[Entry]] = {}
            for entry in view.ledger.entries(run, kinds=(Kind.ENDOWMENT, Kind.MODEL_BILL)):
                flows.setdefault(entry.day, []).append(entry)
            checkpoint = view.sessions.checkpoint(run)
            self._known = _Known(
                marks={mark.day: mark for mark in view.sessions.marks(run)},
                decisions={decided.day: decided for decided in view.sessions.decisions(run)},
                events=events,
                flows=flows,
                traded=checkpoint[0] if checkpoint else date.min,
            )
            self._diagnosed = {diagnostic.loss for diagnostic in view.losses.diagnostics(run)}
            self._deployments = view.deployments.all(run)
            self._open = bool(view.losses.diagnostics(run, status="open"))
            self._heard = {event.key for day in events.values() for event in day}
            self._bills_due = True
            self._watched: Watched | None = None

    # -- what was

    def progress(self) -> tuple[date, date]:
        return max(self._known.marks, default=date.min), self._known.traded

    def deployments(self, day: date | None = None) -> Sequence[Deployment]:
        return [deployment for deployment in self._deployments if day is None or deployment.day == day]

    def flows(self, day: date) -> Sequence[Entry]:
        if day in self._known.marks:
            return [entry for entry in self._known.flows.get(day, []) if entry.key != OPENING]
        if not self._bills_due:
            return []
        self._bills_due = False
        with self.store.read() as view:
            posted = {e.key for e in view.ledger.entries(self.run, kinds=(Kind.MODEL_BILL,))}
            bills, spent = [], Decimal(0)
            for prompt in view.prompts.all(self.run):
                bill = bill_entry(prompt.id, day, spent, prompt.cost, prompt.model)
                spent += prompt.cost
                bills += [bill] if bill is not None else []
        return [*self._given(day), *(bill for bill in bills if bill.key not in posted)]

    def given(self) -> Decimal:
        """Return the dollars that persons endowed and that no close has booked yet."""
        return sum((entry.amount for entry in self._given(date.max)), Decimal(0))

    def _given(self, day: date) -> list[Entry]:
        with self.store.read() as view:
            posted = {entry.key for entry in view.ledger.entries(self.run, kinds=(Kind.ENDOWMENT,))}
            given = [
                Entry(f"endow/{event.key}", day, Kind.ENDOWMENT, Book.BOTH, event.amount, note=event.reason)
                for event in view.capital.events(self.run)
                if event.kind is CapitalKind.ENDOW
            ]
        return [entry for entry in given if entry.key not in posted]

    def capital_events(self, day: date) -> Sequence[CapitalEvent]:
        return [event for event in self._known.events.get(day, []) if not event.key.startswith("failure/")]

    def news(self, day: date) -> tuple[Sequence[CapitalEvent], Sequence[Deployment]]:
        with self.store.read() as view:
            events = [event for event in view.capital.events(self.run) if event.key not in self._heard]
            made = view.deployments.all(self.run)[len(self._deployments) :]
        if not events and not made:
            return (), ()
        with self.store.begin() as work:
            # Dated by the close after which they count, so that a later start folds them where they were heard.
            for event in events:
                work.capital.redate(self.run, event.key, day)
            for one in made:
                work.deployments.redate(self.run, one.sequence, day)
        self._heard |= {event.key for event in events}
        self._deployments += [replace(one, day=day) for one in made]
        self._bills_due = True
        return [replace(event, day=day) for event in events], [replace(one, day=day) for one in made]

    def planned(self, day: date) -> Planned:
        decided = self._known.decisions.get(day)
        if decided is None:
            return Planned(None)
        for event in self._known.events.get(day, []):
            if event.key == f"failure/{day}":
                kind, _, message = event.reason.partition(": ")
                return Planned(decided.decision, StrategyFailure(kind, message), rested=True)
        return Planned(decided.decision, rested=decided.revision == SERVICE)

    def verify(self, record: SessionRecord) -> None:
        stored = self._known.marks[record.day]
        if (stored.equity, stored.pnl) != (record.equity, record.decomposition.pnl):
            raise Halt(
                f"Expected {record.day} to end on {stored.equity} as stored, was {record.equity} when folded again: "
                "the tape, the settings or the program changed. Use a new --state, or the old ones"
            )

    # -- what is

    def save_close(self, record: SessionRecord, session: Session, judge: Judge, loss: Loss | None) -> None:
        stored = StoredSession(
            mark=_mark(record, judge),
            session=session if self.keep_bars else None,
            execution=record.execution,
            entries=record.entries,
        )
        with self.store.begin() as work:
            work.sessions.save(self.run, stored)
            if loss is not None:
                work.losses.save(self._stored(loss))

    def save_trade(self, day: date, revision: str, planned: Planned, record: SessionRecord, loss: Loss | None) -> None:
        with self.store.begin() as work:
            if planned.decision is not None:
                by = SERVICE if planned.rested else revision
                work.sessions.save_decision(self.run, Decided(day, by, planned.decision))
            if record.sized is not None and len(record.sized.orders):
                work.orders.save(self.run, record.sized.orders, None)
            if planned.failure is not None:
                reason = f"{planned.failure.kind}: {planned.failure.message}"
                event = CapitalEvent(
                    f"failure/{day}", self.run, CapitalKind.HALT, day, self.now(), by=SERVICE, reason=reason
                )
                work.capital.save(event)
                self._heard.add(event.key)
            if loss is not None:
                work.losses.save(self._stored(loss))
            work.sessions.save_checkpoint(self.run, day, {"traded": day.isoformat()})

    def save_capital_event(self, event: CapitalEvent) -> None:
        with self.store.begin() as work:
            work.capital.save(event)
        self._heard.add(event.key)

    # -- diagnose, propose, gate, review, deploy

    def diagnosed(self, loss: Loss) -> bool:
        return loss.id in self._diagnosed

    def save_diagnostic(self, diagnostic: StoredDiagnostic) -> None:
        with self.store.begin() as work:
            work.losses.save_diagnostic(diagnostic)
        self._diagnosed.add(diagnostic.loss)
        self._open |= diagnostic.status == "open"

    def save_mandate(self, diagnostic: StoredDiagnostic) -> None:
        with self.store.begin() as work:
            work.losses.set_mandate(
                self.run, diagnostic.id, diagnostic.mandate, diagnostic.mandate_by, diagnostic.confirmed
            )

    def open_diagnostics(self) -> Sequence[StoredDiagnostic]:
        if not self._open:
            return []
        with self.store.read() as view:
            found = view.losses.diagnostics(self.run, status="open")
        self._open = bool(found)
        return found

    def end_diagnostic(self, diagnostic: StoredDiagnostic, status: str) -> None:
        with self.store.begin() as work:
            work.losses.set_status(self.run, diagnostic.id, status)

    def answered(self, prompt: str) -> None:
        """Book what a reply cost at the next close, and attest what went over the wire for it."""
        self._bills_due = True
        self.audit.traffic(self.run, prompt)

    def proposal(self, diagnostic: StoredDiagnostic, attempt: int) -> Proposal | None:
        with self.store.read() as view:
            made = [p for p in view.proposals.all(self.run, diagnostic.id) if p.attempt == attempt]
        return made[0] if made else None

    def save_proposal(self, proposal: Proposal) -> None:
        with self.store.begin() as work:
            work.proposals.save(proposal)

    def verdict(self, proposal: Proposal) -> StoredVerdict | None:
        with self.store.read() as view:
            return view.proposals.verdict(self.run, proposal.id)

    def save_verdict(self, proposal: Proposal, verdict: StoredVerdict) -> None:
        status = ProposalStatus.PASSED if verdict.outcome == "pass" else ProposalStatus.REFUSED
        with self.store.begin() as work:
            work.proposals.save_verdict(verdict)
            work.proposals.set_status(self.run, proposal.id, status, verdict.result_tree)
        self.audit.verdict(proposal, verdict)

    def save_review(self, review: Review) -> None:
        with self.store.begin() as work:
            work.proposals.save_review(review)
        self.audit.review(review)

    def watched(self) -> Watched | None:
        made = self._deployments[-1]
        if made.kind is not DeploymentKind.DEPLOY:
            return None
        if self._watched is None or self._watched.revision != made.revision:
            with self.store.read() as view:
                verdict = view.proposals.verdict(self.run, made.proposal)
            if verdict is None:
                return None
            promise: Mapping[str, float] = verdict.payload["promise"]  # type: ignore[assignment]
            self._watched = Watched(made.revision, made.day + timedelta(days=1), **promise)
        return self._watched

    def save_deployment(
        self, kind: DeploymentKind, commit: Callable[[], str | None], base: str, day: date, proposal: str, reason: str
    ) -> Deployment | None:
        known = [made for made in self._deployments if proposal and made.proposal == proposal]
        if known:
            return known[0]
        sequence = len(self._deployments) + 1
        # The one call outside that a transaction is held across: no act of a person comes between the two.
        with self.store.begin() as work:
            revision = commit()
            if revision is None:
                return None
            deployment = Deployment(self.run, sequence, revision, base, kind, day, self.now(), proposal, reason)
            work.deployments.save(deployment)
            if proposal:
                work.proposals.set_status(self.run, proposal, ProposalStatus.DEPLOYED)
            verdict = work.proposals.verdict(self.run, proposal) if proposal else None
        self._deployments.append(deployment)
        self.audit.deployment(deployment, verdict)
        return deployment

    def _stored(self, loss: Loss) -> StoredLoss:
        detail = asdict(loss)
        detail = {name: value.isoformat() if isinstance(value, date) else value for name, value in detail.items()}
        return StoredLoss(
            id=loss.id,
            run=self.run,
            day=loss.day,
            level="loss" if loss.demands_patch else "shared_market",
            measure=loss.trigger.value,
            value=loss.statistic,
            threshold=loss.threshold,
            at=self.now(),
            detail=detail,
        )


#: The key of the first endowment, which the account is given before its first session.
OPENING = "endowment"


def opening(amount: Decimal, day: date) -> Entry:
    """Return the first endowment's line of the ledger."""
    return Entry(OPENING, day, Kind.ENDOWMENT, Book.BOTH, amount, note="opening endowment")


def _mark(record: SessionRecord, judge: Judge) -> Mark:
    capital, parts = judge.capital, record.decomposition.parts
    equity = float(record.equity)
    return Mark(
        day=record.day,
        equity=record.equity,
        cash=Decimal(record.economic_cash_cents).scaleb(-2),
        broker_cash=record.broker_cash,
        pnl=record.decomposition.pnl,
        flow=sum((e.amount for e in record.flows if e.kind is Kind.ENDOWMENT), Decimal(0)),
        benchmark=record.benchmark,
        drawdown=capital.drawdown,
        principal_loss=capital.principal_loss,
        reward=None if judge.reward is None else judge.reward.value,
        parts=parts,
        turnover=record.traded / 2 / equity if equity > 0 else 0.0,
        friction=-(parts["spread"] + parts["impact"] + parts["fees"]),
        state=capital.state.value,
    )
