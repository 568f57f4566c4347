"""The offline model: a rule-based repairer, no language model, and it says so in all it writes.

It takes the diagnostic's causes in their order, has for each an ordered list of repairs, drops those that change
nothing, and answers attempt k with the k-th that is left. It knows finance's conventions and the policy's bounds; it
knows nothing of how faults are made. Where nothing is left it escalates.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from oomrl.adapters.offline import edits, parameters
from oomrl.adapters.offline.remedies import Repair, ordered
from oomrl.agents.diff import changes_to_diff
from oomrl.domain.causes import CauseCode
from oomrl.ports import Context, Reply

LABEL = "rule-based repairer, no language model"


class OfflineModel:
    """Answer prompts by rules. Free, instant, the same for the same context."""

    name = "offline"
    is_language_model = False

    def answer(self, prompt_id: str, role: str, prompt: str, context: Context) -> Reply | None:
        """Return a diff or an escalation for the coder, a draft for the analyst, remarks for the critic."""
        writers = {"coder": _code, "analyst": _analyse, "critic": _criticise}
        writer = writers.get(role)
        text = (
            "ESCALATE: this repairer writes no tests; the mandate needs a person or another model."
            if writer is None
            else writer(context)
        )
        return Reply(f"({LABEL})\n\n{text}\n", self.name)


def _code(context: Context) -> str:
    causes = ranked_causes(context.diagnostic)
    if causes and causes[0][0] == CauseCode.STRATEGY_FAILURE:
        return "ESCALATE: the strategy failed; rules that weigh costs and signals mend no program error."
    tried = {_changed_lines(attempt.patch) for attempt in context.earlier}
    # Attempts that the caller does not remember are counted by number.
    skip = max(0, context.attempt - 1 - len(context.earlier))
    found = 0
    for why, diff in _candidates(context):
        found += 1
        if _changed_lines(diff) in tried:
            continue
        if skip == 0:
            return f"{why}\n\n```diff\n{diff}```"
        skip -= 1
    causes = ", ".join(code for code, _ in ranked_causes(context.diagnostic)) or "none"
    return (
        f"ESCALATE: the mandate cannot be met by the rules of this repairer: for the causes ({causes}) "
        f"{found} repairs within the policy were found and all were tried."
    )


def _changed_lines(diff: str) -> tuple[str, ...]:
    """Return what a diff removes and adds: two diffs of one change may differ in their context and its cuts."""
    return tuple(
        sorted(line for line in diff.split("\n") if line[:1] in ("+", "-") and line[:4] not in ("+++ ", "--- "))
    )


def _analyse(context: Context) -> str:
    causes = ranked_causes(context.diagnostic)
    first = next(repair for repair in ordered(causes) if repair.moves)
    draft = {
        "root_cause": f"{causes[0][0] if causes else 'unknown'} ({LABEL}; the diagnostic's first cause)",
        "mandate": f"{first.name[0].upper()}{first.name[1:]}: {first.why}.",
        "confidence": "low",
    }
    return "```json\n" + json.dumps(draft, indent=2) + "\n```"


def _criticise(context: Context) -> str:
    patch = context.earlier[-1].patch if context.earlier else ""
    changed = [line for line in patch.split("\n") if line[:1] in "+-" and line[:3] not in ("+++", "---") and line]
    remarks = [{"severity": "note", "text": f"{len(changed)} lines change; this critic counts and reads no meaning."}]
    if any("exposure" in line for line in changed):
        remarks.append({"severity": "major", "text": "The exposure changes: smaller losses may be less investment."})
    critique = {"summary": f"{LABEL}: counted, not understood.", "objections": remarks}
    return "```json\n" + json.dumps(critique, indent=2) + "\n```"


def ranked_causes(diagnostic: Mapping[str, object]) -> list[tuple[str, float]]:
    """Return a diagnostic's causes and their shares of the loss, in its order."""
    inner = diagnostic.get("diagnostics")
    causes = inner.get("causes") if isinstance(inner, Mapping) else None
    if not isinstance(causes, list | tuple):
        return []
    return [
        (str(cause["code"]), float(cause.get("share", 0.0)))
        for cause in causes
        if isinstance(cause, Mapping) and "code" in cause
    ]


def _candidates(context: Context) -> Iterator[tuple[str, str]]:
    """Yield (why, diff) of every repair that changes something, in order, each diff once."""
    seen: set[str] = set()
    for repair in ordered(ranked_causes(context.diagnostic)):
        changes, notes = _changes(repair, context, {})
        diff = changes_to_diff(context.tree, changes)
        if diff and diff not in seen:
            seen.add(diff)
            listed = "".join(f"\n- {note}" for note in notes)
            yield f"Repair: {repair.name}. Reason: {repair.why}.{listed}", diff


def _changes(repair: Repair, context: Context, done: Mapping[str, bytes]) -> tuple[dict[str, bytes], list[str]]:
    """Return what a repair makes of the tree on top of what is done already, and what it did, in words."""
    tree = {**context.tree, **done}
    changes, notes = dict(done), []
    if repair.rule is not None:
        settings = tree.get(context.parameters_file, b"").decode("utf-8", "replace")
        fields = frozenset(
            key.removeprefix("parameters.") for key in parameters.read(settings) if key[:11] == "parameters."
        )
        found, reasons = edits.repaired(tree, fields, repair.rule)
        changes.update(found)
        notes += reasons
    if repair.moves and context.parameters_file in tree:
        text, moved = parameters.moved_all(tree[context.parameters_file].decode("utf-8"), repair.moves, context.bounds)
        if moved:
            changes[context.parameters_file] = text.encode()
            notes += moved
    for part in repair.parts:
        changes, more = _changes(part, context, changes)
        notes += more
    return changes, notes
