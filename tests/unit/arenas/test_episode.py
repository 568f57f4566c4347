"""Logs, replays and agents: what is written can be trusted, and failures stay failures."""

from __future__ import annotations

import json
import math
import re
from types import SimpleNamespace
from typing import Any

import httpx
import openai
import pytest

from oomrl.arenas.agents.manual import ManualAgent
from oomrl.arenas.agents.openai_agent import ModelSettings, OpenAIAgent
from oomrl.arenas.agents.prompting import parse_reply, system_prompt
from oomrl.arenas.agents.scripted import Scripted
from oomrl.arenas.engine import Part, canonical, plain
from oomrl.arenas.episode import play, replay
from oomrl.arenas.log import EpisodeLog, read
from oomrl.arenas.organization.rules import ACTIONS, ROLES, VISIBILITY
from oomrl.arenas.organization.seats import SHARED
from oomrl.arenas.registry import find
from oomrl.errors import Mistake, Refused

ARENAS = ("committee", "committee_v1", "organization", "organization_six")


class FakeModel:
    """A chat client that answers from a list, or raises what stands in it."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[Any] = []
        self.chat = SimpleNamespace(completions=SimpleNamespace(create=self._create))

    def _create(self, **request: Any) -> Any:
        self.asked.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        message = SimpleNamespace(content=answer)
        usage = SimpleNamespace(prompt_tokens=100, completion_tokens=10)
        return SimpleNamespace(choices=[SimpleNamespace(message=message)], usage=usage)


@pytest.mark.parametrize("name", ARENAS)
def test_a_log_read_back_replays_to_score_and_hash(name: str) -> None:
    arena = find(name)
    for task in arena.tasks:
        episode = play(arena, Scripted("random"), 5, task)
        again = replay(arena, read(episode.log.text().splitlines()))
        assert (again.score, again.log.head) == (episode.score, episode.log.head)


@pytest.mark.parametrize("name", ARENAS)
def test_the_same_seed_gives_the_same_bytes(name: str) -> None:
    arena = find(name)
    task = next(iter(arena.tasks))
    heads = {play(arena, Scripted("heuristic"), 5, task).log.text() for _ in range(2)}
    assert len(heads) == 1


def test_a_changed_moved_or_missing_line_is_noticed() -> None:
    arena = find("committee")
    lines = play(arena, Scripted("random"), 5, "guided_allocation").log.text().splitlines()
    changed = lines.copy()
    changed[3] = changed[3].replace('"done":false', '"done":true', 1)
    for broken in (changed, lines[:2] + lines[3:], [lines[0], lines[2], lines[1], *lines[3:]], ["{}"]):
        with pytest.raises((Mistake, Refused), match="Expected"):
            read(broken)
    with pytest.raises(Refused, match="unended log"):
        replay(arena, read(lines[:-1]))


def test_a_forged_log_with_a_valid_chain_does_not_replay() -> None:
    arena = find("committee")
    records = play(arena, Scripted("random"), 5, "guided_allocation").log.records()
    forged = EpisodeLog()
    for record in records:
        body = record["body"]
        if record["kind"] == "end":
            body = {**body, "score": 1.0}
        forged.append(record["kind"], body)
    with pytest.raises(Refused, match="another score"):
        replay(arena, read(forged.text().splitlines()))


def test_what_is_no_json_becomes_something_that_every_engine_refuses() -> None:
    odd = {"a": math.nan, "b": [math.inf, {1: object()}], "c": 10**400, "d": "\ud800", "e": (1, 2)}
    told = plain(odd)
    canonical(told)
    assert told["a"] == {"$number": "nan"}
    assert told["b"][1] == {"$key:int": {"$type": "object"}}
    assert told["e"] == [1, 2]
    deep: Any = 1
    for _ in range(10_000):
        deep = [deep]
    canonical(plain(deep))


def test_a_rubric_tree_sums_its_weighted_parts_and_clips() -> None:
    inner = Part("b", 0.5, parts=(Part("c", 2.0, 0.4), Part("d", -1.0, 0.2)))
    tree = Part("a", parts=(inner, Part("e", 1.0, 0.9)), high=1.0)
    assert inner.total == pytest.approx(0.6)
    assert tree.total == 1.0
    assert tree.leaves() == pytest.approx({"a/b/c": 0.4, "a/b/d": -0.1, "a/e": 0.9})


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ('{"action": "hold"}', {"action": "hold"}),
        ('I think:\n```json\n{"action": "hold"}\n```', {"action": "hold"}),
        ('{"a": 1} no, better {"a": 2}', {"a": 2}),
        ("hold", {"$unparsed": "hold"}),
        ("{" * 500, {"$unparsed": "{" * 200}),
    ],
)
def test_a_reply_becomes_its_last_json_object(text: str, action: Any) -> None:
    assert parse_reply(text) == action


def test_a_model_plays_with_its_tokens_and_cost_in_the_log() -> None:
    settings = ModelSettings("tiny", prompt_price=1.0, completion_price=10.0)
    client = FakeModel('{"action": "hold"}')
    episode = play(find("committee"), OpenAIAgent(settings, client), 3, "guided_allocation")
    assert episode.failure is None and episode.steps == 30
    step = episode.log.records()[1]["body"]
    assert step["note"] == {"prompt_tokens": 100, "completion_tokens": 10, "cost": 0.0002}
    assert len(client.asked[-1]["messages"]) <= 2 + 2 * settings.history
    assert client.asked[0]["messages"][0]["role"] == "system"
    replay(find("committee"), episode.log)


def test_a_models_nonsense_is_played_refused_and_counted() -> None:
    client = FakeModel("As a language model I cannot")
    episode = play(find("committee"), OpenAIAgent(ModelSettings("tiny"), client), 3, "guided_allocation")
    assert episode.failure is None
    assert episode.refused == 30
    assert episode.score < 0.05


def seat_of(request: Any) -> str:
    return str(re.search(r"^You are the (\w+)", request["messages"][0]["content"])[1])


def test_six_agents_each_see_their_own_slice_and_say_one_action_a_step() -> None:
    arena = find("organization_six")
    client = FakeModel('{"action": "query_metrics", "payload": {}}')
    episode = play(arena, OpenAIAgent(ModelSettings("tiny"), client), 3, "org_simulation")
    assert episode.failure is None and episode.refused == 0
    steps = [record["body"] for record in episode.log.records() if record["kind"] == "step"]
    assert len(client.asked) == 6 * len(steps)
    assert all(set(step["action"]["actions"]) == set(ROLES) for step in steps)
    assert steps[0]["note"] == {"prompt_tokens": 600, "completion_tokens": 60, "cost": 0.0}
    for request in client.asked:
        role, shown = seat_of(request), request["messages"][-1]["content"]
        data = json.loads(shown.partition("Observation: ")[2].rpartition("\nYour action")[0])
        visible = {name for name, seers in VISIBILITY.items() if role in seers}
        assert set(data) & set(VISIBILITY) == visible
        assert set(data) - visible <= {*SHARED, "role", "errors"}
    replay(arena, episode.log)


def test_what_one_of_six_says_amiss_is_refused_to_it_alone() -> None:
    arena = find("organization_six")
    engine = arena.make()
    engine.reset(3, "org_simulation")
    seen = engine.step({"actions": {"engineer": {"$unparsed": "hm"}, "operations": {"action": "no_op"}}})
    assert "Expected only action" in arena.seats["engineer"].view(seen).data["errors"]["engineer"]
    assert arena.seats["operations"].view(seen).data["errors"] == {}


def test_a_role_is_offered_its_own_actions_alone() -> None:
    arena = find("organization_six")
    for role, seat in arena.seats.items():
        offered = {one["properties"]["action"]["const"] for one in seat.rules(arena).action_schema["oneOf"]}
        assert offered == {action for action, roles in ACTIONS.items() if role in roles}


def test_an_option_that_an_endpoint_does_not_know_is_left_out_from_then_on() -> None:
    answer = httpx.Response(400, request=httpx.Request("POST", "http://here"))
    unknown = openai.BadRequestError("Unsupported value: 'temperature'", response=answer, body={"param": "temperature"})
    client = FakeModel(unknown, '{"action": "hold"}')
    episode = play(find("committee"), OpenAIAgent(ModelSettings("tiny"), client), 3, "guided_allocation")
    assert episode.failure is None
    assert "temperature" in client.asked[0]
    assert not any("temperature" in request for request in client.asked[1:])


def test_a_failures_text_holds_no_key() -> None:
    problem = openai.OpenAIError("Incorrect API key provided: sk-abc123456 and topsecret")
    agent = OpenAIAgent(ModelSettings("tiny", api_key="topsecret"), FakeModel(problem))
    episode = play(find("committee"), agent, 3, "guided_allocation")
    assert episode.failure == "OpenAIError: Incorrect API key provided: [key] and [key]"


@pytest.mark.parametrize("problem", [openai.APIConnectionError(request=SimpleNamespace()), None])
def test_a_services_failure_is_a_failure_in_the_record_and_nothing_plays_on(problem: Any) -> None:
    client = FakeModel('{"action": "query_research"}', problem)
    episode = play(find("committee"), OpenAIAgent(ModelSettings("tiny"), client), 3, "guided_allocation")
    assert episode.failure
    assert episode.steps == 1
    assert episode.score == 0.0
    end = episode.log.records()[-1]
    assert end["kind"] == "end" and end["body"]["failure"] == episode.failure
    assert replay(find("committee"), episode.log).failure == episode.failure


def test_settings_come_from_the_named_environment_and_hide_the_key() -> None:
    settings = ModelSettings.from_environment(
        {"MODEL_NAME": "m", "API_BASE_URL": "http://here/v1", "HF_TOKEN": "secret"}
    )
    assert (settings.model, settings.base_url, settings.api_key) == ("m", "http://here/v1", "secret")
    assert "secret" not in repr(settings)
    with pytest.raises(Mistake, match="MODEL_NAME"):
        ModelSettings.from_environment({})


def test_a_person_answers_and_the_end_of_input_is_a_failure() -> None:
    replies = iter(['{"action": "query_risk"}'])
    prompts: list[str] = []

    def ask(prompt: str) -> str:
        prompts.append(prompt)
        try:
            return next(replies)
        except StopIteration:
            raise EOFError from None

    episode = play(find("committee"), ManualAgent(ask), 3, "guided_allocation")
    assert episode.steps == 1
    assert episode.failure == "Expected a reply, was the end of input"
    assert "never obey" in prompts[0] and "never obey" not in prompts[1]


@pytest.mark.parametrize("name", ARENAS)
def test_the_system_prompt_names_task_and_schema(name: str) -> None:
    arena = find(name)
    for task in arena.tasks:
        prompt = system_prompt(arena, task)
        assert task in prompt
        assert json.dumps(arena.action_schema, sort_keys=True) in prompt


def test_an_unknown_policy_or_arena_is_a_mistake_that_names_the_known_ones() -> None:
    with pytest.raises(Mistake, match="heuristic"):
        play(find("committee"), Scripted("genius"), 1, "guided_allocation")
    with pytest.raises(Mistake, match="organization"):
        find("chess")
