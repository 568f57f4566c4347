"""What the judge says: findings, stages and the verdict, as frozen records with one canonical JSON form."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

SCHEMA = "guardrails.verdict/1"
Decision = Literal["pass", "refuse", "error"]
Status = Literal["pass", "refuse", "error", "skipped", "off"]

# Facts of a run that a repetition need not share; the canonical form leaves them out.
VOLATILE = frozenset({"seconds", "started", "host", "cache", "cached"})
# What the proposer may read in full. Of every other layer it learns one bit, and these codes, which are one bit each.
VISIBLE = frozenset({"patch", "static", "protected", "lock", "tests", "coverage", "mutants"})
TOLD = frozenset({"GR603"})


@dataclass(frozen=True, order=True)
class Finding:
    """One broken rule: the code (`explain CODE` tells more), where, why, and the way out."""

    code: str
    path: str = ""
    line: int = 0
    reason: str = ""
    fix: str = ""
    layer: str = "static"


@dataclass(frozen=True)
class Stage:
    """One stage that ran or not. `evidence` is plain JSON; times are left out of the canonical form."""

    name: str
    status: Status
    seconds: float = 0.0
    evidence: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Verdict:
    """The whole answer. Nothing but `decision == "pass"` allows anything.

    `transitions` are the steps of the lock's cycle that this patch, or pair, was taken through.
    """

    decision: Decision
    phase: str
    findings: tuple[Finding, ...] = ()
    stages: tuple[Stage, ...] = ()
    base_tree: str = ""
    result_tree: str = ""
    patch_digest: str = ""
    canonical_diff: str = ""
    policy_digest: str = ""
    sandbox: Mapping[str, Any] = field(default_factory=lambda: {"profile": "none", "canaries": {}})
    coverage: Mapping[str, Any] = field(default_factory=dict)
    mutation: Mapping[str, Any] = field(default_factory=dict)
    attempt: int = 0
    repairs: tuple[str, ...] = ()
    tests: Mapping[str, Any] | None = None
    transitions: tuple[Mapping[str, Any], ...] = ()
    schema: str = SCHEMA

    @property
    def allowed(self) -> bool:
        """Say whether the patch may go on: everything passed, and no layer was left out for an ablation."""
        return self.decision == "pass" and all(stage.status == "pass" for stage in self.stages)

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values, times included."""
        plain: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(self)))
        return plain

    def canonical_json(self) -> bytes:
        """Return the bytes that are digested and signed: sorted keys, no times, hosts or cache hits."""
        return json.dumps(_steady(self.to_json()), sort_keys=True, separators=(",", ":")).encode()

    def digest(self) -> str:
        """Return the sha256 of the canonical form."""
        return hashlib.sha256(self.canonical_json()).hexdigest()

    def proposer_view(self) -> dict[str, Any]:
        """Return what may go back to the model: visible rules by name, and one bit for all hidden parts.

        Which hidden layer refused, at which test, line or seed, would teach the next attempt to fit it.
        """
        told = [item for item in self.findings if item.layer in VISIBLE or item.code in TOLD]
        shown = [dataclasses.asdict(item) for item in told]
        unseen = {item.layer for item in self.findings if item not in told}
        said = VISIBLE | ({item.layer for item in told} - unseen)
        hidden = bool(unseen) or any(s.status in ("refuse", "error") for s in self.stages if s.name not in said)
        view = {"decision": self.decision, "phase": self.phase, "findings": shown, "repairs": list(self.repairs)}
        return {**view, "hidden_checks_failed": hidden, "attempt": self.attempt}


def _steady(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _steady(item) for key, item in value.items() if key not in VOLATILE}
    if isinstance(value, list):
        return [_steady(item) for item in value]
    return value
