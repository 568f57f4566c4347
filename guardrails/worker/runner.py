"""Inside the sandbox: hold one strategy, show it sessions, and answer with its decisions.

Runs as a script in the strategy's own environment (numpy and its locked dependencies). Nothing here is trusted by
the judge: whatever comes out is checked on the other side.
"""

from __future__ import annotations

import fcntl
import importlib
import importlib.util
import io
import os
import random
import sys
import traceback
from typing import Any

import numpy as np

SOURCE, FRAMES = sys.argv[1:3]
del sys.argv[1:]
# The standard library comes first: what is judged cannot stand in for it.
sys.path.insert(next((at for at, place in enumerate(sys.path) if place.endswith("-packages")), len(sys.path)), SOURCE)

_spec = importlib.util.spec_from_file_location("worker_frames", FRAMES)
assert _spec is not None and _spec.loader is not None
frames = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(frames)


NOT_SAID = float("nan")


class Runner:
    """The strategy, what it was shown last, and the first failure, which every later answer repeats."""

    def __init__(self) -> None:
        self.strategy: Any = None
        self.symbols: tuple[str, ...] = ()
        self.held: list[str] = []
        self.answered: list[str] | None = None
        self.failure: dict[str, Any] | None = None

    def answer(self, header: dict[str, Any], data: bytes) -> bytes | None:
        """Handle one frame; return the reply where one is due."""
        kind = header["type"]
        if kind == "names":
            self.symbols = tuple(header["symbols"])
            return None
        if kind == "sessions":
            if self.failure is None:
                _, self.failure = _guarded(self._sessions, header, data)
            return None
        reply, failure = None, self.failure
        if failure is None:
            act = {"hello": self._hello, "decide": self._decide, "call": self._call}[kind]
            reply, failure = _guarded(act, header, data)
            if kind != "call":  # a function that raises may be just what a golden case expects
                self.failure = failure
        return frames.encode(failure) if failure else reply

    def _hello(self, header: dict[str, Any], data: bytes) -> bytes:
        random.seed(header["seed"])
        if header["strategy"]:
            self.strategy = _found(header["strategy"])(header["params"])
        ready: bytes = frames.encode({"type": "ready", "version": frames.VERSION})
        return ready

    def _sessions(self, header: dict[str, Any], data: bytes) -> None:
        days = header["dates"]
        table = np.frombuffer(data).reshape(len(frames.BARS), len(days), len(self.symbols))
        for day, columns in zip(days, table.swapaxes(0, 1), strict=True):
            # The keys stand as tests have them, so that their order tells nothing.
            bars: dict[str, Any] = {"date": day, "symbols": self.symbols}
            self.strategy.on_session(bars | dict(zip(frames.BARS, columns, strict=True)))

    def _decide(self, header: dict[str, Any], data: bytes) -> bytes:
        if header["symbols"] is not None:
            self.held = header["symbols"]
        shares = dict(zip(self.held, np.frombuffer(data).tolist(), strict=True))
        portfolio = {name: header[name] for name in ("date", "equity", "cash")} | {"shares": shares}
        decision = self.strategy.decide(portfolio)
        reply: bytes
        if decision["action"] == "hold":
            reply = frames.encode({"type": "hold", "reason": str(decision.get("reason", ""))[:2_000]})
            return reply
        if decision["action"] != "target":
            raise ValueError(f"Expected the action target or hold, was {decision['action']!r}")
        weights, plans = decision["weights"], decision.get("plan", {})
        symbols = list(weights)
        symbols += [symbol for symbol in plans if symbol not in weights]
        table = [[*map(float, weights.values()), *[0.0] * (len(symbols) - len(weights))]]
        columns = ["weight"]
        if plans:
            columns += frames.PLAN
            told = [plans.get(symbol) or {} for symbol in symbols]
            for name in frames.PLAN:
                table.append([NOT_SAID if (value := plan.get(name)) is None else float(value) for plan in told])
        answer = {
            "type": "target",
            "rows": len(symbols),
            "columns": columns,
            "symbols": None if symbols == self.answered else symbols,
            "weights": len(weights),
            "reasons": {str(symbol): str(reason)[:200] for symbol, reason in decision.get("reasons", {}).items()},
        }
        self.answered = symbols
        reply = frames.encode(answer, [np.array(table).tobytes()])
        return reply

    def _call(self, header: dict[str, Any], data: bytes) -> bytes:
        arguments = [_array(value) for value in header["args"]]
        named = {name: _array(value) for name, value in header["kwargs"].items()}
        value = _found(header["function"])(*arguments, **named)
        reply: bytes = frames.encode({"type": "value", "value": _plain(value)})
        return reply


def _guarded(act: Any, header: dict[str, Any], data: bytes) -> tuple[Any, dict[str, Any] | None]:
    """Return what came of it, and the failure to report where it raised."""
    try:
        return act(header, data), None
    except BaseException as error:  # noqa: BLE001 - whatever the strategy raises, SystemExit too, is its failure
        kind = "memory" if isinstance(error, MemoryError) else "raised"
        said = f"{type(error).__name__}: {error}"[:2_000]
        trace = traceback.format_exc(limit=-12)[-8_000:]
        return None, {"type": "failure", "kind": kind, "message": said, "traceback": trace}


def _found(place: str) -> Any:
    """Return what `package.module:name` names."""
    module, _, name = place.partition(":")
    target: Any = importlib.import_module(module)
    for part in name.split("."):
        target = getattr(target, part)
    return target


def _array(value: Any) -> Any:
    """Return a list of numbers (None as NaN) or of truth values as an array; every other value as it is."""
    if isinstance(value, list) and value and all(isinstance(item, bool) for item in value):
        return np.array(value, dtype=np.bool_)
    numbers = isinstance(value, list) and all(item is None or isinstance(item, int | float | list) for item in value)
    return np.array(value, dtype=np.float64) if numbers else value


def _plain(value: Any) -> Any:
    """Return a value as JSON holds it: arrays as lists, NaN and infinities by their names."""
    if isinstance(value, np.ndarray):
        return [_plain(item) for item in value.tolist()]
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float) and not np.isfinite(value):
        return repr(value)
    return value


def serve(channel: int) -> None:
    """Answer frames until the channel closes or says bye."""
    stream = io.BufferedReader(io.FileIO(channel, closefd=False), 1 << 18)

    def read(size: int) -> bytes:
        data = stream.read(size)
        if len(data) != size:
            raise SystemExit(0)
        return data

    runner = Runner()
    while True:
        header, data = frames.decode(read)
        if header["type"] == "bye":
            return
        reply = runner.answer(header, data)
        while reply:
            reply = reply[os.write(channel, reply) :]


def _aside() -> int:
    """Move the channel from where everybody would look for it. That keeps accidents away; it is no boundary."""
    number = fcntl.fcntl(3, fcntl.F_DUPFD, 16)
    os.dup2(0, 3)
    return number


assert sys.byteorder == "little"
serve(_aside())
