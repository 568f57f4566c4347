"""The judge's side of a strategy worker: frames out, checked answers in, every failure named."""

from __future__ import annotations

import math
import select
import socket
import struct
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from guardrails.sandbox import Limits, Process, Sandbox
from guardrails.worker import frames
from guardrails.worker.frames import BARS, PLAN, FrameError, FrameTooLong, decode, encode

RUNNER = Path(__file__).with_name("runner.py")
FRAMES = Path(frames.__file__)
#: Sessions are gathered up to this many bytes before they are sent.
BATCH = 1 << 18
#: What the exit codes of a sandboxed process say (122 to 124: its supervisor ended it; 128 + n: signal n).
ENDS = {
    122: ("flood", "it wrote more than its scratch space holds"),
    123: ("flood", "it printed more than it may"),
    124: ("timeout", "its time was up"),
    128 + 24: ("timeout", "it used more processor time than it may"),
}


#: Most characters of a reason, and of what a failure says.
REASON, SAID = 500, 8_000


def shown(text: str, most: int, kept: str = "") -> str:
    """Return a text of the judged as it may be stored and printed anywhere: of printable characters and `kept` alone.

    Half a letter, a terminal's code or a NUL would come out again in a database, a log or somebody's terminal.
    """
    text = text[:most]
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() or letter in kept else "\ufffd" for letter in text)


def _watched(channel: socket.socket, event: int) -> select.poll:
    watched = select.poll()
    watched.register(channel, event)
    return watched


class WorkerFailure(Exception):
    """The strategy failed.

    `kind` is raised, memory, timeout, died, flood (too much printed or answered), protocol (no frame), garbage (a frame
    that is no answer), or says what is wrong with a target: weights, plan, unknown_symbol.
    """

    def __init__(self, kind: str, message: str, traceback: str = "") -> None:
        super().__init__(f"{kind}: {message}")
        self.kind, self.message, self.traceback = kind, message, traceback


