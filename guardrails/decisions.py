"""What a strategy answers: its form, what it decides, and whether and how two decisions differ."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Told = Mapping[str, Any]
#: An action, the weights that it leads to, and its plans.
Decision = tuple[str, Told, Told]
PLAN = ("max_participation", "sessions", "limit_bps")


def decision_in(answer: Told, held: Mapping[str, float]) -> Decision:
    """Return what an answer decides: its action, the weights that it leads to, and its plans."""
    wanted = weights(answer) if answer["action"] == "target" else held
    return answer["action"], wanted, answer.get("plan") or {}


def apart(one: Decision, two: Decision) -> float:
    """Return how far two decisions are apart: in action, weights, and the share of what plans say otherwise."""
    (action, ours, plans), (other, theirs, wanted) = one, two
    said = [(plans.get(name) or {}, wanted.get(name) or {}) for name in sorted({*plans, *wanted})]
    differing = sum(not close(a.get(key), b.get(key), 1e-6) for a, b in said for key in {*a, *b})
    apart: float = sum(abs(ours.get(name, 0.0) - theirs.get(name, 0.0)) for name in sorted({*ours, *theirs}))
    return (1.0 if action != other else 0.0) + apart + differing / max(1, 3 * len(said))


def same_decision(one: Decision, two: Decision) -> bool:
    """Say whether two decisions are the same, but for the last digits."""
    (action, given, plans), (to, asked, wanted) = one, two
    return action == to and same_weights(given, asked) and close(plans, wanted, 1e-6, 1e-7)


@dataclass(frozen=True)
class Compared:
    """Decisions of two versions that were told the same: how many there were, how many differ, by how much the two
    furthest apart do, and what these say.
    """

    decisions: int = 0
    changed: int = 0
    furthest: float = 0.0
    largest: str = ""

    @classmethod
    def of(cls, where: str, ours: Sequence[Decision], theirs: Sequence[Decision]) -> Compared:
        """Compare the decisions of one run, `theirs` those of the code before."""
        pairs = [pair for pair in zip(ours, theirs, strict=False) if not same_decision(*pair)]
        if not pairs:
            return cls(len(ours))
        now, then = max(pairs, key=lambda pair: apart(*pair))
        return cls(len(ours), len(pairs), apart(now, then), f"{where}: {in_words(now)}; before: {in_words(then)}")

    @classmethod
    def all(cls, runs: Iterable[Compared]) -> Compared:
        """Return what several runs come to."""
        every = [cls(), *runs]
        most = max(every, key=lambda one: one.furthest)
        counts = sum(one.decisions for one in every), sum(one.changed for one in every)
        return cls(*counts, most.furthest, most.largest)


def in_words(decision: Decision) -> str:
    """Say what a decision comes to: in how many names, how much of equity, and the range of its orders' plans."""
    action, held, plans = decision
    shares = [weight for weight in held.values() if weight]
    said = f"{action}, {len(shares)} names, {sum(shares):.3g} of equity, {max(shares, default=0.0):.3g} at most in one"
    for key in PLAN:
        values = [plan[key] for plan in plans.values() if plan and plan.get(key) is not None]
        if values:
            said += f", {key} {min(values):.3g}" + (f" to {max(values):.3g}" if max(values) > min(values) else "")
    return said


def close(value: Any, expected: Any, relative: float = 1e-9, absolute: float = 1e-12) -> bool:
    """Compare plain values of exactly the same shape; NaN equals NaN, and a bool is no number."""
    if isinstance(expected, Mapping):
        return (
            type(value) is dict
            and value.keys() == expected.keys()
            and all(close(value[key], expected[key], relative, absolute) for key in expected)
        )
    if isinstance(expected, (list, tuple)):
        return (
            type(value) in (list, tuple)
            and len(value) == len(expected)
            and all(close(a, b, relative, absolute) for a, b in zip(value, expected, strict=True))
        )
    if isinstance(expected, bool) or expected is None or isinstance(expected, str):
        return type(value) is type(expected) and bool(value == expected)
    if type(value) not in (int, float):
        return False
    both = math.isnan(value) and math.isnan(expected)
    return both or math.isclose(value, expected, rel_tol=relative, abs_tol=absolute)


def weights(answer: Mapping[str, Any]) -> dict[str, float]:
    """Return the target weights of an answer that are not zero; none for hold."""
    given = answer.get("weights") or {}
    return {name: value for name, value in given.items() if value}


def same_weights(a: Mapping[str, float], b: Mapping[str, float]) -> bool:
    return all(math.isclose(a.get(name, 0.0), b.get(name, 0.0), rel_tol=1e-6, abs_tol=1e-7) for name in {*a, *b})


def contract(answer: Mapping[str, Any]) -> str:
    """Say what is wrong with one answer, or nothing."""
    if answer.get("action") == "hold":
        return ""
    if answer.get("action") != "target" or not isinstance(answer.get("weights"), dict):
        return f"Expected hold or target weights, was {str(answer)[:80]!r}."
    values = list(answer["weights"].values())
    if any(type(value) not in (int, float) or not math.isfinite(value) or value < 0 for value in values):
        return "Expected weights that are finite and not negative, was one that is not."
    return "" if sum(values) <= 1.0 + 1e-9 else f"Expected weights of at most 1 in sum, was {sum(values)}."
