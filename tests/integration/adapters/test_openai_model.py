from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from email.utils import formatdate

import pytest

from oomrl.adapters.openai_model import Endpoint, OpenAIModel
from oomrl.agents.billing import Price, PriceTable, price_table
from oomrl.errors import Mistake, Unavailable
from oomrl.ports import Context, Reply
from tests.integration.adapters import endpoint as fake
from tests.integration.adapters.endpoint import Step, chat, error

KEY = "sk-secret-0123456789"
CONTEXT = Context({}, "", {}, {}, ())
PRICES = PriceTable({"m-1": Price(Decimal("1.25"), Decimal(10)), "m-2": Price(Decimal(1), Decimal(2))})


class Time:
    """A clock that sleeping moves."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    def monotonic(self) -> float:
        return self.now


@contextmanager
def asking(
    *steps: Step, prices: PriceTable = PRICES, **settings: object
) -> Iterator[tuple[OpenAIModel, fake.Endpoint, Time]]:
    with fake.serving(steps) as served:
        clock = Time()
        chosen = Endpoint("m-1", served.url, **({"timeout": 5.0} | settings))  # type: ignore[arg-type]
        model = OpenAIModel(chosen, KEY, PRICES, random.Random(7), clock.sleep, clock.monotonic)
        try:
            yield model, served, clock
        finally:
            model.close()


def ask(model: OpenAIModel, prompt_id: str = "coder-1-abc") -> Reply:
    reply = model.answer(prompt_id, "coder", "Mend it.", CONTEXT)
    assert reply is not None
    return reply


def test_a_reply_comes_with_its_tokens_and_price() -> None:
    with asking(chat("a diff")) as (model, served, clock):
        assert ask(model) == Reply("a diff", "m-1", 100, 20, Decimal("0.00032500"), "stop")
    (path, headers, body) = served.requests[0]
    assert path == "/v1/chat/completions"
    assert headers["authorization"] == f"Bearer {KEY}" and headers["idempotency-key"] == "coder-1-abc"
    assert body["model"] == "m-1" and body["messages"][1] == {"role": "user", "content": "Mend it."}
    assert "stream" not in body and body["temperature"] == 0.2 and body["max_completion_tokens"] == 8000
    assert clock.slept == []


def test_the_same_prompt_has_the_same_seed_and_another_one_another() -> None:
    with asking(chat("a diff")) as (model, served, _):
        for name in ("a", "a", "b"):
            ask(model, name)
    first, second, third = (body["seed"] for body in served.bodies)
    assert first == second != third


def test_the_responses_interface_is_asked_without_keeping_anything_there() -> None:
    with asking(fake.response("a diff"), api="responses") as (model, served, _):
        assert ask(model) == Reply("a diff", "m-1", 100, 20, Decimal("0.00032500"), "stop")
    assert served.requests[0][0] == "/v1/responses"
    assert served.bodies[0]["input"] == "Mend it." and served.bodies[0]["store"] is False
    with asking(fake.response("half a", "incomplete"), api="responses") as (model, _, _):
        assert ask(model).finish == "length"


def test_a_reply_that_was_cut_off_says_so() -> None:
    with asking(chat("half a d", finish="length")) as (model, _, _):
        assert ask(model).finish == "length"


def test_a_refusal_is_a_reply() -> None:
    with asking(chat("", refusal="I can't help with that.")) as (model, _, _):
        assert ask(model).text == "I can't help with that."


def test_an_endpoint_that_counts_nothing_is_billed_on_the_safe_side() -> None:
    with asking(chat("x" * 300, usage=None)) as (model, _, _):
        reply = ask(model)
    assert reply.completion_tokens == 100 and reply.prompt_tokens > 0 and reply.cost > 0


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 529])
def test_what_passes_is_tried_again_with_longer_waits(status: int) -> None:
    with asking(error(status, "busy"), error(status, "busy"), chat("a diff")) as (model, served, clock):
        assert ask(model).text == "a diff"
        assert len(served.requests) == 3
    first, second = clock.slept
    assert 0.5 <= first <= 1.0 and 1.0 <= second <= 2.0


def test_the_endpoint_may_ask_for_a_longer_wait_but_not_for_ever() -> None:
    steps = (error(429, "slow down", retry_after="30"), error(429, "slow down", retry_after="86400"), chat("a diff"))
    with asking(*steps) as (model, _, clock):
        ask(model)
    assert clock.slept == [30.0, 60.0]


def test_a_wait_until_a_date_is_read_by_the_endpoints_own_clock() -> None:
    def until(seconds: float) -> str:
        return formatdate(time.time() + seconds, usegmt=True)

    steps = (error(503, "x", retry_after=until(45)), error(503, "x", retry_after="soon"), chat("a diff"))
    with asking(*steps) as (model, _, clock):
        ask(model)
    first, second = clock.slept
    assert 43 <= first <= 47 and second <= 2.0


@pytest.mark.parametrize(
    "step",
    [
        Step(body="<html><body>Welcome to the proxy</body></html>", kind="text/html"),
        Step(body="{", kind="application/json"),
        Step(body="[]"),
        Step(body='{"choices": []}'),
        Step(body='{"choices": null}'),
        Step(body=chat("x").body, cut=40),
        Step(status=502, body="<html>Bad gateway</html>", kind="text/html"),
    ],
    ids=["html", "half JSON", "list", "no choices", "null", "stops in the middle", "bad gateway"],
)
def test_what_is_no_reply_is_tried_again_and_then_given_up_for_now(step: Step) -> None:
    with asking(step, chat("a diff")) as (model, _, _):
        assert ask(model).text == "a diff"
    with asking(step, tries=2) as (model, served, _):
        with pytest.raises(Unavailable, match="2 tries"):
            ask(model)
        assert len(served.requests) == 2


def test_a_silent_endpoint_is_left_after_its_timeout() -> None:
    with (
        asking(Step(delay=0.6, body=chat("late").body), tries=1, timeout=0.1) as (model, _, _),
        pytest.raises(Unavailable, match="Timeout"),
    ):
        ask(model)


def test_nobody_listening_is_unavailable() -> None:
    with asking(chat("x")) as (model, served, _):
        pass
    gone = OpenAIModel(Endpoint("m-1", served.url, tries=2), KEY, PRICES, random.Random(7), lambda _: None)
    with pytest.raises(Unavailable):
        ask(gone)
    gone.close()
    del model


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (error(401, f"Incorrect API key provided: {KEY}"), "refused the request"),
        (error(400, "context too long", code="context_length_exceeded"), "context too long"),
        (error(429, "no money", code="insufficient_quota"), "no money"),
        (error(404, "no such model"), "no such model"),
        (error(403, "not for you"), "not for you"),
    ],
)
def test_what_will_not_pass_is_a_mistake_at_once_and_tells_no_key(step: Step, words: str) -> None:
    with asking(step) as (model, served, clock):
        with pytest.raises(Mistake, match=words) as caught:
            ask(model)
        assert len(served.requests) == 1 and clock.slept == []
        assert KEY not in str(caught.value) and KEY not in repr(model)


def test_options_that_the_endpoint_does_not_know_are_left_out() -> None:
    steps = (
        error(400, "Unsupported parameter: 'temperature' is not supported", param="temperature"),
        error(422, "unknown field seed"),
        chat("a diff"),
        chat("another"),
    )
    with asking(*steps) as (model, served, clock):
        assert ask(model).text == "a diff"
        ask(model)
    assert clock.slept == []
    assert "temperature" not in served.bodies[3] and "seed" not in served.bodies[3]


@pytest.mark.parametrize("role", ["analyst", "test_author", "coder", "critic"])
def test_each_role_is_held_to_its_form_where_the_endpoint_knows_how(role: str) -> None:
    with asking(chat("{}")) as (model, served, _):
        model.answer("p-1", role, "Mend it.", CONTEXT)
    asked = served.bodies[0]["response_format"]
    schema = asked["json_schema"]["schema"]
    assert asked["type"] == "json_schema" and asked["json_schema"]["strict"] is True
    assert schema["required"] == list(schema["properties"]) and schema["additionalProperties"] is False
    assert "JSON object" in served.bodies[0]["messages"][0]["content"]
    with asking(fake.response("{}"), api="responses") as (model, served, _):
        model.answer("p-1", role, "Mend it.", CONTEXT)
    assert served.bodies[0]["text"]["format"]["schema"] == schema


def test_an_endpoint_without_schemas_is_asked_for_plain_text() -> None:
    unknown = error(400, "response_format: json_schema is not supported by this model")
    with asking(unknown, chat("a diff"), chat("another")) as (model, served, clock):
        assert ask(model).text == "a diff"
        ask(model)
    assert clock.slept == [] and len(served.requests) == 3
    assert all("response_format" not in body for body in served.bodies[1:])
    assert "JSON" not in served.bodies[1]["messages"][0]["content"]
    with asking(chat("a diff"), structured=False) as (model, served, _):
        ask(model)
    assert "response_format" not in served.bodies[0]


def test_a_fallback_answers_where_the_model_is_gone_at_its_own_price() -> None:
    with asking(error(404, "gone"), chat("a diff"), fallbacks=("m-2",)) as (model, served, _):
        reply = ask(model)
    assert [body["model"] for body in served.bodies] == ["m-1", "m-2"]
    assert (reply.model, reply.cost) == ("m-2", Decimal("0.00014000"))


def test_an_endpoint_that_keeps_failing_is_left_alone_and_tried_again_later() -> None:
    with asking(*[error(503, "down")] * 4, chat("a diff"), tries=2, breaker=2, cooldown=600.0) as (
        model,
        served,
        clock,
    ):
        for _ in range(2):
            with pytest.raises(Unavailable, match="2 tries"):
                ask(model)
        with pytest.raises(Unavailable, match="left alone"):
            ask(model)
        assert len(served.requests) == 4
        clock.now += 601.0
        assert ask(model).text == "a diff"
        assert ask(model).text == "a diff"


def test_a_missing_key_or_price_is_said_before_anything_is_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = Endpoint("m-1", fallbacks=("m-9",))
    monkeypatch.delenv("SOME_KEY", raising=False)
    with pytest.raises(Mistake, match="SOME_KEY"):
        OpenAIModel.from_environment(chosen, PRICES, random.Random(1), "SOME_KEY")
    monkeypatch.setenv("SOME_KEY", KEY)
    with pytest.raises(Mistake, match="'m-9'"):
        OpenAIModel.from_environment(chosen, PRICES, random.Random(1), "SOME_KEY")
    model = OpenAIModel.from_environment(
        chosen, price_table(None, None, (), strict=False), random.Random(1), "SOME_KEY"
    )
    assert model.name == "m-1"
    model.close()
