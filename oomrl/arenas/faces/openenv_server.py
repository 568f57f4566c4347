"""An arena as an OpenEnv environment and server. Needs the extra `openenv`."""

from __future__ import annotations

import secrets
from importlib.resources import files
from typing import Any

from fastmcp import FastMCP
from fastmcp.tools import Tool
from fastmcp.tools.base import ToolResult
from openenv.core.env_server.http_server import create_app
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.mcp_environment import MCPEnvironment
from openenv.core.env_server.mcp_types import CallToolAction, CallToolObservation, ListToolsAction
from openenv.core.env_server.types import Action, EnvironmentMetadata
from openenv.core.env_server.types import Observation as WireObservation
from openenv.core.rubrics.base import Rubric
from pydantic import PrivateAttr

from oomrl.arenas.engine import Arena, Json, Observation, Part, plain
from oomrl.arenas.faces.openenv_models import ArenaAction, ArenaObservation, ArenaState, action_model
from oomrl.arenas.registry import find
from oomrl.errors import Mistake

MAX_SESSIONS = 64
TASKS_A_SPLIT = 1000
"""Seeds that the task API lists for each task and split."""


class PartRubric(Rubric):
    """One node of the engine's rubric tree: reads its value out of an observation, so that both agree."""

    def __init__(self, part: Part, path: tuple[str, ...] = ()) -> None:
        super().__init__()
        self._path = path
        for child in part.parts:
            setattr(self, child.name, PartRubric(child, (*path, child.name)))

    def forward(self, action: Any, observation: Any) -> float:
        """Return the node's total and let each child record its own."""
        for child in self._rubric_children.values():
            child(action, observation)
        node = observation.parts
        for name in self._path:
            node = next((part for part in (node or {}).get("parts", []) if part["name"] == name), None)
        return float(node["total"]) if node else 0.0


class _Episode:
    """An engine and what the wire needs to know beside it."""

    def __init__(self, arena: Arena) -> None:
        self.arena = arena
        self.engine = arena.make()
        self.task: str | None = None
        self.episode_id: str | None = None
        self.steps = 0
        self.done = False
        self.last: Observation | None = None

    def reset(self, seed: int | None, episode_id: str | None, options: Json) -> ArenaObservation:
        tasks = list(self.arena.tasks)
        if "index" in options:
            spec = task_spec(self.arena, str(options.get("split", "train")), int(options["index"]))
            task, seed = spec["task"], spec["seed"]
        else:
            task = options.get("task") or tasks[0]
        if task not in tasks:
            raise Mistake(f"Expected a task of {', '.join(tasks)}, was {task!r}")
        drawn = secrets.randbelow(2**31) if seed is None else seed
        self.task, self.episode_id = task, episode_id or secrets.token_hex(8)
        self.steps, self.done = 0, False
        return self._wrap(self.engine.reset(drawn, task))

    def step(self, action: Any) -> ArenaObservation:
        if self.task is None:
            raise Mistake("Expected a running episode, was none: episodes run over /ws, /step is stateless")
        observation = self.engine.step(plain(action))
        self.steps += 1
        return self._wrap(observation)

    def _wrap(self, observation: Observation) -> ArenaObservation:
        self.done, self.last = observation.done, observation
        grade = self.engine.grade() if observation.done else None
        return ArenaObservation(
            done=observation.done,
            reward=observation.reward,
            data=observation.data,
            parts=observation.parts.to_json() if observation.parts else None,
            score=grade.total if grade else None,
            grade=grade.to_json() if grade else None,
        )

    def state(self) -> ArenaState:
        return ArenaState(
            episode_id=self.episode_id,
            step_count=self.steps,
            task=self.task,
            done=self.done,
            public=self.engine.state if self.task else {},
        )


def task_spec(arena: Arena, split: str, index: int) -> Json:
    """Return one entry of the task API: a task and a seed. Raises IndexError beyond the split."""
    tasks = list(arena.tasks)
    if split not in ("train", "held_out") or not 0 <= index < TASKS_A_SPLIT * len(tasks):
        raise IndexError(f"Expected train or held_out and an index below {TASKS_A_SPLIT * len(tasks)}")
    task = tasks[index % len(tasks)]
    seed = arena.seeds(split, 1)[0] + index // len(tasks)
    return {"id": f"{split}-{index}", "index": index, "task": task, "seed": seed}


class _TaskApi:
    """OpenEnv's task discovery over tasks and seeds."""

    _episode: _Episode

    def list_splits(self) -> list[str]:
        """Return the two splits: seeds to train on, and seeds that qualify."""
        return ["train", "held_out"]

    def num_tasks(self, split: str) -> int:
        """Return the number of task and seed pairs."""
        return TASKS_A_SPLIT * len(self._episode.arena.tasks)

    def get_task(self, split: str, index: int) -> Json:
        """Return one pair."""
        return task_spec(self._episode.arena, split, index)

    def list_tasks(self, split: str) -> list[Json]:
        """Return the first pairs as a preview."""
        return [self.get_task(split, index) for index in range(10 * len(self._episode.arena.tasks))]

    def get_task_range(self, split: str, start: int | None = None, stop: int | None = None) -> list[Json]:
        """Return a slice of the pairs."""
        chosen = range(self.num_tasks(split))[slice(start, stop)]
        return [self.get_task(split, index) for index in chosen]

    def get_metadata(self) -> EnvironmentMetadata:
        """Return name, version and README."""
        arena = self._episode.arena
        folder = arena.name.split("_")[0]
        return EnvironmentMetadata(
            name=arena.name,
            description=arena.title,
            version=arena.version,
            readme_content=(files("oomrl.arenas") / folder / "README.md").read_text(encoding="utf-8"),
        )


