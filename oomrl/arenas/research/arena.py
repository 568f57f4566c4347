"""The arena as runners, faces and pages know it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from oomrl.arenas.engine import Arena, Json, Task
from oomrl.arenas.registry import ON_TAPE
from oomrl.arenas.research.agents import POLICIES
from oomrl.arenas.research.behaviour import summary_of_logs
from oomrl.arenas.research.engine import DESKS, MAX_STEPS, TAPE, TAPE_DESKS, ResearchEngine
from oomrl.arenas.research.laboratory import ReferenceLaboratory
from oomrl.arenas.research.probes import PROBES
from oomrl.arenas.research.sandboxed import sandbox_laboratory
from oomrl.arenas.research.synthetic import LEVELS
from oomrl.arenas.research.tapes import panel_from
from oomrl.exchange.tape import Tape

_TITLES = {
    "model": "Write model code, train, backtest, submit one strategy or abstain",
    "features": "Compose causal features as data; the arena fits and trades them",
    "portfolio": "Blend forecasts of unknown worth into a portfolio",
    "backtest": "Find out which claimed backtests are honest, and trade one or none",
    "regime": "Trade block after block while signals fade and turn round",
}
#: As the manifest's checks know them; what is called hard has two steps.
_DIFFICULTY = {"l1": "easy", "l2": "medium", "l3": "hard", "l4": "hard", TAPE: "hard"}
LIMITS = (
    "Synthetic signals are linear in expressions of public fields; real ones are not.",
    "On a real tape nobody knows the ceiling: capture is the hidden Sharpe over 1.5, abstaining is worth 0.",
    "Impact is a formula; nobody trades against the player.",
    "The same bytes are promised on one machine with one version of numpy, not across machines.",
)
INSTRUCTIONS = """You are a quantitative researcher. You see a panel of anonymous names on public rows 0..T-1.
What you submit is traded on hidden rows after T: the signal of row t is executed at the close of row t+1 and
earns the return of row t+2, less costs. Some panels hold no signal at all: then the right answer is to abstain.
Every try counts against you: results that come from many tries are worth less as evidence.
Answer each turn with one JSON object {"tool": NAME, "arguments": {...}} and nothing else. Numbers shown by
tools are rounded. A malformed call is a protocol error; ten of them end the episode at -1, and so does ending
without a submission."""


def _tasks(names: Iterable[str]) -> dict[str, Task]:
    tasks = {}
    for name in names:
        desk, _, level = name.partition("@")
        tasks[name] = Task(name, _TITLES[desk], MAX_STEPS, _DIFFICULTY[level], tuple(DESKS[desk].tools))
    return tasks


def make_engine() -> ResearchEngine:
    """Return an engine that runs reference models here and all other model code in the sandbox."""
    return ResearchEngine(ReferenceLaboratory(sandbox_laboratory()))


def tool_schemas(desks: Iterable[str] = DESKS) -> tuple[Json, ...]:
    """Return one schema a tool name; a tool that desks share takes the arguments of all of them.

    An observation after a reset holds the task's own, narrower list, by which the engine judges.
    """
    merged: dict[str, Json] = {}
    for desk in desks:
        for tool in DESKS[desk].tools.values():
            schema = tool.schema()
            known = merged.get(tool.name)
            if known is None:
                merged[tool.name] = schema
                continue
            one, other = known["parameters"], schema["parameters"]
            known["parameters"] = {
                "type": "object",
                "properties": {**other["properties"], **one["properties"]},
                "required": [name for name in one["required"] if name in other["required"]],
                "additionalProperties": False,
            }
    return tuple(merged.values())


def arena_of(name: str, tasks: Iterable[str]) -> Arena:
    """Return the arena under a name with tasks of one's choice, `desk@level`."""
    return Arena(
        name=name,
        version="2.0.0",
        title="Find a signal without fooling yourself",
        make=make_engine,
        tasks=_tasks(tasks),
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
        limits=LIMITS,
        watch=("attempts_left", "errors_left"),
        habits=summary_of_logs,
        mcp_tools=True,
        tool_schemas=tool_schemas(),
    )


def arena_on_tape(source: str) -> Arena:
    """Return the arena on a real tape: the desks that need no planted truth, and so no oracle among the players.

    The version names the tape, so that a log replays on the one that it was played on alone.
    """
    from oomrl.exchange.tape_files import load_tape  # reads Parquet: a served arena does without

    tape = load_tape(source)
    arena = arena_of(ON_TAPE, [f"{desk}@{TAPE}" for desk in TAPE_DESKS])
    return replace(
        arena,
        version=f"{arena.version}+{tape.digest[:12]}",
        make=partial(_engine_on, tape),
        policies={name: policy for name, policy in POLICIES.items() if name != "oracle"},
        tool_schemas=tool_schemas(TAPE_DESKS),
    )


def _engine_on(tape: Tape) -> ResearchEngine:
    return ResearchEngine(ReferenceLaboratory(sandbox_laboratory()), tape=lambda seed: panel_from(tape, seed))


#: The arena that qualifies: every desk, easy to hard. `research_l4` and the like grow with the models.
ARENA = arena_of(
    "research",
    (
        "model@l3",
        "features@l1",
        "features@l4",
        "portfolio@l3",
        "backtest@l2",
        "regime@l1",
        "regime@l4",
    ),
)
LEVEL_ARENAS = {
    f"research_{level}": arena_of(f"research_{level}", [f"{desk}@{level}" for desk in DESKS]) for level in LEVELS
}
RESEARCH_L1, RESEARCH_L2, RESEARCH_L3, RESEARCH_L4 = (LEVEL_ARENAS[f"research_l{k}"] for k in (1, 2, 3, 4))
