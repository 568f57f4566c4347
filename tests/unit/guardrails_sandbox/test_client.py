"""The judge's side against a worker that says whatever a test wants: every wrong answer is a failure with its name."""

import json
import math
import socket
import struct
import threading
from array import array
from pathlib import Path

import jsonschema
import pytest

import guardrails
from guardrails.worker.client import Worker, WorkerFailure
from guardrails.worker.frames import BARS, PLAN, decode, encode

SCHEMA = json.loads(Path(guardrails.__file__).with_name("schemas").joinpath("worker_frames.schema.json").read_text())
VALID = jsonschema.Draft202012Validator(SCHEMA)
NAMES = ("A", "B")
NAN = math.nan


class FakeProcess:
    """Stand where a sandboxed process would; `theirs` is the end that a test plays."""

    def __init__(self, code: int | None = None, printed: str = "") -> None:
        self.channel, self.theirs = socket.socketpair()
        self.code, self.printed, self.killed = code, printed, False

    def wait(self, seconds: float) -> int | None:
        return self.code

    def output(self) -> str:
        return self.printed

    def kill(self) -> None:
        self.killed = True
        self.channel.close()

    def close(self) -> None:
        self.kill()


@pytest.fixture
def process():
    fake = FakeProcess()
    yield fake
    fake.channel.close()
    fake.theirs.close()


def worker_on(process: FakeProcess, reply: bytes, seconds: float = 5.0) -> Worker:
    worker = Worker(process, seconds)
    worker.show("2020-01-02", NAMES, {name: array("d", [1.0, 2.0]) for name in BARS})
    process.theirs.sendall(reply)
    return worker


