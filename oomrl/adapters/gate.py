"""The gate of the loop: guardrails' verdict on the patches, and the promotion rule on what they would have earned."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from datetime import date, datetime
from typing import Any

from guardrails.environment import GateEnvironment
from guardrails.gate import LAYERS, check
from guardrails.policy import Policy, parse_policy
from guardrails.tree import Tree
from guardrails.verdict import Verdict
from oomrl.adapters.comparison import comparison
from oomrl.adapters.counterfactual import Counterfactual
from oomrl.adapters.database import Store
from oomrl.adapters.environments import Environments
from oomrl.adapters.patches import result_of
from oomrl.adapters.repository import Repository
from oomrl.adapters.strategies import configuration
from oomrl.domain.promotion import Decision, decide
from oomrl.domain.records import Proposal, StoredVerdict
from oomrl.errors import Mistake

SCHEMA = "oomrl.verdict/1"
#: Layers that read and run nothing.
CHEAP = ("patch", "static", "protected", "lock")
#: Characters of what is told of a candidate that cannot be run; it quotes the candidate.
MOST_TOLD = 400


class StrategyGate:
    """Implement `oomrl.stages.Gate`."""

    def __init__(
        self,
        run: str,
        store: Store,
        repository: Repository,
        counterfactual: Counterfactual,
        environments: Environments,
        secret: bytes,
        now: Callable[[], datetime],
    ) -> None:
        self.run, self.store, self.repository, self.counterfactual = run, store, repository, counterfactual
        self.environment = GateEnvironment(environments.gate, environments.worker)
        self.secret, self.now = secret, now
        self._cache: dict[str, Any] = {}

    def judge(self, proposal: Proposal, today: date) -> StoredVerdict:
        """Judge the ordered pair on the deployed tree, with nothing later than today."""
        files = self.repository.tree(proposal.base_revision)
        base, policy = Tree(files), parse_policy(files["policy.toml"])
        with self.store.read() as view:
            diagnostic = view.losses.diagnostic(self.run, proposal.diagnostic)
        assert diagnostic is not None, f"Expected the diagnostic of {proposal.id} to be stored"
        window: Mapping[str, Any] = diagnostic.payload["window"]  # type: ignore[assignment]
        asked: dict[str, Any] = {
            "secret": hmac.new(self.secret, proposal.diagnostic.encode(), hashlib.sha256).digest(),
            "attempt": proposal.attempt,
            "cycle": proposal.id,
            "environment": self.environment,
            "cache": self._cache,
        }
        # The cheap layers first, then the counterfactual, which most candidates fail, then everything again in full.
        verdicts = _checked(base, proposal, policy, layers=CHEAP, **asked)
        if any(verdict.decision != "pass" for verdict in verdicts.values()):
            return self._stored(proposal, verdicts, None, base)
        try:
            candidate = _candidate(base, proposal)
        except Mistake as error:
            return self._stored(proposal, verdicts, None, base, unfit=str(error)[:MOST_TOLD])
        first, last = (date.fromisoformat(window[end]) for end in ("first", "last"))
        try:
            replays, promise = self.counterfactual.windows(base, candidate, first, today), None
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            # Values of the candidate that nothing before it refused: it is refused here, and the loop goes on.
            unfit = f"The replay came to no end: {type(error).__name__}: {error}"
            return self._stored(proposal, verdicts, None, base, unfit=unfit[:MOST_TOLD])
        decision = decide(replays, self._tried(proposal, first, last) + 1)
        if decision.promoted:
            promise = self.counterfactual.promised(base, candidate, today)
            verdicts = _checked(base, proposal, policy, layers=LAYERS, **asked)
        return self._stored(proposal, verdicts, decision, base, promise, comparison(replays))

    def _tried(self, proposal: Proposal, first: date, last: date) -> int:
        """Count the other candidates that were replayed, before this one first was, on a loss window that touches its.

        The same patches again are no new candidate.
        """
        with self.store.read() as view:
            windows: dict[str, Any] = {d.id: d.payload["window"] for d in view.losses.diagnostics(self.run)}
            proposals = {made.id: made for made in view.proposals.all(self.run)}
            verdicts = view.proposals.verdicts(self.run)
        tried: dict[str, int] = {}
        for verdict in verdicts:
            made, promotion = proposals[verdict.proposal], verdict.payload.get("promotion")
            span = windows[made.diagnostic]
            if promotion and span["first"] <= last.isoformat() and span["last"] >= first.isoformat():
                number: int = promotion["attempt"]  # type: ignore[index]
                tried[made.digest] = min(number, tried.get(made.digest, number))
        return tried[proposal.digest] - 1 if proposal.digest in tried else len(tried)

    def _stored(
        self,
        proposal: Proposal,
        verdicts: Mapping[str, Verdict],
        decision: Decision | None,
        base: Tree,
        promise: Mapping[str, float] | None = None,
        compared: Mapping[str, Any] | None = None,
        unfit: str = "",
    ) -> StoredVerdict:
        allowed = all(verdict.allowed for verdict in verdicts.values()) and decision is not None and decision.promoted
        refused = [verdict.decision for verdict in verdicts.values() if verdict.decision != "pass"]
        outcome = next(iter(refused), "pass" if allowed else "refuse")
        told = [line for verdict in verdicts.values() for line in _told(verdict)] + ([unfit] if unfit else [])
        if decision is not None:
            seen = decision.for_proposer()
            told += seen["refusals"]
            if not seen["held_back_passed"]:
                told.append("held-back windows: no")
        result = ""
        if outcome == "pass":
            changes = result_of(dict(base), proposal)
            result = self.repository.preview(proposal.base_revision, _changed(base, changes))
        steady = {name: json.loads(verdict.canonical_json()) for name, verdict in verdicts.items()}
        promotion = None if decision is None else _plain(asdict(decision))
        digest = hashlib.sha256(
            json.dumps(
                {"proposal": proposal.id, "phases": steady, "promotion": promotion, "outcome": outcome}
                | ({"unfit": unfit} if unfit else {}),
                sort_keys=True,
            ).encode()
        ).hexdigest()
        payload = {
            "schema": SCHEMA,
            "outcome": outcome,
            "phases": {name: verdict.to_json() for name, verdict in verdicts.items()},
            "promotion": promotion,
            "unfit": unfit,
            "promise": promise,
            "comparison": compared,
            "proposer_view": told,
        }
        return StoredVerdict(
            digest=digest,
            proposal=proposal.id,
            run=self.run,
            outcome=outcome,
            base_tree=self.repository.tree_id(proposal.base_revision),
            result_tree=result,
            payload=payload,
            at=self.now(),
        )


def _checked(base: Tree, proposal: Proposal, policy: Policy, **asked: Any) -> dict[str, Verdict]:
    """Judge the parts of a pair in their order; one that is refused ends it."""
    tests, logic = proposal.tests_patch.encode() or None, proposal.logic_patch.encode()
    verdicts: dict[str, Verdict] = {}
    if tests:
        verdicts["tests"] = check(base, tests, "tests", policy, then=logic, **asked)
        if verdicts["tests"].decision != "pass":
            return verdicts
    verdicts["logic"] = check(base, logic, "logic", policy, after=tests, **asked)
    return verdicts


def _candidate(base: Tree, proposal: Proposal) -> dict[str, bytes]:
    """Return the tree that a proposal makes; raise `Mistake` for one that the service cannot run.

    The policy of a strategy may allow what its service cannot read.
    """
    candidate = result_of(dict(base), proposal)
    configuration(candidate.get("strategy.toml", b""))
    return candidate


def _told(verdict: Verdict) -> list[str]:
    view = verdict.proposer_view()
    lines = [f"{f['code']} {f['path']}:{f['line']} {f['reason']} {f['fix']}".strip() for f in view["findings"]]
    return lines + (["hidden checks: no"] if view["hidden_checks_failed"] else [])


def _changed(base: Mapping[str, bytes], result: Mapping[str, bytes]) -> dict[str, bytes | None]:
    changes: dict[str, bytes | None] = {path: data for path, data in result.items() if base.get(path) != data}
    return changes | {path: None for path in base if path not in result}


def _plain(value: Any) -> Any:
    """Return JSON-able values; numbers that are not finite as null."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return value if abs(value) < float("inf") else None
    return value