class Worker:
    """One strategy in one sandboxed process. After a failure it is dead and says so, save that a `call` may raise."""

    def __init__(self, process: Process, seconds: float) -> None:
        self._process = process
        self._channel = process.channel
        self._channel.setblocking(False)
        self._readable, self._writable = _watched(self._channel, select.POLLIN), _watched(self._channel, select.POLLOUT)
        self._seconds = seconds
        self._waiting: list[bytes] = []
        self._read_ahead = bytearray()
        self._symbols: tuple[str, ...] | None = None
        self._days: list[str] = []
        self._bars: list[list[Any]] = []
        self._held: list[str] | None = None
        self._deadline: float | None = None
        self._answered: list[str] = []
        self._known: set[str] = set()
        self._dead: WorkerFailure | None = None

    @classmethod
    def start(
        cls,
        sandbox: Sandbox,
        python: Path,
        tree: Path,
        params: Mapping[str, object],
        *,
        seed: int,
        capital: float,
        limits: Limits | None = None,
        seconds: float = 30.0,
        source: str = "src",
        strategy: str = "strategy:Strategy",
    ) -> Worker:
        """Start the strategy of `tree` and wait until it is built: `boot`, then `build`.

        Raises:
            WorkerFailure: it cannot be imported or built.
        """
        worker = cls.boot(sandbox, python, tree, limits=limits, seconds=seconds, source=source)
        try:
            worker.build(params, seed=seed, capital=capital, strategy=strategy)
        except BaseException:
            worker.close()
            raise
        return worker

    @classmethod
    def boot(
        cls,
        sandbox: Sandbox,
        python: Path,
        tree: Path,
        *,
        limits: Limits | None = None,
        seconds: float = 30.0,
        source: str = "src",
    ) -> Worker:
        """Start an interpreter for the strategy of `tree` (a folder, of which only `source` is shown to it), and do not
        wait for it. It loads nothing of the strategy before `build`, which has to come first.

        `seconds` bounds each answer.
        """
        folder = tree.resolve() / source
        readable = [folder, RUNNER, FRAMES]
        return cls(sandbox.start(python, RUNNER, [str(folder), str(FRAMES)], readable=readable, limits=limits), seconds)

    def build(
        self, params: Mapping[str, object], *, seed: int, capital: float, strategy: str = "strategy:Strategy"
    ) -> None:
        """Have the strategy built. An empty `strategy` builds none: such a worker answers calls.

        Raises:
            WorkerFailure: it cannot be imported or built.
        """
        hello = {"type": "hello", "version": frames.VERSION, "params": dict(params), "seed": seed, "capital": capital}
        answer, _ = self._ask(encode({**hello, "strategy": strategy}))
        if answer != {"type": "ready", "version": frames.VERSION}:
            raise self._garbage(f"Expected ready for version {frames.VERSION}, was {answer!r:.80}.")

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def show(self, day: str, symbols: tuple[str, ...], columns: Mapping[str, Any]) -> None:
        """Send one session; `columns` holds contiguous float64 buffers of len(symbols) by the names of the bars.

        Costs no round trip: sessions of the same names are gathered and go as one frame with the next question,
        or by `flush`, so the buffers stay unchanged until then. Pass the same tuple object while the names stay the
        same.

        Raises:
            WorkerFailure: it died, or took nothing in for the time of an answer. `decide` tells what it raised.
        """
        if symbols is not self._symbols:
            self._gather()
            self._waiting.append(encode({"type": "names", "symbols": list(symbols)}))
            self._symbols = symbols
            self._known.update(symbols)
        shape = (len(symbols),)
        data = [columns[name] for name in BARS]
        for name, column in zip(BARS, data, strict=True):
            view = memoryview(column)
            if view.format != "d" or view.shape != shape:
                raise ValueError(f"Expected float64 {name} of {len(symbols)} rows, was {view.format} of {view.shape}.")
        self._days.append(day)
        self._bars.append(data)
        if len(self._days) * len(symbols) * 8 * len(BARS) > BATCH:
            self.flush()

    def flush(self) -> None:
        """Send what was shown, so that the strategy takes it in while the caller does something else.

        Raises:
            WorkerFailure: as `show`.
        """
        self._send(time.monotonic() + self._seconds)

    def ask(self, day: str, equity: float, cash: float, shares: Mapping[str, float]) -> None:
        """Ask for a decision, which `answer` waits for: several workers think beside one another.

        Raises:
            WorkerFailure: it died, or took nothing in for the time of an answer.
        """
        names: list[str] | None = list(shares)
        if names == self._held:
            names = None
        else:
            self._held = names
            self._known.update(shares)
        portfolio = {
            "type": "decide",
            "date": day,
            "equity": equity,
            "cash": cash,
            "symbols": names,
            "rows": len(shares),
            "columns": ("shares",),
        }
        held = struct.pack(f"<{len(shares)}d", *shares.values())
        self._deadline = time.monotonic() + self._seconds
        self._gather()
        self._waiting.append(encode(portfolio, [held]))
        self._send(self._deadline)

    def answer(self) -> dict[str, Any]:
        """Return the decision that was asked for.

        Returns {"action": "hold", "reason"} or {"action": "target", "weights", "plan", "reasons"} with finite weights
        >= 0 of known symbols; what they sum to is the caller's business.

        Raises:
            WorkerFailure: whatever else came back, or nothing in time.
        """
        if self._deadline is None:
            raise ValueError("Expected a question before, was none.")
        deadline, self._deadline = self._deadline, None
        header, data = self._reply(deadline)
        if header["type"] == "hold":
            return {"action": "hold", "reason": shown(str(header.get("reason", "")), REASON)}
        if header["type"] != "target":
            raise self._garbage(f"Expected target or hold, was {header['type']!r:.80}.")
        return self._target(header, data)

    def decide(self, day: str, equity: float, cash: float, shares: Mapping[str, float]) -> dict[str, Any]:
        """Ask for a decision and return it, as `ask` and `answer`."""
        self.ask(day, equity, cash, shares)
        return self.answer()

    def call(self, function: str, arguments: Sequence[object], named: Mapping[str, object] | None = None) -> Any:
        """Call `package.module:name` with plain values; lists of numbers arrive as arrays, None in them as NaN.

        NaN and infinities come back by their names, "nan", "inf", "-inf".

        Raises:
            WorkerFailure: it raised (further calls may follow), or the worker failed.
        """
        frame = {"type": "call", "function": function, "args": list(arguments), "kwargs": dict(named or {})}
        header, _ = self._ask(encode(frame), survives=True)
        if header["type"] != "value" or "value" not in header:
            raise self._garbage(f"Expected a value, was {header['type']!r:.80}.")
        return header["value"]

    def close(self) -> None:
        """End the worker and everything it started."""
        self._process.close()
        self._dead = self._dead or WorkerFailure("died", "The worker was closed.")

    # -- inside

    def _target(self, header: dict[str, Any], data: bytes) -> dict[str, Any]:
        symbols, count, rows = self._symbols_of(header), header.get("weights"), header.get("rows", 0)
        if type(count) is not int or not 0 <= count <= rows:
            raise self._garbage(f"Expected a number of weights from 0 to {rows}, was {count!r:.80}.")
        values = struct.unpack(f"<{len(data) // 8}d", data)
        weights = dict(zip(symbols[:count], values[:count], strict=True))
        total = sum(values[:count])  # not finite where one of them is not
        if count and not (min(values[:count]) >= 0 and total < math.inf):
            symbol = next((symbol for symbol, weight in weights.items() if not 0 <= weight < math.inf), None)
            if symbol is not None:
                wrong = f"was {weights[symbol]} for {symbol}"
                raise self._failed("weights", f"Expected finite weights of at least 0, {wrong}.")
        plan = self._plans(symbols, values[rows:])
        reasons = header.get("reasons")
        if type(reasons) is not dict or not set(map(type, reasons.values())) <= {str}:
            raise self._garbage("Expected reasons as texts by symbol, was something else.")
        if reasons:
            reasons = {symbol: reasons[symbol] for symbol in symbols if symbol in reasons}
            if not "".join(reasons.values()).isprintable() or max(map(len, reasons.values()), default=0) > REASON:
                reasons = {symbol: shown(text, REASON) for symbol, text in reasons.items()}
        return {"action": "target", "weights": weights, "plan": plan, "reasons": reasons}

    def _symbols_of(self, header: dict[str, Any]) -> list[str]:
        """Return the names of a target's rows: those that it brings, or those of the target before."""
        symbols, rows = header.get("symbols"), header.get("rows", 0)
        if header.get("columns") not in (["weight"], ["weight", *PLAN]):
            raise self._garbage("Expected rows of a weight, with or without a plan, was something else.")
        if symbols is None and len(self._answered) == rows:
            return self._answered
        if type(symbols) is not list or not set(map(type, symbols)) <= {str}:
            raise self._garbage("Expected a list of symbols, was something else.")
        if not len(symbols) == len(set(symbols)) == rows:
            raise self._garbage("Expected one row a symbol, each once, was something else.")
        if not self._known.issuperset(symbols):
            unknown = next(symbol for symbol in symbols if symbol not in self._known)
            raise self._failed("unknown_symbol", f"Expected names that were shown, was {unknown!r:.80}.")
        self._answered = symbols
        return symbols

    def _plans(self, symbols: list[str], told: tuple[float, ...]) -> dict[str, dict[str, float | None]]:
        """Return the plans by symbol; `told` holds them by column, or nothing."""
        if math.inf in told or -math.inf in told:
            raise self._failed("plan", "Expected a finite plan, was an infinite one.")
        plan: dict[str, dict[str, float | None]] = {}
        rows = len(told) // len(PLAN)
        if not rows:
            return plan
        for symbol, share, sessions, limit in zip(symbols, *(told[rows * at :][:rows] for at in range(3)), strict=True):
            one: dict[str, float | None] = {"limit_bps": limit if limit == limit else None}  # NaN: not said
            if share == share:
                one["max_participation"] = share
            if sessions == sessions:
                one["sessions"] = sessions
            if len(one) > 1 or one["limit_bps"] is not None:
                plan[symbol] = one
        return plan

    def _ask(self, frame: bytes, *, survives: bool = False) -> tuple[dict[str, Any], bytes]:
        deadline = time.monotonic() + self._seconds
        self._gather()
        self._waiting.append(frame)
        self._send(deadline)
        return self._reply(deadline, survives=survives)

    def _reply(self, deadline: float, *, survives: bool = False) -> tuple[dict[str, Any], bytes]:
        if self._dead is not None:
            raise self._dead
        try:
            header, data = decode(lambda size: self._read(size, deadline))
        except TimeoutError:
            raise self._timeout() from None
        except FrameTooLong as error:
            raise self._failed("flood", str(error)) from None
        except FrameError as error:
            raise self._failed("protocol", str(error)) from None
        except OSError:
            raise self._died() from None
        if header["type"] != "failure":
            return header, data
        said = [header.get(name) for name in ("kind", "message", "traceback")]
        kind, message, trace = (shown(value, SAID, "\n\t") if isinstance(value, str) else "" for value in said)
        if survives and kind == "raised":
            raise WorkerFailure(kind, message, trace)
        raise self._failed(kind if kind in ("raised", "memory") else "garbage", message, trace)

    def _gather(self) -> None:
        """Make one frame of the sessions that wait: each column holds them one after another."""
        if not self._days:
            return
        rows = len(self._days) * len(self._symbols or ())
        columns = (bars[at] for at in range(len(BARS)) for bars in self._bars)
        self._waiting.append(encode({"type": "sessions", "dates": self._days, "rows": rows, "columns": BARS}, columns))
        self._days, self._bars = [], []

    def _send(self, deadline: float) -> None:
        """Send what waits. A worker that writes unasked and does not read is a time-out, not a deadlock."""
        self._gather()
        if self._dead is not None:
            raise self._dead
        left = memoryview(b"".join(self._waiting))
        try:
            while left:
                try:
                    left = left[self._channel.send(left) :]
                except BlockingIOError:
                    self._wait(self._writable, deadline)
        except TimeoutError:
            raise self._timeout() from None
        except OSError:
            raise self._died() from None
        self._waiting.clear()

    def _read(self, size: int, deadline: float) -> bytes:
        while len(self._read_ahead) < size:
            self._wait(self._readable, deadline)
            part = self._channel.recv(1 << 18)
            if not part:
                raise ConnectionResetError
            self._read_ahead += part
        data = bytes(self._read_ahead[:size])
        del self._read_ahead[:size]
        return data

    def _wait(self, ready: select.poll, deadline: float) -> None:
        if not ready.poll(max(deadline - time.monotonic(), 0.001) * 1_000):
            raise TimeoutError

    def _timeout(self) -> WorkerFailure:
        return self._failed("timeout", f"Expected an answer within {self._seconds:g} seconds, was none.")

    def _died(self) -> WorkerFailure:
        code = self._process.wait(5)  # None: it closed its channel and runs on, the same end
        self._process.kill()
        printed = shown(self._process.output()[-2_000:], SAID, "\n\t")
        kind, said = ENDS.get(
            code or 0, ("memory" if "MemoryError" in printed else "died", f"it ended with code {code}")
        )
        return self._failed(kind, f"Expected an answer, was none: {said}.", printed)

    def _garbage(self, message: str) -> WorkerFailure:
        return self._failed("garbage", message)

    def _failed(self, kind: str, message: str, traceback: str = "") -> WorkerFailure:
        self._dead = WorkerFailure(kind, message, traceback)
        self._process.kill()
        return self._dead
