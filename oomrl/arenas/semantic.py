"""The semantic checks that an OpenEnv manifest promises and its validator does not run.

Each check measures an arena from outside, through the engine's face, and says what it found.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from oomrl.arenas.agents.scripted import Scripted
from oomrl.arenas.engine import Arena, Json, Observation, canonical
from oomrl.arenas.episode import play, replay
from oomrl.arenas.log import read
from oomrl.arenas.runner import Ordering, ordering

ORACLE_TOLERANCE = 0.1
FLOOR_MARGIN = 0.1
MIN_HEADROOM = 0.1
MIN_SEPARATION = 0.02


@dataclass(frozen=True, slots=True)
class Check:
    """One check: its name, whether it holds, and the figures behind it."""

    name: str
    passed: bool
    measured: Json

    def to_json(self) -> Json:
        """Return plain values."""
        return {"check": self.name, "passed": self.passed, "measured": self.measured}


def semantic_checks(arena: Arena, seeds: int = 8, measured: Ordering | None = None) -> list[Check]:
    """Run all thirteen checks; `measured` saves measuring the ordering again."""
    order = measured or ordering(arena, "train", seeds)
    checks: list[Callable[[], Check]] = [
        lambda: seed_control(arena),
        lambda: episode_determinism(arena),
        lambda: episode_isolation(arena),
        lambda: verifier_determinism(arena),
        lambda: replayability(arena),
        lambda: no_solution_leakage(arena),
        lambda: oracle_max(arena, order),
        lambda: floor_gap(arena, order),
        lambda: canary_floor(arena, order),
        lambda: adversarial_floor(order),
        lambda: gameability_gap(order),
        lambda: difficulty_separation(arena),
        lambda: headroom(arena, order),
    ]
    return [check() for check in checks]


def _span(arena: Arena) -> float:
    return arena.score_range[1] - arena.score_range[0]


def _bytes(arena: Arena, seed: int, task: str, policy: str = "random") -> str:
    return play(arena, Scripted(policy), seed, task).log.head


def seed_control(arena: Arena) -> Check:
    """The seed decides: the same gives the same first observation or episode, another gives another."""
    same, differs = True, True
    for task in arena.tasks:
        same &= _bytes(arena, 5, task, "heuristic") == _bytes(arena, 5, task, "heuristic")
        engine = arena.make()
        logs = set()
        for seed in (5, 6, 7):
            observation = engine.reset(seed, task)
            seen = [canonical(observation.to_json())]
            act = arena.policies["heuristic"](5, engine)
            for _ in range(8):
                if observation.done:
                    break
                observation = engine.step(act(observation))
                seen.append(canonical(observation.to_json()))
            logs.add(b"".join(seen))
        differs &= len(logs) == 3
    return Check("seed_control", same and differs, {"same_seed_same": same, "other_seed_other": differs})


def episode_determinism(arena: Arena) -> Check:
    """A whole episode gives the same bytes twice, in every task."""
    different = [task for task in arena.tasks if _bytes(arena, 11, task) != _bytes(arena, 11, task)]
    return Check("episode_determinism", not different, {"different": different})


def episode_isolation(arena: Arena) -> Check:
    """An episode is the same after an abandoned one, and while another runs beside it."""
    tasks = list(arena.tasks)
    mixed = []
    for first, second in zip(tasks, tasks[1:] + tasks[:1], strict=True):
        alone = _trace(arena, arena.make(), first, None)
        used = arena.make()
        used.reset(99, second)
        used.step({})
        if _trace(arena, used, first, None) != alone:
            mixed.append(f"{first} after {second}")
        if _trace(arena, arena.make(), first, second) != alone:
            mixed.append(f"{first} beside {second}")
    return Check("episode_isolation", not mixed, {"mixed": mixed})


def _trace(arena: Arena, engine: Any, task: str, beside: str | None) -> list[bytes]:
    other = arena.make()
    other_seen = other.reset(77, beside) if beside else None
    seen = engine.reset(3, task)
    act = arena.policies["random"](3, engine)
    other_act = arena.policies["random"](4, other)
    answer = [canonical(seen.to_json())]
    for _ in range(25):
        if seen.done:
            break
        if other_seen is not None and not other_seen.done:
            other_seen = other.step(other_act(other_seen))
        seen = engine.step(act(seen))
        answer.append(canonical(seen.to_json()))
    return answer


def verifier_determinism(arena: Arena) -> Check:
    """Grading the same state again gives the same tree and changes nothing."""
    for task in arena.tasks:
        engine = arena.make()
        observation = engine.reset(2, task)
        act = arena.policies["heuristic"](2, engine)
        while not observation.done:
            observation = engine.step(act(observation))
        before = canonical(engine.state)
        grades = {canonical(engine.grade().to_json()) for _ in range(3)}
        if len(grades) != 1 or canonical(engine.state) != before:
            return Check("verifier_determinism", False, {"task": task})
    return Check("verifier_determinism", True, {"tasks": len(arena.tasks)})


def replayability(arena: Arena) -> Check:
    """A written log, read back, replays to its score and hash."""
    heads = 0
    for task in arena.tasks:
        episode = play(arena, Scripted("random"), 21, task)
        again = replay(arena, read(episode.log.text().splitlines()))
        heads += again.log.head == episode.log.head and again.score == episode.score
    return Check("replayability", heads == len(arena.tasks), {"replayed": heads, "of": len(arena.tasks)})


def no_solution_leakage(arena: Arena) -> Check:
    """No canary of the hidden state appears in an observation, the state, the schema or the instructions."""
    leaks: set[str] = set()
    watched = 0
    schema = json.dumps([arena.action_schema, arena.instructions, list(arena.tool_schemas)])
    for task in arena.tasks:
        for policy in ("heuristic", "random"):
            engine = arena.make()
            observation: Observation = engine.reset(13, task)
            act = arena.policies[policy](13, engine)
            while True:
                shown = canonical(observation.to_json()).decode() + canonical(engine.state).decode()
                for canary in engine.hidden().get("canaries", []):
                    watched += 1
                    numeric = any(letter.isdigit() for letter in canary)
                    if canary in shown or (numeric and canary in schema):
                        leaks.add(canary)
                if observation.done:
                    break
                observation = engine.step(act(observation))
    return Check("no_solution_leakage", not leaks and watched > 0, {"leaks": sorted(leaks), "watched": watched})


def oracle_max(arena: Arena, order: Ordering) -> Check:
    """The oracle reaches the top of the range within the declared tolerance."""
    score = order.scores["oracle"].mean
    least = arena.score_range[1] - ORACLE_TOLERANCE * _span(arena)
    return Check("oracle_max", score >= least, {"oracle": score, "at_least": least})


def floor_gap(arena: Arena, order: Ordering) -> Check:
    """Random play lies at least the declared margin below the oracle and below the heuristic."""
    scores = order.scores
    gap = scores["oracle"].mean - scores["random"].mean
    worked = scores["heuristic"].mean - scores["random"].mean
    least = FLOOR_MARGIN * _span(arena)
    passed = gap >= least and worked >= least
    return Check("floor_gap", passed, {"oracle": gap, "heuristic": worked, "at_least": least})


def canary_floor(arena: Arena, order: Ordering) -> Check:
    """The shipped bad trajectories score what they are shipped with, below the heuristic over tasks."""
    shipped = json.loads(
        (files("oomrl.arenas") / arena.name.split("_")[0] / "canaries.json").read_text(encoding="utf-8")
    )
    rows = shipped["canaries"]
    scores: dict[str, list[float]] = {}
    changed = []
    for row in rows:
        engine = arena.make()
        observation = engine.reset(row["seed"], row["task"])
        index = 0
        while not observation.done:
            observation = engine.step(row["actions"][index % len(row["actions"])])
            index += 1
        score = engine.grade().total
        scores.setdefault(row["name"], []).append(score)
        if abs(score - row["score"]) > 1e-9:
            changed.append(row["name"])
    highest = max(sum(of_name) / len(of_name) for of_name in scores.values())
    ceiling = order.scores["heuristic"].mean - FLOOR_MARGIN * _span(arena)
    passed = bool(rows) and highest <= ceiling and not changed
    return Check("canary_floor", passed, {"highest": highest, "ceiling": ceiling, "changed": changed})


def adversarial_floor(order: Ordering) -> Check:
    """Every probe lies below the heuristic, its paired interval above zero."""
    lows = {name: gap.low for name, gap in order.above_floor.items()}
    worst = min(lows, key=lambda name: lows[name])
    return Check("adversarial_floor", lows[worst] > 0, {"closest": worst, "low": lows[worst]})


def gameability_gap(order: Ordering) -> Check:
    """The best probe lies below the heuristic by a margin, not by luck."""
    probes = {name: gap.mean for name, gap in order.above_floor.items() if name not in ("random", "blinded")}
    best = min(probes, key=lambda name: probes[name])
    return Check("gameability_gap", probes[best] >= FLOOR_MARGIN, {"best_probe": best, "gap": probes[best]})


def difficulty_separation(arena: Arena, seeds: int = 12) -> Check:
    """The heuristic finds the easy tasks easier than the hard ones."""
    means: dict[str, list[float]] = {}
    for task in arena.tasks.values():
        scores = [play(arena, Scripted("heuristic"), seed, task.name).score for seed in arena.seeds("train", seeds)]
        means.setdefault(task.difficulty, []).extend(scores)
    by_label = {label: sum(scores) / len(scores) for label, scores in means.items()}
    gap = by_label.get("easy", 0.0) - by_label.get("hard", 1.0)
    return Check("difficulty_separation", gap >= MIN_SEPARATION, by_label)


def headroom(arena: Arena, order: Ordering) -> Check:
    """Between the heuristic and the oracle is room for a better model."""
    room = order.below_oracle.mean
    least = MIN_HEADROOM * _span(arena)
    return Check("headroom", room >= least, {"room": room, "at_least": least})