class ArenaEnvironment(_TaskApi, Environment[ArenaAction, ArenaObservation, ArenaState]):
    """One session of an arena whose actions are steps."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, arena: Arena) -> None:
        self._episode = _Episode(arena)
        super().__init__(rubric=PartRubric(reward_tree(arena)))

    def reset(self, seed: int | None = None, episode_id: str | None = None, **options: Any) -> ArenaObservation:
        """Start an episode: `task=` by name, or `split=` and `index=` of the task API."""
        self._reset_rubric()
        return self._episode.reset(seed, episode_id, options)

    def step(self, action: ArenaAction, timeout_s: float | None = None, **options: Any) -> ArenaObservation:
        """Play one action; the rubric tree records the parts of its reward."""
        observation = self._episode.step(action.action)
        self._apply_rubric(action, observation)
        return observation

    @property
    def state(self) -> ArenaState:
        """Return the public state."""
        return self._episode.state()


class ArenaTool(Tool):
    """One of an arena's tools behind MCP: calling it plays a step."""

    _episode: _Episode = PrivateAttr()

    async def run(self, arguments: dict[str, Any]) -> ToolResult:
        """Play {tool, arguments} and return the observation."""
        if self._episode.task is None or self._episode.done:
            # /mcp answers without a session: an episode of the first task then starts by itself.
            self._episode.reset(None, None, {})
        wrapped = self._episode.step({"tool": self.name, "arguments": arguments})
        return ToolResult(structured_content=wrapped.model_dump())


class ArenaToolEnvironment(_TaskApi, MCPEnvironment):
    """One session of an arena whose actions are tool calls: over steps as over MCP."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, arena: Arena) -> None:
        self._episode = _Episode(arena)
        server: FastMCP = FastMCP(arena.name)
        for schema in arena.tool_schemas or _bare_schemas(arena):
            tool = ArenaTool(name=schema["name"], description=schema["description"], parameters=schema["parameters"])
            tool._episode = self._episode
            server.add_tool(tool)
        super().__init__(server)
        self.rubric = PartRubric(reward_tree(arena))

    @property
    def supports_code_mode(self) -> bool:
        """Never: code mode runs what a client sends inside the server's process."""
        return False

    def execute_code(self, code: str) -> WireObservation:
        """Refuse: see `supports_code_mode`."""
        raise Mistake("Expected tool calls, was code: this arena runs no client code in its process")

    def reset(self, seed: int | None = None, episode_id: str | None = None, **options: Any) -> ArenaObservation:
        """Start an episode: `task=` by name, or `split=` and `index=` of the task API."""
        self._reset_rubric()
        return self._episode.reset(seed, episode_id, options)

    def step(self, action: Action, timeout_s: float | None = None, **options: Any) -> WireObservation:
        """Play a tool call, or answer a listing of the tools."""
        if isinstance(action, ListToolsAction):
            return super().step(action, timeout_s=timeout_s, **options)
        if isinstance(action, CallToolAction):
            observation = self._episode.step({"tool": action.tool_name, "arguments": action.arguments})
            return CallToolObservation(
                tool_name=action.tool_name,
                result=observation.model_dump(),
                done=observation.done,
                reward=observation.reward,
            )
        return self._step_impl(action, timeout_s=timeout_s, **options)

    async def step_async(self, action: Action, timeout_s: float | None = None, **options: Any) -> WireObservation:
        """Do as `step` does; listings go the asynchronous way."""
        if isinstance(action, ListToolsAction):
            return await super().step_async(action, timeout_s=timeout_s, **options)
        return self.step(action, timeout_s=timeout_s, **options)

    def _step_impl(self, action: Action, timeout_s: float | None = None, **options: Any) -> WireObservation:
        if not isinstance(action, ArenaAction):
            raise Mistake(f"Expected an action of the arena, was {type(action).__name__}")
        observation = self._episode.step(action.action)
        self._apply_rubric(action, observation)
        return observation

    @property
    def state(self) -> ArenaState:
        """Return the public state."""
        return self._episode.state()


def reward_tree(arena: Arena) -> Part:
    """Return the shape of the arena's reward: that of a refused step on an episode of its own."""
    engine = arena.make()
    engine.reset(0, next(iter(arena.tasks)))
    return engine.step({}).parts or Part("reward")


def make_app(name: str, max_sessions: int = MAX_SESSIONS) -> Any:
    """Return the ASGI application that serves an arena: /ws, /mcp, /health, /metadata, /schema, task API."""
    arena = find(name)

    def make() -> Environment[Any, Any, Any]:
        return ArenaToolEnvironment(arena) if arena.mcp_tools else ArenaEnvironment(arena)

    return create_app(
        make,
        action_model(arena),
        ArenaObservation,
        env_name=arena.name,
        max_concurrent_envs=max_sessions,
        state_cls=ArenaState,
    )


def serve(name: str, host: str = "127.0.0.1", port: int = 8010, max_sessions: int = MAX_SESSIONS) -> None:
    """Serve an arena until interrupted."""
    import uvicorn  # only servers need it

    uvicorn.run(make_app(name, max_sessions), host=host, port=port, log_level="warning")


def _bare_schemas(arena: Arena) -> list[Json]:
    names = sorted({tool for task in arena.tasks.values() for tool in task.tools})
    return [{"name": name, "description": name, "parameters": {"type": "object"}} for name in names]
