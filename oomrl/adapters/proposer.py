"""Diagnose losses and ask models for repairs: drafts, prompts out, replies read, proposals in the store's words."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from oomrl.adapters import patches
from oomrl.adapters.briefing import Briefing, Told
from oomrl.adapters.database import Store
from oomrl.adapters.models import Models
from oomrl.adapters.prompting import Prompting, Question, Said
from oomrl.adapters.repository import Repository
from oomrl.adapters.strategies import configuration
from oomrl.agents.drafts import Critique, Draft, read_critique, read_draft
from oomrl.agents.problem import Unusable
from oomrl.agents.reply import Answer, Kind, read_reply, read_tests
from oomrl.agents.roles import Role, prompt_id
from oomrl.domain import diagnostic as diagnostics
from oomrl.domain.account import SessionRecord
from oomrl.domain.causes import References, StrategyFacts
from oomrl.domain.loss import Loss
from oomrl.domain.records import Act, Prompt, Proposal, ProposalStatus, StoredDiagnostic
from oomrl.evidence import costly_orders, names_of, shortfall_of, signal_of, sites_of, within
from oomrl.exchange.tape import Tape
from oomrl.judging import Judge
from oomrl.ports import Attempt
from oomrl.stages import Waiting

#: Who wrote a mandate that no analyst and no person has touched.
RULES = "rules"
#: Begins the line of a proposal that says why there are no tests of its author's in it.
NO_TESTS = "The test author's reply could not be used"

Read = TypeVar("Read", Draft, Critique)


class AgentProposer:
    """Implement `oomrl.stages.Proposer` on a model, the store and the deployment repository."""

    def __init__(
        self,
        run: str,
        store: Store,
        repository: Repository,
        models: Models,
        prompting: Prompting,
        tape: Tape,
        now: Callable[[], datetime],
        *,
        masked: bool,
        seed: int,
        capital: float,
        attempts: int = 3,
        candidates: int = 1,
        confirm_mandate: bool = False,
        refusal: Callable[[], str],
    ) -> None:
        """Take parts, how many attempts a diagnostic has and how many `candidates` of them are asked for at once, and
        `refusal`: why these models may not propose now, in one line, or nothing.
        """
        self.run, self.store, self.repository, self.models = run, store, repository, models
        self.prompting, self.briefing = prompting, Briefing(tape, masked, seed)
        self.attempts, self.candidates, self.confirm_mandate = attempts, candidates, confirm_mandate
        self.tape, self.now, self.capital, self.refusal = tape, now, capital, refusal

    def diagnose(self, loss: Loss, judge: Judge, revision: str) -> StoredDiagnostic:
        """Explain a loss from the session records of its window."""
        window = within(judge.records, loss.first, loss.last)
        tree = self.repository.tree(revision)
        configured = configuration(tree["strategy.toml"])
        symbols = judge.symbols
        before = [day for day in judge.days if day.day < loss.first]
        made = diagnostics.diagnose(
            loss,
            judge.days,
            names_of(window, symbols),
            StrategyFacts(
                revision=revision,
                cadence=configured.cadence.value,
                parameters=configured.parameters,
                assumed_friction_bps=judge.rules.assumed_friction_bps,
                sites=sites_of(tree),
                signal=signal_of(_own(judge, loss), list(judge.bars), symbols, configured.parameters),
            ),
            tape=self.tape.until(loss.day).digest,
            capital=before[-1].equity if before else self.capital,
            principal_loss=judge.capital.principal_loss,
            drawdown=judge.capital.drawdown,
            simulated=True,
            log=costly_orders(window),
            shortfall=shortfall_of(window),
            exceptions=[judge.capital.reason] if judge.halted_by_failure else [],
            # Of few names each must be large: concentration begins at half as much again as an even share.
            references=References(weight=max(References().weight, 1.5 / max(len(symbols), 1))),
        )
        return StoredDiagnostic(
            id=made.id,
            loss=loss.id,
            run=self.run,
            day=loss.day,
            payload=made.model_dump(mode="json"),
            at=self.now(),
            mandate=made.mandate,
            mandate_by=RULES,
            confirmed=not self.confirm_mandate,
            status="open" if loss.demands_patch else "no_patch",
        )

    def draft(self, diagnostic: StoredDiagnostic, revision: str) -> StoredDiagnostic | Waiting:
        """Return a diagnostic with the analyst's mandate in place of the rules', or escalated with the reason.

        Where somebody else has spoken, where no language model is the analyst, and where none of its drafts can be
        read, the diagnostic stays as it is.
        """
        if diagnostic.mandate_by != RULES or Role.ANALYST not in self.models.of:
            return diagnostic
        if refusal := self.refusal():
            return Waiting("qualification", refusal)
        asked = self._insist(Role.ANALYST, diagnostic, 1, self.repository.tree(revision), Told(), read_draft)
        if asked is None or isinstance(asked, Waiting):
            return asked or diagnostic
        said, model = asked
        by = f"analyst ({model})"[:200]
        if said.escalate:
            return replace(diagnostic, mandate_by=by, status="escalated")
        return replace(diagnostic, mandate=said.mandate, mandate_by=by)

    def propose(self, diagnostic: StoredDiagnostic, attempt: int, revision: str) -> Proposal | Waiting:
        """Ask for proposals: the ordered pair of a tests patch (models that write tests) and a logic patch.

        All candidates of the attempt's batch are asked at once, each knowing what came before the batch alone. A test
        author who escalates ends its attempt; one whose reply cannot be used leaves the coder with the tests that
        stand, and both are told why when they are asked again.
        """
        if refusal := self.refusal():
            return Waiting("qualification", refusal)
        first, batch = self._batch(diagnostic, attempt)
        tree = self.repository.tree(revision)
        told = Told(self._earlier(diagnostic, first), self._asked_for(diagnostic, first))
        written: dict[int, Answer] = {}
        if Role.TEST_AUTHOR in self.models.of:
            asked = self._ask(Role.TEST_AUTHOR, diagnostic, [(number, tree, told) for number in batch], first)
            if isinstance(asked, Waiting):
                return asked
            replies = zip(batch, asked, strict=True)
            written = {n: read_tests(said.text, tree, said.finish, patches.canonical) for n, said in replies}
            batch = [n for n in batch if written[n].kind is not Kind.ESCALATE]
            if attempt not in batch:
                return self._proposal(diagnostic, attempt, first, revision, "", written[attempt])
        tests = {n: written[n].patch if n in written else "" for n in batch}
        after = {n: patches.applied(tree, tests[n].encode()) if tests[n] else tree for n in batch}
        asked = self._ask(Role.CODER, diagnostic, [(number, after[number], told) for number in batch], first)
        if isinstance(asked, Waiting):
            return asked
        said = asked[batch.index(attempt)]
        answer = read_reply(said.text, after[attempt], said.finish, patches.canonical)
        if attempt in written and written[attempt].kind is Kind.UNUSABLE:
            answer = replace(answer, repairs=(*answer.repairs, f"{NO_TESTS}: {written[attempt].message}"))
        return self._proposal(diagnostic, attempt, first, revision, tests[attempt], answer)

    def criticise(self, diagnostic: StoredDiagnostic, proposal: Proposal) -> Waiting | None:
        """Let the critic attack a diff, for whoever reviews it; the reply is in the store, and decides nothing."""
        if Role.CRITIC not in self.models.of:
            return None
        tree = self.repository.tree(proposal.base_revision)
        told = Told(patch=proposal.tests_patch + proposal.logic_patch)
        asked = self._insist(Role.CRITIC, diagnostic, proposal.attempt, tree, told, read_critique)
        return asked if isinstance(asked, Waiting) else None

    def _insist(
        self,
        role: Role,
        diagnostic: StoredDiagnostic,
        attempt: int,
        tree: Mapping[str, bytes],
        told: Told,
        read: Callable[[str], Read],
    ) -> tuple[Read, str] | Waiting | None:
        """Return what a role that answers in JSON said, and its model; None where it never could be read.

        A reply that cannot be read goes back with the reason, as often as a diagnostic has attempts.
        """
        for round_ in range(self.attempts):
            asked = self._ask(role, diagnostic, [(attempt, tree, told)], round_=round_)
            if isinstance(asked, Waiting):
                return asked
            try:
                return read(asked[0].text), asked[0].model
            except Unusable as error:
                told = replace(told, earlier=(*told.earlier, Attempt(round_ + 1, "", (error.message,))))
        return None

    def _proposal(
        self, diagnostic: StoredDiagnostic, attempt: int, first: int, revision: str, tests: str, answer: Answer
    ) -> Proposal:
        pair = {"tests": tests, "logic": answer.patch}
        digest = hashlib.sha256(json.dumps(pair, sort_keys=True).encode()).hexdigest()
        return Proposal(
            id=f"proposal-{attempt}-{hashlib.sha256(f'{diagnostic.id}/{attempt}/{digest}'.encode()).hexdigest()[:12]}",
            digest=digest,
            run=self.run,
            diagnostic=diagnostic.id,
            attempt=attempt,
            author=self._author(diagnostic, attempt, first),
            base_revision=revision,
            base_tree=self.repository.tree_id(revision),
            at=self.now(),
            logic_patch=answer.patch,
            tests_patch=tests,
            explanation=answer.explanation if answer.kind is Kind.PATCH else answer.message,
            repairs=answer.repairs,
            prompt=prompt_id(self.run, diagnostic.id, Role.CODER, attempt, attempt - first),
            status=ProposalStatus.ESCALATED if answer.kind is Kind.ESCALATE else ProposalStatus.PROPOSED,
        )

    def _batch(self, diagnostic: StoredDiagnostic, attempt: int) -> tuple[int, list[int]]:
        """Return the first attempt of a batch of candidates, and all of it.

        A new mandate or a reviewer's request ends a batch: what comes next must know of it.
        """
        with self.store.read() as view:
            made = {p.attempt: p for p in view.proposals.all(self.run, diagnostic.id)}
            ended = {
                number
                for number, proposal in made.items()
                if proposal.status is ProposalStatus.SUPERSEDED
                or any(one.act is Act.REQUEST_CHANGES for one in view.proposals.reviews(self.run, proposal.id))
            }
        first = 1
        for number in range(1, attempt):
            if number in ended or number - first + 1 == self.candidates:
                first = number + 1
        last = min(first + self.candidates - 1, max(self.attempts, attempt))
        return first, list(range(first, last + 1))

    def _ask(
        self,
        role: Role,
        diagnostic: StoredDiagnostic,
        asked: Sequence[tuple[int, Mapping[str, bytes], Told]],
        first: int | None = None,
        round_: int = 0,
    ) -> list[Said] | Waiting:
        """Ask a role for each attempt, with the tree that it sees and what was said before."""
        questions = []
        for attempt, tree, told in asked:
            rendered, context = self.briefing.prompt(role, diagnostic, tree, told, attempt, self.models.budgets[role])
            candidate = 0 if first is None else attempt - first
            name = prompt_id(self.run, diagnostic.id, role, attempt, candidate, round_)
            prompt = Prompt(
                name, self.run, diagnostic.id, role.value, attempt, rendered.text, self.now(), rendered.version
            )
            questions.append(Question(prompt, self.models.of[role], context))
        return self.prompting.ask(questions)

    def _author(self, diagnostic: StoredDiagnostic, attempt: int, first: int) -> str:
        """Return who proposes: the model, and whoever answered in its place, who may then not approve."""
        with self.store.read() as view:
            asked = view.prompts.all(self.run, diagnostic.id)
        candidate, roles = attempt - first, (Role.TEST_AUTHOR, Role.CODER)
        of = {prompt_id(self.run, diagnostic.id, role, attempt, candidate) for role in roles}
        people = sorted({p.model for p in asked if p.id in of and "<" in p.model})
        return ", ".join(people)[:200] or self.models.name  # two people fit whole

    def _asked_for(self, diagnostic: StoredDiagnostic, attempt: int) -> tuple[str, ...]:
        """Return what reviewers said of the attempt before this one: reasons for changes, and unsettled remarks."""
        with self.store.read() as view:
            before = [p for p in view.proposals.all(self.run, diagnostic.id) if p.attempt == attempt - 1]
            said = [review for p in before for review in view.proposals.reviews(self.run, p.id)]
            remarks = [remark for p in before for remark in view.remarks.of(self.run, p.id) if not remark.resolution]
        if not any(review.act is Act.REQUEST_CHANGES for review in said):
            return ()
        return (*(r.reason for r in said if r.act is Act.REQUEST_CHANGES), *(remark.as_asked() for remark in remarks))

    def _earlier(self, diagnostic: StoredDiagnostic, attempt: int) -> tuple[Attempt, ...]:
        """Return the earlier answers with what refused them: visible findings by name, hidden parts by one bit.

        What was mended in a reply is not among them, but for a test author's reply that could not be used.
        """
        found = []
        with self.store.read() as view:
            for proposal in view.proposals.all(self.run, diagnostic.id):
                if proposal.attempt >= attempt:
                    continue
                verdict = view.proposals.verdict(self.run, proposal.id)
                told = list(verdict.payload.get("proposer_view", ())) if verdict else []  # type: ignore[call-overload]
                told += [
                    f"a reviewer said ({review.act.value}): {review.reason}"
                    for review in view.proposals.reviews(self.run, proposal.id)
                ]
                if not proposal.logic_patch:
                    told.append(proposal.explanation)
                told += [line for line in proposal.repairs if line.startswith(NO_TESTS)]
                found.append(Attempt(proposal.attempt, proposal.tests_patch + proposal.logic_patch, tuple(told)))
        return tuple(found)


def _own(judge: Judge, loss: Loss) -> list[SessionRecord]:
    """Return the sessions to a loss in which the deployed revision decided."""
    return [r for r in judge.records if r.day <= loss.last and (judge.since is None or r.day >= judge.since)]
