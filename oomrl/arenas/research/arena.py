"""The arena as runners, faces and pages know it."""

from __future__ import annotations

from oomrl.arenas.engine import Arena, Task
from oomrl.arenas.research.agents import POLICIES
from oomrl.arenas.research.engine import DESKS, MAX_STEPS, ResearchEngine
from oomrl.arenas.research.laboratory import ReferenceLaboratory
from oomrl.arenas.research.probes import PROBES
from oomrl.arenas.research.synthetic import LEVELS

_TITLES = {
    "model": "Write model code, train, backtest, submit one strategy or abstain",
    "features": "Compose causal features as data; the arena fits and trades them",
    "portfolio": "Blend forecasts of unknown worth into a portfolio",
    "backtest": "Find out which claimed backtests are honest, and trade one or none",
    "regime": "Trade block after block while signals fade and turn round",
}
_DIFFICULTY = {"l1": "easy", "l2": "medium", "l3": "hard", "l4": "very hard"}
INSTRUCTIONS = """You are a quantitative researcher. You see a panel of anonymous names on public rows 0..T-1.
What you submit is traded on hidden rows after T: the signal of row t is executed at the close of row t+1 and
earns the return of row t+2, less costs. Some panels hold no signal at all: then the right answer is to abstain.
Every try counts against you: results that come from many tries are worth less as evidence.
Answer each turn with one JSON object {"tool": NAME, "arguments": {...}} and nothing else. Numbers shown by
tools are rounded. A malformed call is a protocol error; ten of them end the episode at -1, and so does ending
without a submission."""


def _tasks(level: str) -> dict[str, Task]:
    return {
        f"{desk}@{level}": Task(
            f"{desk}@{level}", _TITLES[desk], MAX_STEPS, _DIFFICULTY[level], tuple(DESKS[desk].tools)
        )
        for desk in DESKS
    }


def make_engine() -> ResearchEngine:
    """Return an engine that runs reference models here and all other model code in the sandbox."""
    return ResearchEngine(ReferenceLaboratory())


def arena_at(level: str) -> Arena:
    """Return the arena with its five tasks at one level of difficulty."""
    return Arena(
        name="research" if level == "l2" else f"research_{level}",
        version="2",
        title="Find a signal without fooling yourself",
        make=make_engine,
        tasks=_tasks(level),
        action_schema={
            "type": "object",
            "properties": {"tool": {"type": "string"}, "arguments": {"type": "object"}},
            "required": ["tool", "arguments"],
            "additionalProperties": False,
        },
        instructions=INSTRUCTIONS,
        policies=POLICIES,
        probes=PROBES,
        score_range=(-1.0, 1.0),
        limits=(
            "Synthetic signals are linear in expressions of public fields; real ones are not.",
            "On a real tape nobody knows the ceiling: capture is the hidden Sharpe over 1.5, abstaining is worth 0.",
            "Impact is a formula; nobody trades against the player.",
        ),
        mcp_tools=True,
    )


#: The arena that qualifies: every task at the second level. Harder ones grow with the models.
ARENA = arena_at("l2")
LEVEL_ARENAS = {f"research_{level}": arena_at(level) for level in LEVELS}
