"""The desk: everything that people do to proposals and to the account, by page, by token or by command.

Each act asks for a right, is judged by `oomrl.review`, is written together with its line of the log in one
transaction, and is then appended to the audit chain.

Long by nature: one act after another, all in the same frame.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from oomrl.adapters.audit import Audit
from oomrl.adapters.changes import Changes, changes_of
from oomrl.adapters.database import Store
from oomrl.adapters.database.store import Work
from oomrl.adapters.halting import Halted, cancel_all, halt
from oomrl.adapters.kill_switch import KillSwitch
from oomrl.adapters.manual_model import ManualModel
from oomrl.adapters.opinions import Opinion, of_critic, remarks_on
from oomrl.adapters.repository import Repository, Revision
from oomrl.agents.roles import Role
from oomrl.domain.ledger import Kind as EntryKind
from oomrl.domain.people import Done, Freeze, Kind, Person, Remark, Right, demand
from oomrl.domain.records import (
    Act,
    CapitalEvent,
    CapitalKind,
    Deployment,
    DeploymentKind,
    Mark,
    PromptStatus,
    Proposal,
    ProposalStatus,
    Review,
    StoredDiagnostic,
    StoredVerdict,
)
from oomrl.domain.roll import Roll, same_person
from oomrl.errors import Mistake, Refused, Unavailable
from oomrl.review import Bound, Risk, Vote, bound, review, risk_of, standing
from oomrl.settings import MOST_DOLLARS, ReviewSettings, Settings

LONGEST = 10_000


@dataclass(frozen=True, slots=True)
class Case:
    """All that a decision about one proposal rests on, as it stands now."""

    proposal: Proposal
    verdict: StoredVerdict | None
    diagnostic: StoredDiagnostic
    reviews: tuple[Review, ...]
    remarks: tuple[Remark, ...]
    changes: Changes
    now: Bound
    risk: Risk
    looked: bool
    critic: Opinion | None = None
    roll: Roll = Roll()

    @property
    def told(self) -> list[Vote]:
        """Every approval, and why it does not count. Once deployed, what it was deployed under is what counts."""
        over = self.proposal.status is ProposalStatus.DEPLOYED
        now = replace(self.now, base_tree=self.proposal.base_tree) if over else self.now
        return standing(self.reviews, now, self.proposal.author, Roll() if over else self.roll)

    @property
    def votes(self) -> list[Review]:
        return [vote.review for vote in self.told if vote.counts]

    def votes_of(self, name: str) -> bool:
        """Say whether the last word of a person is an approval, which they may withdraw."""
        mine = [review for review in self.reviews if same_person(review.reviewer, name)]
        return bool(mine) and mine[-1].act is Act.APPROVE

    @property
    def status(self) -> ProposalStatus:
        """Where the proposal stands: approved only for as long as enough approvals count."""
        kept = self.proposal.status
        fewer = kept is ProposalStatus.APPROVED and len(self.votes) < self.risk.approvals
        return ProposalStatus.PASSED if fewer else kept

    @property
    def blocking(self) -> list[Remark]:
        return [remark for remark in self.remarks if remark.stands_in_the_way]


class Desk:
    """The acts of people on one state directory. `now` is the wall clock."""

    def __init__(self, state: Path, store: Store, run: str, rules: ReviewSettings, now: Callable[[], datetime]) -> None:
        self.state, self.store, self.run, self.rules, self.now = state, store, run, rules, now
        self.repository = Repository(state / "strategy.git")
        self.audit = Audit(state)
        self._changes: dict[str, Changes] = {}

    # -- what a decision rests on

    def case(self, person: Person, proposal: str) -> Case:
        """Return everything about a proposal; raise `Mistake` where there is none of that id."""
        demand(person, Right.SEE)
        with self.store.read() as view:
            return self._case(view, person, proposal)

    def _case(self, view: Work, person: Person, proposal: str) -> Case:
        found = view.proposals.get(self.run, proposal)
        if found is None:
            raise Mistake(f"Expected the id of a proposal, was {proposal[:80]!r}: `oomrl review list` names them.")
        verdict = view.proposals.verdict(self.run, proposal)
        diagnostic = view.losses.diagnostic(self.run, found.diagnostic)
        reviews = view.proposals.reviews(self.run, proposal)
        remarks, opinion = tuple(remarks_on(view, found)), of_critic(view, found)
        looked = view.remarks.looked(self.run, proposal, person.name, found.digest)
        assert diagnostic is not None
        stands = bound(found, verdict, self.repository.tree_id(self.repository.head()))
        changes = self.changes(found)
        risk = risk_of(changes.paths, changes.parameters, self.rules)
        roll = view.people.roll()
        return Case(found, verdict, diagnostic, tuple(reviews), remarks, changes, stands, risk, looked, opinion, roll)

    def changes(self, proposal: Proposal) -> Changes:
        """Return what a proposal changes; the same patches on the same base are read once."""
        key = f"{proposal.base_revision}/{proposal.digest}"
        if key not in self._changes:
            if len(self._changes) > 200:
                self._changes.clear()
            self._changes[key] = changes_of(self.repository.tree(proposal.base_revision), proposal)
        return self._changes[key]

    def needed(self, proposal: Proposal) -> int:
        """Return how many people must approve a proposal."""
        changes = self.changes(proposal)
        return risk_of(changes.paths, changes.parameters, self.rules).approvals

    # -- reading and remarks

    def look(self, person: Person, proposal: str) -> Case:
        """Record that a person opened the diff, and return what it is about.

        A program that reads by a token is no person: its look is not recorded, and no approval rests on it.
        """
        case = self.case(person, proposal)
        if person.how == "token":
            return case
        if not case.looked:
            with self.store.begin() as work:
                work.remarks.look(self.run, proposal, person.name, case.proposal.digest, self.now())
                self._note(work, person, "open diff", proposal, case.proposal.digest)
        return replace(case, looked=True)

    def comment(
        self, person: Person, proposal: str, text: str, path: str = "", line: int = 0, side: str = "new",
        blocking: bool = True,
    ) -> Remark:  # fmt: skip
        """Say something about a proposal, at a line or about the whole of it."""
        demand(person, Right.COMMENT)
        words = _words(text, "comment")
        case = self.case(person, proposal)
        _still_open(case)
        _in_the_file(case.changes, path, line, side)
        id_ = f"remark-{secrets.token_hex(8)}"
        at = self.now()
        remark = Remark(
            id_, self.run, proposal, person.name, words, at, path=path, line=line, side=side, blocking=blocking
        )
        with self.store.begin() as work:
            work.remarks.say(remark)
            done = self._note(work, person, "comment", proposal, remark.as_asked())
        self.audit.act(done)
        return remark

    def resolve(self, person: Person, proposal: str, remark: str, resolution: str, answer: str = "") -> None:
        """Settle a remark: a comment is resolved; an objection is answered or dismissed, with words."""
        demand(person, Right.COMMENT)
        case = self.case(person, proposal)
        _still_open(case)
        found = next((one for one in case.remarks if one.id == remark), None)
        if found is None:
            raise Mistake(f"Expected the id of a remark on {proposal}, was {remark[:80]!r}.")
        allowed = ("resolved", "") if found.kind is Kind.COMMENT else ("answered", "dismissed")
        mine = same_person(person.name, found.author)
        if found.blocking and not mine:
            demand(person, Right.REVIEW)
            if case.roll.one_party(person.name, case.proposal.author):
                raise Refused(f"Expected somebody else than the proposer to settle {remark}, was {person.name}.")
        if resolution not in allowed:
            raise Mistake(f"Expected one of {', '.join(filter(None, allowed))}, was {resolution[:20]!r}.")
        if found.kind is Kind.OBJECTION:
            demand(person, Right.REVIEW)
            answer = _words(answer, "answer to an objection")
        elif "\0" in answer:
            raise Mistake("Expected an answer of text, was one with a NUL character.")
        with self.store.begin() as work:
            work.remarks.say(found)
            work.remarks.resolve(self.run, remark, resolution, answer[:LONGEST], person.name, self.now())
            done = self._note(work, person, resolution or "reopen", remark, answer)
        self.audit.act(done)

    def reply(self, person: Person, prompt: str, text: str) -> bool:
        """Answer a prompt of the manual model; return False where that very answer is known.

        Who answers is the proposer by name, and will not approve what comes of it.
        """
        demand(person, Right.COMMENT)
        words = text.replace("\r\n", "\n")
        if "\0" in words or not words.strip():
            raise Mistake("Expected a reply of text, was none.")
        fresh = ManualModel(self.state).take(prompt, words, person.name)
        if fresh:
            with self.store.begin() as work:
                done = self._note(work, person, "reply", prompt, hashlib.sha256(words.encode()).hexdigest())
            self.audit.act(done)
        return fresh

    # -- decisions

    def decide(self, person: Person, proposal: str, act: Act, reason: str, seen: Bound | None = None) -> Review:
        """Approve, veto, ask for changes, or withdraw one's own approval.

        `seen` is what was shown: an act on anything else is refused.
        """
        demand(person, Right.REVIEW)
        if len(reason) > LONGEST or "\0" in reason:
            raise Mistake(f"Expected a reason of at most {LONGEST} characters of text, was {len(reason)}.")
        # What the decision rests on is read where it is written, so that of two at once the second sees the first.
        with self.store.begin() as work:
            case = self._case(work, person, proposal)
            record = review(
                case.proposal,
                case.verdict,
                case.now.base_tree,
                person.name,
                act,
                reason,
                self.now(),
                seen=seen,
                looked=case.looked,
                remarks=case.remarks,
                earlier=case.reviews,
                roll=case.roll,
            )
            if record.id in {one.id for one in case.reviews}:
                raise Refused(f"Expected an act not recorded before, was one of {person.name}'s on {proposal}.")
            held = replace(case, reviews=(*case.reviews, record)).votes
            work.proposals.save_review(record)
            if act is Act.REJECT:
                work.proposals.set_status(self.run, proposal, ProposalStatus.REJECTED)
            elif act is Act.REQUEST_CHANGES:
                work.proposals.set_status(self.run, proposal, ProposalStatus.CHANGES_REQUESTED)
            else:
                enough = len(held) >= case.risk.approvals
                work.proposals.set_status(
                    self.run, proposal, ProposalStatus.APPROVED if enough else ProposalStatus.PASSED
                )
            done = self._note(work, person, act.value, proposal, reason.strip())
        self.audit.review(record)
        self.audit.act(done)
        return record

    def set_mandate(self, person: Person, diagnostic: str, mandate: str, reason: str = "") -> None:
        """Confirm or replace what the next attempt is asked for. An escalation that it answers is reopened."""
        demand(person, Right.REVIEW)
        words = _words(mandate, "mandate")
        with self.store.begin() as work:
            found = work.losses.diagnostic(self.run, diagnostic)
            if found is None:
                raise Mistake(f"Expected the id of a diagnostic, was {diagnostic[:80]!r}.")
            if found.status not in ("open", "escalated", "exhausted"):
                raise Refused(f"Expected a diagnostic that is not ended, was {diagnostic}, which is {found.status}.")
            pending = [p for p in work.prompts.all(self.run, diagnostic) if p.status is PromptStatus.PENDING]
            # Whoever words the mandate needs no draft of it.
            for prompt in pending:
                if prompt.role == Role.ANALYST.value:
                    work.prompts.close(self.run, prompt.id, PromptStatus.WITHDRAWN, f"{person.name} set the mandate")
            waiting = [p for p in pending if p.role != Role.ANALYST.value]
            if waiting:
                raise Refused(
                    f"Expected no prompt to be out under the old mandate, was {waiting[0].id}: answer it first."
                )
            by = f"{person.name}: {reason.strip()}" if reason.strip() else person.name
            work.losses.set_mandate(self.run, diagnostic, words, by[:200], confirmed=True)
            if found.status != "open":
                work.losses.set_status(self.run, diagnostic, "open")
            for proposal in work.proposals.all(self.run, diagnostic, ProposalStatus.ESCALATED):
                work.proposals.set_status(self.run, proposal.id, ProposalStatus.SUPERSEDED)
            done = self._note(work, person, "set mandate", diagnostic, words)
        self.audit.act(done)

    def rollback(self, person: Person, reason: str, revision: str | None = None, seen: str | None = None) -> str:
        """Deploy an earlier revision again as a new commit; return its id.

        By default the one before: what was rolled back is not come back to. `seen` is the deployed revision that was
        shown to the person; the act is refused where another one is deployed by now.
        """
        demand(person, Right.OPERATE)
        why = _words(reason, "reason")
        # Head, deployments and their record are of one moment, so that of two at once the second sees the first.
        with self.store.begin() as work:
            head, log = self.repository.head(), self.repository.log()
            if seen is not None and seen != head:
                raise Refused(f"Expected {seen[:12]} to be deployed as it was shown, was {head[:12]}: look again.")
            led = _led_here(log)
            if revision is None and len(led) < 2:
                raise Mistake("Expected a revision before the deployed one, was none: nothing to roll back.")
            target = self.repository.resolve(revision) if revision else led[-2].id
            if self.repository.tree_id(target) == self.repository.tree_id(head):
                raise Refused(f"Expected another tree than the deployed one, was that of {target[:12]}: it trades now.")
            made = work.deployments.all(self.run)
            day, at = work.reading.last_day(self.run) or made[-1].day, self.now()
            new = self.repository.rollback(target, head, f"Rollback by {person.name}: {why}", at)
            deployment = Deployment(
                self.run, len(made) + 1, new, head, DeploymentKind.ROLLBACK, day, at, "", f"{person.name}: {why}"
            )
            work.deployments.save(deployment)
            done = self._note(work, person, "roll back", new, f"to the tree of {target[:12]}: {why}")
        self.audit.deployment(deployment)
        self.audit.act(done)
        return new

    def halt(self, person: Person, reason: str, settings: Settings) -> Halted:
        """Stop orders by the switch, cancel what is open at the brokers of the settings, and record it."""
        demand(person, Right.OPERATE)
        why = _words(reason, "reason")

        def record() -> list[str]:
            self.capital(person, CapitalKind.HALT, why)
            return []

        steps = {"the broker": lambda: cancel_all(settings, self.now()), "the record": record}
        return halt(self.state, person.name, why, self.now(), steps)

    def capital(
        self, person: Person, kind: CapitalKind, reason: str, amount: Decimal = Decimal(0), once: str = ""
    ) -> None:
        """Halt, resume or endow the account. Out of money is left by an endowment alone.

        A halt engages the kill switch before anything else, so that it holds where the record cannot be written. Once
        a resumption is recorded, the switch is released. Before the first session the switch is all that there is to
        move. An endowment with the same `once` is booked once: `Refused` for the second.
        """
        demand(person, Right.OPERATE)
        why = _words(reason, "reason")
        endows = kind not in (CapitalKind.HALT, CapitalKind.RESUME)
        if endows and not (
            amount.is_finite() and 0 < amount <= MOST_DOLLARS and amount == amount.quantize(Decimal("0.01"))
        ):
            raise Mistake(f"Expected dollars and cents above 0 and of at most {MOST_DOLLARS:,}, was {amount}.")
        if len(once) > 80:
            raise Mistake(f"Expected a one-time id of at most 80 characters, was {len(once)}.")
        if kind is CapitalKind.HALT:
            with suppress(Unavailable):  # the record stops the next decision where the switch cannot be engaged
                KillSwitch(self.state).engage(person.name, why, self.now())
        with self.store.begin() as work:
            mark = work.sessions.last_mark(self.run)
            if mark is None and endows:
                raise Mistake("Expected a run with at least one session, was none.")
            if mark is not None:
                self._move(work, person, kind, why, amount, mark, once)
            done = self._note(work, person, kind.value, self.run, f"{amount} dollars: {why}" if endows else why)
        if kind is CapitalKind.RESUME:
            KillSwitch(self.state).release()
        self.audit.act(done)

    def _move(
        self, work: Work, person: Person, kind: CapitalKind, why: str, amount: Decimal, mark: Mark, once: str
    ) -> None:
        if kind is CapitalKind.RESUME and mark.state == "out_of_money":
            raise Refused("Expected a halted account, was out of money: only an endowment ends that.")
        if kind is CapitalKind.ENDOW and mark.state == "out_of_money":
            self._suffices(work, mark, amount)
        at = self.now()
        told = f"once/{person.name}/{once}" if once else f"{person.name}/{why}/{at.isoformat()}"
        key = f"{kind.value}/{hashlib.sha256(told.encode()).hexdigest()[:12]}"
        if once and any(event.key == key for event in work.capital.events(self.run)):
            raise Refused(
                "Expected an endowment that was not given before, was one that is recorded: nothing was added."
            )
        work.capital.save(CapitalEvent(key, self.run, kind, mark.day, at, amount, person.name, why))

    def _suffices(self, work: Work, mark: Mark, amount: Decimal) -> None:
        """Refuse an endowment after which the principal loss would still be out of money."""
        run = work.runs.get(self.run)
        settings: Any = run.settings.get("settings", {}) if run is not None else {}
        tau = settings.get("thresholds", {}).get("principal_out_of_money")
        given = sum((e.amount for e in work.ledger.entries(self.run, kinds=(EntryKind.ENDOWMENT,))), Decimal(0))
        endowed, equity = given + amount, mark.equity + amount
        if tau is not None and endowed - equity >= endowed * Decimal(repr(tau)):
            exact = Decimal(repr(tau))
            least = ((given * (1 - exact) - mark.equity) / exact).quantize(Decimal("0.01"))
            raise Refused(
                f"Expected an endowment that ends out of money, was {amount}: endow more than {least} dollars. "
                "Nothing was recorded."
            )

    def freeze(self, person: Person, first: date, last: date, reason: str) -> Freeze:
        """Let nothing be deployed after the close of some sessions, both ends included."""
        demand(person, Right.OPERATE)
        why = _words(reason, "reason")
        if last < first:
            raise Mistake(f"Expected a freeze that ends on or after {first}, was {last}.")
        made = Freeze(f"freeze-{secrets.token_hex(6)}", self.run, first, last, why, person.name, self.now())
        with self.store.begin() as work:
            work.remarks.freeze(made)
            done = self._note(work, person, "freeze", made.id, f"{first} to {last}: {why}")
        self.audit.act(done)
        return made

    def lift(self, person: Person, freeze: str) -> None:
        """End a freeze."""
        demand(person, Right.OPERATE)
        with self.store.begin() as work:
            work.remarks.lift(self.run, freeze, person.name, self.now())
            done = self._note(work, person, "lift freeze", freeze)
        self.audit.act(done)

    def _note(self, work: Work, person: Person, act: str, subject: str, detail: str = "") -> Done:
        done = Done(self.now(), person.name, person.how, act, subject, detail, person.address)
        return replace(done, sequence=work.people.note(done))


def _led_here(log: Sequence[Revision]) -> list[Revision]:
    """Return the revisions whose trees led to the deployed one, oldest first, without what was rolled back."""
    standing: list[Revision] = []
    for one in reversed(log):
        at = next((n for n, other in enumerate(standing) if other.tree == one.tree), None)
        standing = [*standing, one] if at is None else standing[: at + 1]
    return standing


def _in_the_file(changes: Changes, path: str, line: int, side: str) -> None:
    """Raise `Mistake` for a place that no file of the proposal has."""
    if path and path not in changes.paths:
        raise Mistake(f"Expected a file that the proposal changes, was {path[:80]!r}.")
    if side not in ("old", "new") or line < 0 or line and not path:
        raise Mistake(f"Expected a line from 1 on, of the old or the new side of a file, was {line} on {side[:10]!r}.")
    before, after = changes.files.get(path, (None, None))
    body = before if side == "old" else after
    lines = 0 if body is None else len(body.decode("utf-8", "replace").splitlines())
    if line > lines:
        raise Mistake(f"Expected a line from 1 to {lines} on the {side} side of {path[:80]}, was {line}.")


def _still_open(case: Case) -> None:
    """Raise `Refused` for a proposal that was sent back or ended: what was said of it is in the next prompt already."""
    if case.proposal.status in (ProposalStatus.CHANGES_REQUESTED, ProposalStatus.REJECTED, ProposalStatus.SUPERSEDED):
        state = case.proposal.status.value.replace("_", " ")
        raise Refused(f"Expected a proposal that is open, was {case.proposal.id}, which is {state}.")


def _words(text: str, what: str) -> str:
    words = text.replace("\r\n", "\n").strip()
    if "\0" in words:
        raise Mistake(f"Expected a {what} of text, was one with a NUL character.")
    if not words or len(words) > LONGEST:
        raise Mistake(f"Expected a {what} of 1 to {LONGEST} characters, was {len(words)}.")
    return words