def target(
    symbols: object = ("A",), weights: object = 1, table: object = (0.5, NAN, NAN, NAN), **more: object
) -> bytes:
    columns = ["weight", *PLAN]
    header = {"type": "target", "symbols": symbols, "weights": weights, "rows": len(table) // 4, "columns": columns}
    return encode({**header, "reasons": {}, **more}, [struct.pack(f"<{len(table)}d", *table)])


def ask(worker: Worker) -> dict:
    return worker.decide("2020-01-02", 100.0, 100.0, {})


def test_a_target_comes_out_in_plain_values(process):
    table = (0.25, 0.5, 0.0, 0.05, NAN, NAN, 3.0, NAN, 1.0, 25.0, NAN, NAN)
    reply = target(["A", "B", "C"], 2, table, reasons={"A": "cheap", "Z": "not there"})
    worker = worker_on(process, reply)
    answer = worker.decide("2020-01-02", 100.0, 50.0, {"C": 3.0})
    assert answer == {
        "action": "target",
        "weights": {"A": 0.25, "B": 0.5},
        "plan": {
            "A": {"max_participation": 0.05, "sessions": 3.0, "limit_bps": 25.0},
            "C": {"sessions": 1.0, "limit_bps": None},
        },
        "reasons": {"A": "cheap"},
    }


def test_what_is_said_can_be_stored_and_printed_anywhere(process):
    """Half a letter breaks a database, a terminal's codes wipe lines: neither comes in."""
    worker = worker_on(process, target(reasons={"A": "half \ud800 \x1b[2Kwiped\0\u202e" + "x" * 600}))
    [reason] = ask(worker)["reasons"].values()
    assert reason.startswith("half \ufffd \ufffd[2Kwiped\ufffd\ufffdxxx") and len(reason) == 500
    process.theirs.sendall(encode({"type": "hold", "reason": "no\ud800"}))
    assert ask(worker) == {"action": "hold", "reason": "no\ufffd"}
    process.theirs.sendall(
        encode({"type": "failure", "kind": "raised", "message": "\x1b[2J", "traceback": "a\nb\ud800"})
    )
    with pytest.raises(WorkerFailure) as failed:
        ask(worker)
    assert (failed.value.message, failed.value.traceback) == ("\ufffd[2J", "a\nb\ufffd")


def test_a_target_without_plans_may_leave_out_the_names_that_it_had_before(process):
    again = target(None, 2, (0.1, 0.0), rows=2, columns=["weight"])
    first = target(["B", "A"], 2, (0.5, 0.25), rows=2, columns=["weight"])
    other = target(["A"], 1, (0.75,), rows=1, columns=["weight"])
    one_more = target(None, 2, (0.1, 0.0), rows=2, columns=["weight"])
    worker = worker_on(process, first + again + other + one_more)
    assert ask(worker)["weights"] == {"B": 0.5, "A": 0.25}
    assert ask(worker) == {"action": "target", "weights": {"B": 0.1, "A": 0.0}, "plan": {}, "reasons": {}}
    assert ask(worker)["weights"] == {"A": 0.75}
    with pytest.raises(WorkerFailure, match="list of symbols"):
        ask(worker)


def test_names_come_before_the_sessions_that_have_them(process):
    worker = worker_on(process, encode({"type": "hold", "reason": ""}))
    worker.show("2020-01-03", ("A",), {name: array("d", [3.0]) for name in BARS})
    worker.flush()
    worker.show("2020-01-06", NAMES, {name: array("d", [4.0, 5.0]) for name in BARS})
    ask(worker)
    process.channel.close()
    with process.theirs.makefile("rb") as stream:
        told = []
        while stream.peek(1):
            header, data = decode(stream.read)
            told.append((header["type"], header.get("symbols") or header.get("dates"), len(data) // 64))
    assert told == [
        ("names", ["A", "B"], 0),
        ("sessions", ["2020-01-02"], 2),
        ("names", ["A"], 0),
        ("sessions", ["2020-01-03"], 1),
        ("names", ["A", "B"], 0),
        ("sessions", ["2020-01-06"], 2),
        ("decide", None, 0),
    ]


def test_a_hold_comes_out_with_its_reason(process):
    assert ask(worker_on(process, encode({"type": "hold", "reason": "nothing moved"}))) == {
        "action": "hold",
        "reason": "nothing moved",
    }


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (target(table=(NAN, NAN, NAN, NAN)), "weights"),
        (target(table=(math.inf, NAN, NAN, NAN)), "weights"),
        (target(table=(-0.1, NAN, NAN, NAN)), "weights"),
        (target(table=(0.1, NAN, math.inf, NAN)), "plan"),
        (target(["Q"]), "unknown_symbol"),
        (target(["A", "A"], 2, (0.1, 0.1, *[NAN] * 6)), "garbage"),
        (target([1]), "garbage"),
        (target({"A": 1}), "garbage"),
        (target(["A", "B"]), "garbage"),
        (target(None), "garbage"),
        (target(weights=2), "garbage"),
        (target(weights=-1), "garbage"),
        (target(weights=True), "garbage"),
        (target(columns=["weight", "max_participation", "limit_bps", "sessions"]), "garbage"),
        (target(reasons=None), "garbage"),
        (target(reasons={"A": 1}), "garbage"),
        (encode({"type": "value", "value": 1}), "garbage"),
        (encode({"type": "failure", "kind": "raised", "message": "KeyError: 'x'", "traceback": "line 1"}), "raised"),
        (encode({"type": "failure", "kind": "memory", "message": "", "traceback": ""}), "memory"),
        (encode({"type": "failure", "kind": ["x"], "message": 3}), "garbage"),
        (struct.pack("<I", 3) + b"abc", "protocol"),
        (struct.pack("<I", 1 << 31), "flood"),
        (encode({"type": "target", "rows": 1 << 40, "columns": ["weight"]}), "flood"),
    ],
)
def test_every_wrong_answer_is_named_and_ends_the_worker(process, reply, kind):
    worker = worker_on(process, reply)
    with pytest.raises(WorkerFailure) as failed:
        ask(worker)
    assert failed.value.kind == kind
    assert process.killed
    with pytest.raises(WorkerFailure) as again:
        ask(worker)
    assert again.value is failed.value


def test_a_question_may_be_asked_before_its_answer_is_waited_for(process):
    worker = worker_on(process, encode({"type": "hold", "reason": "later"}))
    worker.ask("2020-01-02", 100.0, 100.0, {})
    assert worker.answer() == {"action": "hold", "reason": "later"}
    with pytest.raises(ValueError, match="Expected a question"):
        worker.answer()


def test_no_answer_is_a_time_out(process):
    with pytest.raises(WorkerFailure, match=r"within 0\.05 seconds") as failed:
        ask(worker_on(process, b"", seconds=0.05))
    assert failed.value.kind == "timeout"


def test_an_answer_that_drips_is_a_time_out_too(process):
    worker = worker_on(process, b"", seconds=0.4)
    stop = threading.Event()

    def drip() -> None:
        process.theirs.sendall(struct.pack("<I", 1000))
        while not stop.wait(0.05):
            process.theirs.sendall(b"x")

    dripping = threading.Thread(target=drip)
    dripping.start()
    try:
        with pytest.raises(WorkerFailure) as failed:
            ask(worker)
    finally:
        stop.set()
        dripping.join()
    assert failed.value.kind == "timeout"


def test_a_worker_that_does_not_read_is_a_time_out_and_no_deadlock(process):
    worker = worker_on(process, b"x" * 4096, seconds=0.2)
    names = tuple(f"N{number}" for number in range(3000))
    columns = {name: array("d", [1.0] * 3000) for name in BARS}
    with pytest.raises(WorkerFailure) as failed:
        for _ in range(50):
            worker.show("2020-01-03", names, columns)
    assert failed.value.kind == "timeout"


@pytest.mark.parametrize(
    ("code", "printed", "kind"),
    [
        (1, "", "died"),
        (139, "", "died"),
        (None, "", "died"),
        (1, "MemoryError", "memory"),
        (123, "", "flood"),
        (122, "", "flood"),
        (152, "", "timeout"),
        (124, "", "timeout"),
    ],
)
def test_an_end_is_named_by_how_it_came(code, printed, kind):
    process = FakeProcess(code, printed)
    process.theirs.close()
    with pytest.raises(WorkerFailure) as failed:
        ask(Worker(process, 5.0))
    assert failed.value.kind == kind
    assert failed.value.traceback == printed


def test_a_function_may_raise_and_the_next_call_still_goes(process):
    failure = encode({"type": "failure", "kind": "raised", "message": "ValueError: no", "traceback": ""})
    worker = worker_on(process, failure + encode({"type": "value", "value": [1.0, "nan"]}))
    with pytest.raises(WorkerFailure, match="ValueError: no"):
        worker.call("strategy.returns:growth", [1])
    assert worker.call("strategy.returns:growth", [2]) == [1.0, "nan"]


def test_columns_that_are_no_columns_are_the_judges_mistake(process):
    worker = Worker(process, 5.0)
    good = {name: array("d", [1.0, 2.0]) for name in BARS}
    for bad in (array("d", [1.0]), array("f", [1.0, 2.0]), array("q", [1, 2])):
        with pytest.raises(ValueError, match="Expected float64 close of 2 rows"):
            worker.show("2020-01-02", NAMES, {**good, "close": bad})


def test_what_the_judge_sends_keeps_to_the_schema(process):
    hold = encode({"type": "hold", "reason": ""})
    worker = worker_on(process, hold + hold + encode({"type": "value", "value": 0}))
    worker.show("2020-01-03", NAMES, {name: array("d", [1.0, 2.0]) for name in BARS})
    worker.decide("2020-01-03", 1e6, 5.5, {"A": 10.0})
    worker.decide("2020-01-04", 1e6, 5.5, {"A": 11.0})
    worker.call("strategy.returns:growth", [[1.0]], {"name": "x"})
    process.channel.close()
    stream = process.theirs.makefile("rb")
    kinds = []
    with stream:
        while stream.peek(1):
            header, data = decode(stream.read)
            VALID.validate(header)
            kinds.append(header["type"])
            if header["type"] == "sessions":
                assert header["dates"] == ["2020-01-02", "2020-01-03"]
                assert data == struct.pack("<32d", *[1.0, 2.0, 1.0, 2.0] * 8)
            if header["type"] == "decide":
                assert header["symbols"] == (["A"] if header["date"] == "2020-01-03" else None)
    assert kinds == ["names", "sessions", "decide", "decide", "call"]


def test_the_schema_knows_no_other_frames():
    for header in ({"type": "exec"}, {"type": "decide", "more": 1}, {"type": "target", "symbols": []}):
        assert not VALID.is_valid(header)
