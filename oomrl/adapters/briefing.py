"""What a role is told: the assignment that its prompt is rendered from, masked where a model could remember."""

from __future__ import annotations

import ast
import json
import random
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from guardrails.policy import Policy, parse_policy
from oomrl.agents.roles import Assignment, Rendered, Role, render
from oomrl.domain import diagnostic as diagnostics
from oomrl.domain.records import StoredDiagnostic
from oomrl.exchange.tape import Tape
from oomrl.ports import Attempt, Context

#: Sentences for the prompt; the gate's finding codes say more.
RULES = (
    "One unified diff against the files shown, or one line that begins with ESCALATE: and the reason.",
    "Only the files named as editable may change; tests, golden cases, configuration and the policy are locked.",
    "Source may import only what the policy allows; no input or output, clock, environment, randomness or reflection.",
    "Protected financial mathematics may not change.",
    "Statement and branch coverage of the tests must stay at 95 % or above; every changed line must run.",
    "Tests must tell each new condition, choice or number from another: without such tests use what stands.",
    "What no test demands must decide as it did, or nearer to the version that a person keeps and does not show you.",
    "A hidden judge checks that no decision depends on the future, on names, on dates or on the price level.",
    "The candidate must beat the version that trades by more than luck, net of all costs, and stay invested.",
)


@dataclass(frozen=True, slots=True)
class Told:
    """What has been said and tried about a loss so far: earlier attempts, a reviewer's words, the diff under attack."""

    earlier: tuple[Attempt, ...] = ()
    comments: tuple[str, ...] = ()
    patch: str = ""


class Briefing:
    """Make prompts of diagnostics. `masked` hides names, dates and price levels, by a mask drawn from the seed."""

    def __init__(self, tape: Tape, masked: bool, seed: int) -> None:
        self.tape, self.masked, self.seed = tape, masked, seed

    def prompt(
        self,
        role: Role,
        diagnostic: StoredDiagnostic,
        tree: Mapping[str, bytes],
        told: Told,
        attempt: int,
        budget: int,
    ) -> tuple[Rendered, Context]:
        """Return a role's prompt within its budget of tokens, and the values behind it."""
        policy = parse_policy(tree["policy.toml"])
        phase = policy.phases["tests" if role is Role.TEST_AUTHOR else "logic"]
        payload, mask = dict(diagnostic.payload), None
        if self.masked:
            mask = self._mask(diagnostic, policy)
            payload = diagnostics.masked(diagnostics.Diagnostic.model_validate(payload), mask).model_dump(mode="json")
        assignment = Assignment(
            diagnostic=payload,
            mandate=diagnostic.mandate,
            sources=sources(tree, payload),
            rules=RULES,
            editable=phase.editable,
            tests=demands(tree),
            earlier=told.earlier,
            comments=told.comments,
            patch=told.patch,
        )
        context = Context(
            diagnostic=payload,
            mandate=diagnostic.mandate,
            tree=tree,
            bounds={key: _bound(value) for key, value in policy.bounds.items()},
            editable=phase.editable,
            attempt=attempt,
            earlier=told.earlier,
        )
        return render(role, assignment, mask, budget), context

    def _mask(self, diagnostic: StoredDiagnostic, policy: Policy) -> diagnostics.Mask:
        """Return a mask drawn from the run's seed: shuffled numbers for names, shifted weeks, rescaled prices."""
        chance = random.Random(f"mask/{self.seed}/{diagnostic.day.isoformat()}")
        seen = sorted(symbol for symbol in self.tape.until(diagnostic.day).symbols)
        chance.shuffle(seen)
        prices = frozenset(key.removeprefix("parameters.") for key, bound in policy.bounds.items() if bound.price)
        weeks = chance.randrange(400, 1_200) * chance.choice((-1, 1))
        return diagnostics.Mask(diagnostics.numbered(seen), 7 * weeks, 2.0 ** chance.choice((-2, -1, 1, 2)), prices)


def sources(tree: Mapping[str, bytes], diagnostic: Mapping[str, object]) -> dict[str, bytes]:
    """Return the strategy's files, those first that decided: what the diagnostic names, then what that imports.

    A budget cuts from the end.
    """
    files = {path: data for path, data in tree.items() if path == "strategy.toml" or path.startswith("src/")}
    named = json.dumps(diagnostic.get("diagnostics", {}))
    order = [path for path in sorted(files) if re.search(rf"(?<![\w/]){re.escape(path)}(?!\w)", named)]
    order += [path for path in ("strategy.toml",) if path in files and path not in order]
    for path in order:
        order += [other for other in _imported(files[path], path, files) if other not in order]
    return {path: files[path] for path in (*order, *(path for path in sorted(files) if path not in order))}


def _imported(data: bytes, path: str, files: Mapping[str, bytes]) -> list[str]:
    """Return the files of the strategy that a module imports, in the order of its lines; it is parsed, never run."""
    try:
        module = ast.parse(data) if path.endswith(".py") else ast.Module([], [])
    except (SyntaxError, ValueError):
        return []
    names: list[str] = []
    for node in ast.walk(module):
        if isinstance(node, ast.ImportFrom):
            begin = "." if node.level else ""
            names += [
                f"{begin}{node.module or ''}",
                *(f"{begin}{node.module or ''}.{item.name}" for item in node.names),
            ]
        elif isinstance(node, ast.Import):
            names += [item.name for item in node.names]
    folder = path.rpartition("/")[0]
    stems = [f"{folder}/{name[1:]}" if name.startswith(".") else name for name in names]
    stems = [stem.replace(".", "/") for stem in stems]
    return [p for stem in stems for p in (f"{stem}.py", f"src/{stem}.py") if p in files and p != path]


def demands(tree: Mapping[str, bytes]) -> tuple[str, ...]:
    """Return each locked test's name and the sentence in which it says what it demands, where it says one."""
    found = []
    for path, data in sorted(tree.items()):
        if not path.startswith("tests/") or not path.endswith(".py"):
            continue
        try:
            module = ast.parse(data)
        except (SyntaxError, ValueError):
            continue
        for node in ast.walk(module):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test"):
                said = (ast.get_docstring(node) or "").split("\n", 1)[0]
                found.append(f"{path}::{node.name}" + (f": {said}" if said else ""))
    return tuple(found)


def _bound(value: object) -> dict[str, object]:
    return {name: item for name, item in asdict(value).items() if item not in (None, ())}  # type: ignore[call-overload]
