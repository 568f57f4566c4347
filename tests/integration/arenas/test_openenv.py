"""Served arenas over WebSocket and MCP, where the extra `openenv` is installed (`make openenv-check`).

Elsewhere these tests skip and say so: the package and its pinned companions stay out of the main environment.
"""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("openenv", reason="the extra openenv is not installed: run make openenv-check")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")

import httpx  # noqa: E402
import uvicorn  # noqa: E402
import yaml  # noqa: E402
from openenv.core.env_server.mcp_types import CallToolAction  # noqa: E402
from openenv.core.mcp_client import MCPToolClient  # noqa: E402

from oomrl.arenas.engine import Arena, Json, canonical  # noqa: E402
from oomrl.arenas.faces.openenv_client import ArenaClient  # noqa: E402
from oomrl.arenas.faces.openenv_models import ArenaAction  # noqa: E402
from oomrl.arenas.faces.openenv_server import (  # noqa: E402
    TASKS_A_SPLIT,
    ArenaEnvironment,
    ArenaToolEnvironment,
    make_app,
)
from oomrl.arenas.registry import find  # noqa: E402
from oomrl.arenas.semantic import FLOOR_MARGIN, ORACLE_TOLERANCE  # noqa: E402
from oomrl.errors import Mistake  # noqa: E402

ARENAS = ("committee", "organization", "research")
#: Desks of research whose reference players run no model code, and one of these players.
LIGHT = {"research": (("portfolio", "features"), "simple")}


def tasks_of(arena: Arena) -> tuple[str, ...]:
    if arena.name not in LIGHT:
        return tuple(arena.tasks)
    desks = LIGHT[arena.name][0]
    return tuple(name for name in arena.tasks if name.partition("@")[0] in desks)


class Server:
    """A served arena in a thread of its own."""

    def __init__(self, name: str, sessions: int = 64) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        config = uvicorn.Config(make_app(name, sessions), host="127.0.0.1", port=port, log_level="error")
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, daemon=True)

    def __enter__(self) -> Server:
        self._thread.start()
        for _ in range(200):
            if self._server.started:
                return self
            time.sleep(0.05)
        raise TimeoutError("Expected the server to start within 10 s, did not")

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join(10)


@pytest.fixture(scope="module", params=ARENAS)
def served(request: pytest.FixtureRequest) -> Iterator[tuple[Arena, str]]:
    with Server(request.param) as server:
        yield find(request.param), server.url


def actions_of(arena: Arena, seed: int, task: str) -> tuple[list[Json], list[bytes]]:
    """Return an in-process episode: its actions, and the bytes of each observation."""
    engine = arena.make()
    observation = engine.reset(seed, task)
    act = arena.policies[LIGHT[arena.name][1] if arena.name in LIGHT else "heuristic"](seed, engine)
    actions, seen = [], [canonical(observation.to_json())]
    while not observation.done:
        actions.append(dict(act(observation)))
        observation = engine.step(actions[-1])
        seen.append(canonical(observation.to_json()))
    return actions, seen


def as_bytes(result: Any) -> bytes:
    seen = result.observation
    return canonical({"data": seen.data, "done": result.done, "reward": result.reward, "parts": seen.parts})


async def play(url: str, seed: int, task: str, actions: list[Json]) -> tuple[list[bytes], float]:
    async with ArenaClient(base_url=url) as client:
        result = await client.reset(seed=seed, task=task)
        seen = [as_bytes(result)]
        for action in actions:
            result = await client.step(action)
            seen.append(as_bytes(result))
        assert result.done
        return seen, result.observation.score


def test_the_wire_carries_the_same_bytes_as_the_engine(served: tuple[Arena, str]) -> None:
    arena, url = served
    for task in tasks_of(arena):
        actions, expected = actions_of(arena, 7, task)
        seen, _ = asyncio.run(play(url, 7, task, actions))
        assert seen == expected


def test_eight_sessions_at_once_do_not_touch_each_other(served: tuple[Arena, str]) -> None:
    arena, url = served
    task = tasks_of(arena)[0]
    episodes = [actions_of(arena, seed, task) for seed in range(8)]

    async def all_at_once() -> list[tuple[list[bytes], float]]:
        return await asyncio.gather(*(play(url, seed, task, actions) for seed, (actions, _) in enumerate(episodes)))

    for (seen, _), (_, expected) in zip(asyncio.run(all_at_once()), episodes, strict=True):
        assert seen == expected


def test_a_malformed_action_is_costed_and_not_rejected_for_free(served: tuple[Arena, str]) -> None:
    arena, url = served

    async def send() -> Any:
        async with ArenaClient(base_url=url) as client:
            await client.reset(seed=1, task=tasks_of(arena)[0])
            return await client.step({"action": "win", "reward": 1.0})

    result = asyncio.run(send())
    assert result.observation.data.get("error") or result.observation.data.get("errors")


