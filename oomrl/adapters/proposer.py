"""Diagnose losses and ask models for repairs: prompts out, replies read, proposals in the store's words.

Every prompt is durable before a model sees it, every reply and its price before it is read.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable, Mapping
from dataclasses import asdict
from datetime import datetime
from decimal import Decimal
from pathlib import Path

from guardrails.policy import parse_policy
from oomrl.adapters import patches
from oomrl.adapters.database import Store
from oomrl.adapters.manual_model import ManualModel
from oomrl.adapters.offline_model import OfflineModel
from oomrl.adapters.openai_model import Endpoint, OpenAIModel
from oomrl.adapters.repository import Repository
from oomrl.adapters.strategies import configuration
from oomrl.agents.billing import Compute, price_table
from oomrl.agents.reply import Answer, Kind, read_reply
from oomrl.agents.roles import Assignment, Role, prompt_id, render
from oomrl.domain import diagnostic as diagnostics
from oomrl.domain.account import SessionRecord
from oomrl.domain.causes import References, StrategyFacts
from oomrl.domain.loss import Loss
from oomrl.domain.records import Act, CapitalKind, Prompt, Proposal, ProposalStatus, StoredDiagnostic
from oomrl.errors import Mistake
from oomrl.evidence import costly_orders, names_of, shortfall_of, signal_of, sites_of, within
from oomrl.exchange.tape import Tape
from oomrl.judging import Judge
from oomrl.ports import Attempt, Context, Model
from oomrl.settings import Settings
from oomrl.stages import Waiting

#: Sentences for the prompt; the gate's finding codes say more.
RULES = (
    "One unified diff against the files shown, or one line that begins with ESCALATE: and the reason.",
    "Only the files named as editable may change; tests, golden cases, configuration and the policy are locked.",
    "Source may import only what the policy allows; no input or output, clock, environment, randomness or reflection.",
    "Protected financial mathematics may not change.",
    "Statement and branch coverage of the tests must stay at 95 % or above, also on changed lines.",
    "A hidden judge checks that no decision depends on the future, on names, on dates or on the price level.",
    "The candidate must beat the version that trades by more than luck, net of all costs, and stay invested.",
)


def make_model(settings: Settings, state: Path, seed: int, live: bool) -> Model:
    """Return the model that the settings name. Raises `Mistake` where its key or price is missing."""
    chosen = settings.model
    if chosen.provider == "offline":
        return OfflineModel()
    if chosen.provider == "manual":
        return ManualModel(state)
    prices = price_table(chosen.prompt_price, chosen.completion_price, [chosen.name], strict=live)
    endpoint = Endpoint(model=chosen.name, base_url=chosen.base_url)
    return OpenAIModel.from_environment(endpoint, prices, random.Random(seed), chosen.api_key_env)


class AgentProposer:
    """Implement `oomrl.stages.Proposer` on a model, the store and the deployment repository."""

    def __init__(
        self,
        run: str,
        store: Store,
        repository: Repository,
        model: Model,
        tape: Tape,
        now: Callable[[], datetime],
        *,
        masked: bool,
        seed: int,
        capital: float,
        compute: Decimal,
        confirm_mandate: bool = False,
        refusal: Callable[[], str],
    ) -> None:
        """Take parts and `refusal`: why this model may not propose now, in one line, or nothing."""
        self.run, self.store, self.repository, self.model, self.tape = run, store, repository, model, tape
        self.confirm_mandate = confirm_mandate
        self.now, self.masked, self.seed, self.capital, self.compute = now, masked, seed, capital, compute
        self.refusal = refusal

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
            mandate_by="rules",
            confirmed=not self.confirm_mandate,
            status="open" if loss.demands_patch else "no_patch",
        )

    def propose(self, diagnostic: StoredDiagnostic, attempt: int, revision: str) -> Proposal | Waiting:
        """Ask for one proposal: the ordered pair of a tests patch (models that write tests) and a logic patch."""
        refusal = self.refusal()
        if refusal:
            return Waiting("qualification", refusal)
        tree = self.repository.tree(revision)
        tests = ""
        if self.model.name != OfflineModel.name:
            asked = self._ask(Role.TEST_AUTHOR, diagnostic, attempt, tree)
            if isinstance(asked, Waiting):
                return asked
            tests = asked.patch if asked.kind is Kind.PATCH else ""
        after = patches.applied(tree, tests.encode()) if tests else tree
        answer = self._ask(Role.CODER, diagnostic, attempt, after)
        if isinstance(answer, Waiting):
            return answer
        escalated = answer.kind is Kind.ESCALATE
        explanation = answer.explanation if answer.kind is Kind.PATCH else answer.message
        pair = {"tests": tests, "logic": answer.patch}
        digest = hashlib.sha256(json.dumps(pair, sort_keys=True).encode()).hexdigest()
        return Proposal(
            id=f"proposal-{attempt}-{hashlib.sha256(f'{diagnostic.id}/{attempt}/{digest}'.encode()).hexdigest()[:12]}",
            digest=digest,
            run=self.run,
            diagnostic=diagnostic.id,
            attempt=attempt,
            author=self._author(diagnostic, attempt),
            base_revision=revision,
            base_tree=self.repository.tree_id(revision),
            at=self.now(),
            logic_patch=answer.patch,
            tests_patch=tests,
            explanation=explanation,
            repairs=answer.repairs,
            prompt=prompt_id(self.run, diagnostic.id, Role.CODER, attempt),
            status=ProposalStatus.ESCALATED if escalated else ProposalStatus.PROPOSED,
        )

    def _ask(
        self, role: Role, diagnostic: StoredDiagnostic, attempt: int, tree: Mapping[str, bytes]
    ) -> Answer | Waiting:
        policy = parse_policy(tree["policy.toml"])
        phase = policy.phases["tests" if role is Role.TEST_AUTHOR else "logic"]
        earlier = self._earlier(diagnostic, attempt)
        payload, mask = dict(diagnostic.payload), None
        if self.masked:
            mask = self._mask(diagnostic, tree)
            payload = diagnostics.masked(diagnostics.Diagnostic.model_validate(payload), mask).model_dump(mode="json")
        sources = {path: data for path, data in tree.items() if path == "strategy.toml" or path.startswith("src/")}
        assignment = Assignment(
            diagnostic=payload,
            mandate=diagnostic.mandate,
            sources=sources,
            rules=RULES,
            editable=phase.editable,
            earlier=earlier,
            comments=self._asked_for(diagnostic, attempt),
        )
        rendered = render(role, assignment, mask)
        name = prompt_id(self.run, diagnostic.id, role, attempt)
        prompt = Prompt(name, self.run, diagnostic.id, role.value, attempt, rendered.text, self.now(), rendered.version)
        with self.store.begin() as work:
            work.prompts.ask(prompt)
            known = work.prompts.get(self.run, name)
        if known is not None and known.reply is not None:
            text, finish = known.reply, known.finish
        else:
            context = Context(
                diagnostic=payload,
                mandate=diagnostic.mandate,
                tree=tree,
                bounds={key: _bound(value) for key, value in policy.bounds.items()},
                editable=phase.editable,
                attempt=attempt,
                earlier=earlier,
            )
            if self._compute().out:
                return Waiting("compute endowment", name)
            reply = self.model.answer(name, role.value, rendered.text, context)
            if reply is None:
                return Waiting("prompt", name)
            with self.store.begin() as work:
                work.prompts.answer(
                    self.run,
                    name,
                    reply.text,
                    self.now(),
                    reply.model,
                    reply.prompt_tokens,
                    reply.completion_tokens,
                    reply.cost,
                    reply.finish,
                )
            text, finish = reply.text, reply.finish
        return read_reply(text, tree, finish, apply=_canonical)

    def _compute(self) -> Compute:
        """Return what was given for models and what they have used."""
        with self.store.read() as view:
            given = [e.amount for e in view.capital.events(self.run) if e.kind is CapitalKind.ENDOW_COMPUTE]
            _, _, spent = view.prompts.bill(self.run)
        return Compute(self.compute + sum(given, Decimal(0)), spent)

    def _author(self, diagnostic: StoredDiagnostic, attempt: int) -> str:
        """Return who proposes: the model, and whoever answered in its place, who may then not approve."""
        with self.store.read() as view:
            asked = [p for p in view.prompts.all(self.run, diagnostic.id) if p.attempt == attempt]
        people = sorted({p.model for p in asked if p.role in (Role.TEST_AUTHOR, Role.CODER) and "<" in p.model})
        return ", ".join(people)[:200] or self.model.name

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
        """Return the earlier answers with what refused them: visible findings by name, hidden parts by one bit."""
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
                found.append(Attempt(proposal.attempt, proposal.logic_patch, tuple(told)))
        return tuple(found)

    def _mask(self, diagnostic: StoredDiagnostic, tree: Mapping[str, bytes]) -> diagnostics.Mask:
        """Return a mask drawn from the run's seed: shuffled numbers for names, shifted weeks, rescaled prices."""
        chance = random.Random(f"mask/{self.seed}/{diagnostic.day.isoformat()}")
        seen = sorted(symbol for symbol in self.tape.until(diagnostic.day).symbols)
        chance.shuffle(seen)
        prices = frozenset(
            key.removeprefix("parameters.")
            for key, bound in parse_policy(tree["policy.toml"]).bounds.items()
            if bound.price
        )
        weeks = chance.randrange(400, 1_200) * chance.choice((-1, 1))
        return diagnostics.Mask(diagnostics.numbered(seen), 7 * weeks, 2.0 ** chance.choice((-2, -1, 1, 2)), prices)


def _own(judge: Judge, loss: Loss) -> list[SessionRecord]:
    """Return the sessions to a loss in which the deployed revision decided."""
    return [r for r in judge.records if r.day <= loss.last and (judge.since is None or r.day >= judge.since)]


def _canonical(tree: Mapping[str, bytes], patch: str) -> str:
    """Apply a diff strictly and return its canonical form; what does not fit is said to the model."""
    try:
        return patches.diff(tree, patches.applied(tree, patch.encode("utf-8"), "the diff"))
    except Mistake as error:
        raise ValueError(str(error)) from error


def _bound(value: object) -> dict[str, object]:
    return {name: item for name, item in asdict(value).items() if item not in (None, ())}  # type: ignore[call-overload]
