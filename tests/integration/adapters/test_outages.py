"""An endpoint that goes wrong for an hour, over a real socket and under a virtual clock: wait, record, go on."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from oomrl.adapters import traffic
from oomrl.adapters.audit import Audit
from oomrl.adapters.database import Store
from oomrl.adapters.openai_model import Endpoint, OpenAIModel
from oomrl.adapters.prompting import Patience, Prompting, Question, Said, compute_of
from oomrl.agents.spent import diagnose_compute
from oomrl.domain.records import CapitalEvent, CapitalKind, Loss, Prompt, PromptStatus, StoredDiagnostic
from oomrl.errors import Mistake, Unavailable
from oomrl.stages import Waiting
from tests import databases
from tests.integration.adapters import endpoint as fake
from tests.integration.adapters.endpoint import Step, chat, error
from tests.integration.adapters.test_openai_model import CONTEXT, KEY, PRICES, Time
from tests.integration.database.builders import AT, RUN, run

HOUR = 3_600.0
#: What `chat` costs at the price of m-1: 100 tokens read and 20 written.
BILL = Decimal("0.00032500")
DOWN = {
    "unavailable": error(503, "down"),
    "rate limited": error(429, "slow down", retry_after="20"),
    "slow": Step(delay=0.12, body=chat("late").body),
    "HTML": Step(body="<html><body>Welcome to the proxy</body></html>", kind="text/html"),
    "stops in the middle": Step(body=chat("half a diff").body, cut=60),
}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(databases.place(tmp_path), durable=False) as opened:
        with opened.begin() as work:
            work.runs.start(run())
            work.losses.save(Loss("loss-1", RUN, date(2020, 1, 2), "loss", "drawdown", 0.1, 0.05, AT))
            work.losses.save_diagnostic(StoredDiagnostic("diag-1", "loss-1", RUN, date(2020, 1, 2), {}, AT))
        yield opened


def question(model: OpenAIModel, number: int = 1) -> Question:
    name = f"coder-{number}-abc"
    return Question(Prompt(name, RUN, "diag-1", "coder", number, f"Mend it ({number}).", AT), model, CONTEXT)


def asker(store: Store, clock: Time, patience: float = 2 * HOUR, endowment: str = "1") -> Prompting:
    waits = Patience(clock.sleep, clock.monotonic, patience)
    return Prompting(RUN, store, lambda: AT, Decimal(endowment), waits, lambda _: None)


def model_at(url: str, clock: Time, folder: Path | None = None, **settings: object) -> OpenAIModel:
    chosen = Endpoint("m-1", url, **({"timeout": 5.0, "tries": 2} | settings))  # type: ignore[arg-type]
    wire = traffic.httpx2.HTTPTransport()
    transport = traffic.Recorder(wire, folder, KEY) if folder else wire
    return OpenAIModel(chosen, KEY, PRICES, random.Random(7), clock.sleep, clock.monotonic, transport)


@pytest.mark.parametrize("trouble", DOWN)
def test_after_an_hour_of_trouble_one_reply_is_kept_and_paid(trouble: str, store: Store, tmp_path: Path) -> None:
    clock, good = Time(), []

    def play(number: int) -> Step:
        if clock.now < HOUR:
            return DOWN[trouble]
        good.append(number)
        return chat("a diff")

    with fake.serving(play) as served:
        model = model_at(served.url, clock, tmp_path / "traffic", timeout=0.08 if trouble == "slow" else 5.0)
        asking = asker(store, clock)
        assert asking.ask([question(model)]) == [Said("a diff", "m-1", "stop")]
        assert HOUR <= clock.now <= HOUR + 700 and len(good) == 1
        assert asking.ask([question(model)]) == [Said("a diff", "m-1", "stop")] and len(good) == 1
        model.close()
    with store.read() as view:
        stored, bill = view.prompts.all(RUN), view.prompts.bill(RUN)
    assert [prompt.status for prompt in stored] == [PromptStatus.ANSWERED] and bill == (100, 20, BILL)
    assert int(stored[0].note.split()[0]) > 3 and "times in vain; last: " in stored[0].note
    taped = traffic.exchanges(tmp_path / "traffic" / "coder-1-abc.jsonl")
    assert len(taped) == len(served.requests) and taped[-1]["response"]["status"] == 200


def test_beyond_its_patience_it_stops_with_the_question_written_down_and_goes_on_later(store: Store) -> None:
    clock = Time()
    with fake.serving(lambda _: error(503, "down") if clock.now < HOUR else chat("a diff")) as served:
        model = model_at(served.url, clock)
        with pytest.raises(Unavailable):
            asker(store, clock, patience=0.0).ask([question(model)])
        with store.read() as view:
            (waiting,) = view.prompts.pending(RUN)
        assert waiting.note.startswith("1 times in vain")
        clock.now = HOUR
        assert asker(store, clock, patience=0.0).ask([question(model)]) == [Said("a diff", "m-1", "stop")]
        model.close()
    with store.read() as view:
        assert view.prompts.bill(RUN) == (100, 20, BILL) and len(view.prompts.all(RUN)) == 1


def test_candidates_are_asked_at_the_same_time_and_what_came_is_kept(store: Store) -> None:
    clock, together = Time(), threading.Barrier(3, timeout=20)

    def play(number: int) -> Step:
        if number < 3:
            together.wait()
        return error(503, "down") if number == 0 else chat(f"reply to request {number}")

    with fake.serving(play) as served:
        model = model_at(served.url, clock, tries=1)
        with pytest.raises(Unavailable):
            asker(store, clock, patience=0.0).ask([question(model, number) for number in (1, 2, 3)])
        with store.read() as view:
            assert len(view.prompts.pending(RUN)) == 1 and view.prompts.bill(RUN) == (200, 40, 2 * BILL)
        said = asker(store, clock, patience=0.0).ask([question(model, number) for number in (1, 2, 3)])
        assert len(served.requests) == 4 and not isinstance(said, Waiting)
        assert len({one.text for one in said}) == 3
        model.close()
    with store.read() as view:
        assert view.prompts.bill(RUN) == (300, 60, 3 * BILL)


def test_a_spent_endowment_asks_nothing_more_until_a_person_gives_more_and_says_why(store: Store) -> None:
    clock = Time()
    with fake.serving([chat("a diff")]) as served:
        model = model_at(served.url, clock)
        assert asker(store, clock, endowment="0.0003").ask([question(model)]) == [Said("a diff", "m-1", "stop")]
        for _ in range(2):  # a restart does not clear it, and tells nobody twice
            again = asker(store, clock, endowment="0.0003")
            assert again.ask([question(model, 2)]) == Waiting("compute endowment", "coder-2-abc")
        assert len(served.requests) == 1
        with store.read() as view:
            (notice,) = view.notices.unsent()
            found = diagnose_compute(compute_of(view, RUN, Decimal("0.0003")), view.prompts.all(RUN))
        assert notice.kind == "out of money" and "most by the coder" in notice.text
        assert (found.event, found.diagnostics.module) == ("COMPUTE_OUT_OF_MONEY", "coder")
        assert found.metrics.model_dump() == {
            "endowment": Decimal("0.0003"), "spent": BILL, "overdrawn": BILL - Decimal("0.0003"), "prompts": 1,
            "prompt_tokens": 100, "completion_tokens": 20, "waiting": 1,
        }  # fmt: skip
        assert [line.prompt for line in found.diagnostics.execution_log] == ["coder-1-abc"]
        assert "oomrl endow --compute" in found.mandate and "COMPUTE OUT OF MONEY" in found.told()
        event = CapitalEvent("e", RUN, CapitalKind.ENDOW_COMPUTE, AT.date(), AT, Decimal("0.01"), "ann", "go on")
        with store.begin() as work:
            work.capital.save(event)
        assert again.ask([question(model, 2)]) == [Said("a diff", "m-1", "stop")] and not again.compute().out
        with store.read() as view:
            left = diagnose_compute(again.compute(), view.prompts.all(RUN))
        assert (left.event, left.metrics.overdrawn, left.metrics.prompts) == ("COMPUTE_LEFT", 0, 2)
        model.close()


def test_a_reply_that_a_kill_kept_out_of_the_store_is_not_bought_twice(store: Store, tmp_path: Path) -> None:
    clock = Time()
    with fake.serving([chat("a diff")]) as served:
        first = model_at(served.url, clock, tmp_path / "traffic")
        first.answer("coder-1-abc", "coder", "Mend it (1).", CONTEXT)  # and here the process dies
        place = tmp_path / "traffic" / "coder-1-abc.jsonl"
        with place.open("a") as file:
            file.write('{"request": {"half a li')
        second = model_at(served.url, clock, tmp_path / "traffic")
        assert asker(store, clock).ask([question(second)]) == [Said("a diff", "m-1", "stop")]
        assert len(served.requests) == 1
        for model in (first, second):
            model.close()
    with store.read() as view:
        assert view.prompts.bill(RUN) == (100, 20, BILL)


def test_no_cassette_holds_a_secret(tmp_path: Path) -> None:
    clock = Time()
    steps = [error(503, f"your key {KEY} is fine", x_request_id="r-1", set_cookie="session=1"), chat(f"Use {KEY}!")]
    with fake.serving(steps) as served:
        model = model_at(served.url, clock, tmp_path)
        model.answer("coder-1-abc", "coder", f"A log line: Bearer {KEY}", CONTEXT)
        model.close()
    text = (tmp_path / "coder-1-abc.jsonl").read_text("utf-8")
    assert "secret" not in text and "uthorization" not in text and "cookie" not in text
    assert "r-1" in text and text.count("[key]") == 4


def test_a_cassette_is_replayed_without_a_network_failures_and_all(tmp_path: Path) -> None:
    clock = Time()
    with fake.serving([error(503, "down"), Step(body=chat("x").body, cut=40), chat("a diff")]) as served:
        model = model_at(served.url, clock, tmp_path, tries=5)
        live = model.answer("coder-1-abc", "coder", "Mend it.", CONTEXT)
        model.close()

    def replaying() -> OpenAIModel:
        return OpenAIModel.from_cassettes(Endpoint("m-1", served.url, tries=5), PRICES, random.Random(7), tmp_path)

    assert replaying().answer("coder-1-abc", "coder", "Mend it.", CONTEXT) == live
    for name, prompt, words in (("coder-1-abc", "Another.", "was another"), ("coder-2-abc", "Mend it.", "was none")):
        with pytest.raises(Mistake, match=words):
            replaying().answer(name, "coder", prompt, CONTEXT)


RECORDED = sorted((Path(__file__).parent / "recorded").glob("*.jsonl"))


@pytest.mark.parametrize("place", RECORDED, ids=lambda place: place.stem)
def test_a_recorded_conversation_is_served_again_over_http(place: Path, store: Store) -> None:
    steps, clock = fake.recorded(place), Time()
    said = json.loads(steps[-1].body)["choices"][0]["message"]["content"]
    with fake.serving(steps) as served:
        model = model_at(served.url, clock, tries=len(steps))
        answered = asker(store, clock).ask([question(model)])
        model.close()
    assert not isinstance(answered, Waiting) and answered[0].text == said
    assert len(served.requests) == len(steps)


def test_traffic_is_attested_and_a_change_is_found(tmp_path: Path) -> None:
    folder = tmp_path / traffic.FOLDER
    with fake.serving([chat("a diff")]) as served:
        model = model_at(served.url, Time(), folder)
        model.answer("coder-1-abc", "coder", "Mend it.", CONTEXT)
        model.close()
    audit = Audit(tmp_path)
    for _ in range(2):
        audit.traffic(RUN, "coder-1-abc")
    audit.traffic(RUN, "never-asked")
    assert audit.log.verify().entries == 1 and audit.changed_traffic() == []
    place = folder / "coder-1-abc.jsonl"
    place.write_text(place.read_text().replace("a diff", "b diff"))
    assert audit.changed_traffic() == ["coder-1-abc"]
    place.unlink()
    assert Audit(tmp_path).changed_traffic() == ["coder-1-abc"]
