"""Inside the sandbox: hold one strategy, show it sessions, and answer with its decisions.

Runs as a script in the strategy's own environment (numpy and its locked dependencies). Nothing here is trusted by
the judge: whatever comes out is checked on the other side.
"""

from __future__ import annotations

import importlib
import io
import os
import struct
import sys
import traceback
from typing import Any

FOLDER, FRAMES, CHANNEL = sys.argv[1], sys.argv[2], 3
sys.path[:0] = [f"{FOLDER}/src"]

import importlib.util  # noqa: E402

import numpy as np  # noqa: E402

_spec = importlib.util.spec_from_file_location("worker_frames", FRAMES)
assert _spec is not None and _spec.loader is not None
frames: Any = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(frames)

BARS = ("open", "high", "low", "close", "volume", "dividend", "split", "tradable")
PLAN = ("max_participation", "sessions", "limit_bps")


class Runner:
    """The strategy, what it was shown last, and the first failure, which every later answer repeats."""

    def __init__(self) -> None:
        self.strategy: Any = None
        self.symbols: tuple[str, ...] = ()
        self.portfolio: dict[str, Any] = {}
        self.failure: dict[str, str] | None = None

    def answer(self, header: dict[str, Any], data: bytes) -> Any:
        """Handle one frame; return the reply where one is due."""
        kind = header["type"]
        if kind == "session":
            if self.failure is None:
                self._guarded(self._session, header, data)
            return None
        if kind == "portfolio":
            shares = dict(zip(header["symbols"], np.frombuffer(data).tolist(), strict=True))
            self.portfolio = {name: header[name] for name in ("date", "equity", "cash")} | {"shares": shares}
            return None
        reply = None
        if self.failure is None:
            act = {"hello": self._hello, "decide": self._decide, "call": self._call}[kind]
            reply = self._guarded(act, header, data)
        return frames.encode(self.failure) if self.failure else reply

    def _guarded(self, act: Any, header: dict[str, Any], data: bytes) -> Any:
        try:
            return act(header, data)
        except BaseException as error:  # noqa: BLE001 - whatever the strategy raises, SystemExit too, is its failure
            kind = "memory" if isinstance(error, MemoryError) else "raised"
            said = f"{type(error).__name__}: {error}"[:2_000]
            trace = traceback.format_exc(limit=-12)[-8_000:]
            self.failure = {"type": "failure", "kind": kind, "message": said, "traceback": trace}
            return None

    def _hello(self, header: dict[str, Any], data: bytes) -> Any:
        module = importlib.import_module("strategy")
        self.strategy = module.Strategy(header["params"])
        return frames.encode({"type": "ready", "version": frames.VERSION})

    def _session(self, header: dict[str, Any], data: bytes) -> None:
        if header["symbols"] is not None:
            self.symbols = tuple(header["symbols"])
        table = np.frombuffer(data).reshape(len(BARS), len(self.symbols))
        bars: dict[str, Any] = dict(zip(BARS, table, strict=True))
        bars["date"], bars["symbols"] = header["date"], self.symbols
        self.strategy.on_session(bars)

    def _decide(self, header: dict[str, Any], data: bytes) -> Any:
        decision = self.strategy.decide(self.portfolio)
        if decision["action"] == "hold":
            return frames.encode({"type": "hold", "reason": str(decision.get("reason", ""))[:2_000]})
        if decision["action"] != "target":
            raise ValueError(f"Expected the action target or hold, was {decision['action']!r}")
        weights, plans = decision["weights"], decision.get("plan", {})
        symbols = list(weights)
        symbols += [symbol for symbol in plans if symbol not in weights]
        table = np.full((4, len(symbols)), np.nan)
        table[0] = [float(weights.get(symbol, 0.0)) for symbol in symbols]
        for row, symbol in enumerate(symbols):
            plan = plans.get(symbol)
            if plan is not None:
                table[1:, row] = [np.nan if plan.get(name) is None else float(plan[name]) for name in PLAN]
        header = {
            "type": "target",
            "rows": len(symbols),
            "columns": ["weight", *PLAN],
            "symbols": symbols,
            "weights": len(weights),
            "reasons": {str(symbol): str(reason)[:200] for symbol, reason in decision.get("reasons", {}).items()},
        }
        return frames.encode(header, [table.tobytes()])

    def _call(self, header: dict[str, Any], data: bytes) -> Any:
        module, _, name = header["function"].partition(":")
        target: Any = importlib.import_module(module)
        for part in name.split("."):
            target = getattr(target, part)
        arguments = [_array(value) for value in header["args"]]
        named = {name: _array(value) for name, value in header["kwargs"].items()}
        return frames.encode({"type": "value", "value": _plain(target(*arguments, **named))})


def _array(value: Any) -> Any:
    """Return a list of numbers or of truths as an array, None in it as NaN; every other value as it is."""
    if isinstance(value, list) and value and all(isinstance(item, bool) for item in value):
        return np.array(value)
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


def main() -> None:
    """Serve frames until the channel closes or says bye."""
    channel = io.BufferedReader(io.FileIO(CHANNEL, closefd=False), 1 << 18)

    def read(size: int) -> Any:
        data = channel.read(size)
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
            reply = reply[os.write(CHANNEL, reply) :]


assert struct.calcsize("=d") == 8 and sys.byteorder == "little"
main()