def test_nothing_hidden_is_in_state_schema_metadata_or_mcp(served: tuple[Arena, str]) -> None:
    arena, url = served
    engine = arena.make()
    task = tasks_of(arena)[-1]
    engine.reset(13, task)

    async def read_state() -> str:
        async with ArenaClient(base_url=url) as client:
            await client.reset(seed=13, task=task)
            state = await client.state()
            return str(state.model_dump_json())

    listing = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    shown = [
        asyncio.run(read_state()),
        json.dumps(httpx.get(f"{url}/schema").json()["state"]),
        json.dumps(httpx.get(f"{url}/schema").json()["observation"]),
        httpx.post(f"{url}/mcp", json=listing).text,
    ]
    canaries = engine.hidden()["canaries"]
    assert canaries
    for text in shown:
        assert not [canary for canary in canaries if canary in text]
        assert '"seed"' not in text


def test_a_session_beyond_the_limit_is_refused() -> None:
    async def open_two(url: str) -> None:
        async with ArenaClient(base_url=url) as first:
            await first.reset(seed=1)
            async with ArenaClient(base_url=url) as second:
                await second.reset(seed=1)

    with Server("committee", sessions=1) as server, pytest.raises(Exception, match="(?i)capacity|session"):
        asyncio.run(open_two(server.url))


def environment_of(name: str) -> Any:
    arena = find(name)
    return ArenaToolEnvironment(arena) if arena.mcp_tools else ArenaEnvironment(arena)


@pytest.mark.parametrize("name", ARENAS)
def test_the_rubric_tree_repeats_the_engines_parts(name: str) -> None:
    environment = environment_of(name)
    seen = environment.reset(seed=3, task=tasks_of(find(name))[0])
    seen = environment.step(ArenaAction(action={"action": "hold"}))
    assert seen.parts is not None
    scores = {path: rubric.last_score for path, rubric in environment.rubric.named_rubrics()}
    for part in seen.parts["parts"]:
        assert scores[part["name"]] == part["total"]


def test_tools_are_listed_and_called_over_the_wire_and_code_mode_is_refused() -> None:
    arena = find("research")

    async def call(url: str) -> tuple[list[str], Any]:
        async with MCPToolClient(base_url=url) as client:
            await client.reset(seed=3, task="features@l1")
            names = [tool.name for tool in await client.list_tools()]
            answer = await client.call_tool("describe_field", field="a1")
            with pytest.raises(RuntimeError, match="Unknown tool"):
                await client.call_tool("win", x=1)
            return names, answer

    with Server("research") as server:
        names, answer = asyncio.run(call(server.url))
    assert answer["data"]["tick"] == 1
    assert set(names) == {schema["name"] for schema in arena.tool_schemas}
    environment = ArenaToolEnvironment(arena)
    assert not environment.supports_code_mode
    with pytest.raises(Mistake, match="no client code"):
        environment.execute_code("result = 1")


def test_a_tool_call_plays_the_same_step_as_an_action() -> None:
    arena = find("research")
    arguments = {"field": "a1"}
    by_tool, by_action = ArenaToolEnvironment(arena), ArenaToolEnvironment(arena)
    for environment in (by_tool, by_action):
        environment.reset(seed=3, task="features@l1")
    called = by_tool.step(CallToolAction(tool_name="describe_field", arguments=arguments))
    action = ArenaAction(action={"tool": "describe_field", "arguments": arguments})
    stepped = by_action.step(action)
    assert canonical(called.result) == canonical(stepped.model_dump())


@pytest.mark.parametrize("name", ARENAS)
def test_the_task_api_lists_tasks_and_seeds(name: str) -> None:
    environment = environment_of(name)
    assert environment.list_splits() == ["train", "held_out"]
    first, held = environment.get_task("train", 5), environment.get_task("held_out", 5)
    assert first["task"] == held["task"]
    assert first["seed"] != held["seed"]
    with pytest.raises(IndexError):
        environment.get_task("train", environment.num_tasks("train"))
    by_index = environment.reset(split="train", index=5)
    by_seed = environment_of(name).reset(seed=first["seed"], task=first["task"])
    assert by_index.data == by_seed.data


@pytest.mark.parametrize("name", ARENAS)
def test_the_manifest_says_what_the_arena_is(name: str) -> None:
    arena = find(name)
    folder = Path(sys.modules["oomrl.arenas.registry"].__file__ or "").parent / name
    told = yaml.safe_load((folder / "openenv.yaml").read_text())
    promised, able = told["validation"]["reward"], told["validation"]["capabilities"]
    assert (told["name"], told["version"]) == (arena.name, arena.version)
    assert tuple(promised["range"]) == arena.make().reward_range
    assert (promised["oracle_tolerance"], promised["floor_margin"]) == (ORACLE_TOLERANCE, FLOOR_MARGIN)
    assert set(able["declared_tools"]) == {schema["name"] for schema in arena.tool_schemas}
    assert able["declared_task_count"] == dict.fromkeys(("train", "held_out"), TASKS_A_SPLIT * len(arena.tasks))
    assert (folder / able["canaries"]).is_file() and (folder / able["oracle"]["location"]).is_file()


@pytest.mark.parametrize("name", ARENAS)
def test_the_official_validator_passes_the_manifest(name: str) -> None:
    folder = Path(sys.modules["oomrl.arenas.registry"].__file__ or "").parent / name
    command = [sys.executable, "-m", "openenv.cli", "validate", str(folder), "--level", "static"]
    done = subprocess.run([*command, "--skip-build"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_official_validator_passes_the_running_server(served: tuple[Arena, str]) -> None:
    _, url = served
    command = [sys.executable, "-m", "openenv.cli", "validate", "--url", url]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
