"""Four scenarios and their generated variants: work, resources, and an event queue drawn from a seed."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from oomrl.arenas.organization.rules import SKILLS, SYMPTOM


@dataclass(frozen=True, slots=True)
class Work:
    """One task of the organisation. `deadline` is a step, `effort` in steps of one full-speed role."""

    id: str
    kind: str
    effort: float
    deadline: int
    priority: int


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happens at the start of a step.

    kind `risk` (fuse: steps until it breaks into an incident; symptom: what it looks like), `incident`,
    `shortage` (amount of compute lost), `policy` (amount: the new approval threshold, fuse: steps to adopt).
    """

    step: int
    kind: str
    id: str
    nature: str = ""
    severity: str = "medium"
    symptom: str = ""
    fuse: int = 0
    amount: float = 0.0


@dataclass(frozen=True, slots=True)
class Scenario:
    """A drawn scenario. `masked` is the kind of risk that metrics do not show until `auditee` is audited."""

    id: str
    title: str
    works: tuple[Work, ...]
    compute: float
    budget: float
    personnel: float
    threshold: float
    events: tuple[Event, ...]
    masked: str = ""
    auditee: str = ""


_TITLES = {
    "product_launch_failure": "A launch goes wrong",
    "resource_conflict": "Two teams, one cluster",
    "silent_data_drift": "The numbers look fine",
    "policy_change_shock": "The law has changed",
}
#: Per scenario: risk natures in order, shortages, incidents, policy changes.
_SHAPES: dict[str, tuple[tuple[str, ...], int, int, int]] = {
    "product_launch_failure": (("quality", "capacity", "quality"), 0, 1, 0),
    "resource_conflict": (("capacity", "compliance"), 2, 0, 0),
    "silent_data_drift": (("data_drift", "quality", "data_drift"), 0, 0, 0),
    "policy_change_shock": (("compliance", "capacity"), 0, 1, 1),
}
SCENARIOS = tuple(_TITLES)


def make_scenario(seed: int, task: str, steps: int) -> Scenario:
    """Draw the scenario and its variant. Events of a short task fall into its first two thirds."""
    draw = Random(f"organization:{task}:{seed}")
    name = SCENARIOS[draw.randrange(len(SCENARIOS))]
    natures, shortages, incidents, policies = _SHAPES[name]
    kinds = [*SKILLS, draw.choice(list(SKILLS))]
    draw.shuffle(kinds)
    works = tuple(
        Work(
            f"task-{index}",
            kind,
            float(draw.randint(4, 8)),
            draw.randint(steps // 2, steps - 2),
            draw.randint(1, 3),
        )
        for index, kind in enumerate(kinds, start=1)
    )
    last = max(6, int(steps * 0.62))
    slots = sorted(draw.sample(range(1, last), len(natures) + shortages + incidents + policies))
    draw.shuffle(slots)
    events: list[Event] = []
    critical = draw.randrange(len(natures))
    for index, nature in enumerate(natures):
        looks = nature if draw.random() < 0.75 else draw.choice([n for n in SYMPTOM if n != nature])
        severity = "critical" if index == critical else draw.choice(("low", "medium", "high"))
        fuse = draw.randint(9, 13)
        events.append(Event(slots.pop(), "risk", f"risk-{index + 1}", nature, severity, SYMPTOM[looks], fuse))
    for index in range(incidents):
        nature = draw.choice(("quality", "capacity"))
        severity = draw.choice(("medium", "high"))
        events.append(Event(slots.pop(), "incident", f"incident-{index + 1}", nature, severity))
    for index in range(shortages):
        events.append(Event(slots.pop(), "shortage", f"shortage-{index + 1}", amount=float(draw.randint(20, 35))))
    for index in range(policies):
        events.append(Event(slots.pop(), "policy", f"policy-{index + 1}", fuse=8, amount=float(draw.randint(8, 14))))
    events.sort(key=lambda event: (event.step, event.id))
    masked = "data_drift" if name == "silent_data_drift" else ""
    return Scenario(
        name,
        _TITLES[name],
        works,
        float(draw.randint(70, 90)),
        float(draw.randint(45, 60)),
        float(draw.randint(4, 6)),
        float(draw.randint(20, 30)),
        tuple(events),
        masked,
        draw.choice(("data_analyst", "engineer", "operations")) if masked else "",
    )
