"""The judge's side of a strategy worker: frames out, checked answers in, every failure named."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from guardrails.sandbox import Limits, Process, Sandbox
from guardrails.worker import frames
from guardrails.worker.frames import FrameError, decode, encode

RUNNER = Path(__file__).with_name("runner.py")
FRAMES = Path(frames.__file__)
BARS = ("open", "high", "low", "close", "volume", "dividend", "split", "tradable")
PLAN = ("max_participation", "sessions", "limit_bps")
#: Sessions are gathered up to this many bytes before they are sent.
BATCH = 1 << 18


class WorkerFailure(Exception):
    """The strategy failed: raised, timeout, died, memory, garbage, flood or protocol."""

    def __init__(self, kind: str, message: str, traceback: str = "") -> None:
        super().__init__(f"{kind}: {message}")
        self.kind, self.message, self.traceback = kind, message, traceback


class Worker:
    """One strategy in one sandboxed process. After a failure it is dead and says so."""

    def __init__(self, process: Process, seconds: float) -> None:
        self._process = process
        self._channel = process.channel
        self._channel.settimeout(seconds)
        self._seconds = seconds
        self._waiting: list[bytes | memoryview] = []
        self._size = 0
        self._symbols: tuple[str, ...] | None = None
        self._header = b""
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
    ) -> Worker:
        """Start the strategy of `tree` (a folder with src/) and wait until it is built.

        Raises:
            WorkerFailure: it cannot be imported or built.
        """
        process = sandbox.start(
            python, RUNNER, [str(tree), str(FRAMES)], readable=[tree, RUNNER, FRAMES], limits=limits
        )
        worker = cls(process, seconds)
        hello = {"type": "hello", "version": frames.VERSION, "params": dict(params), "seed": seed, "capital": capital}
        answer, _ = worker._ask(encode(hello))
        if answer["type"] != "ready":
            raise worker._garbage(f"Expected ready, was {answer['type']!r}.")
        return worker

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def show(self, day: str, symbols: tuple[str, ...], columns: Mapping[str, Any]) -> None:
        """Send one session; `columns` holds contiguous float64 buffers of len(symbols) by the names of the bars."""
        if symbols is not self._symbols:
            self._symbols = symbols
            self._known.update(symbols)
            names: object = list(symbols)
        else:
            names = None
        header = json.dumps(
            {"type": "session", "date": day, "symbols": names, "rows": len(symbols), "columns": BARS},
            separators=(",", ":"),
        ).encode()
        frame = b"".join((struct.pack("<I", len(header)), header, *[columns[name] for name in BARS]))
        self._waiting.append(frame)
        self._size += len(frame)
        if self._size > BATCH:
            self._flush()

    def decide(self, day: str, equity: float, cash: float, shares: Mapping[str, float]) -> dict[str, Any]:
        """Ask for a decision.

        Returns {"action": "hold", "reason"} or {"action": "target", "weights", "plan", "reasons"} with finite weights
        >= 0 of known symbols; what they sum to is the caller's business.

        Raises:
            WorkerFailure: whatever else came back, or nothing in time.
        """
        self._known.update(shares)
        portfolio = {
            "type": "portfolio",
            "date": day,
            "equity": equity,
            "cash": cash,
            "symbols": list(shares),
            "rows": len(shares),
            "columns": ["shares"],
        }
        held = struct.pack(f"<{len(shares)}d", *shares.values())
        header, data = self._ask(encode(portfolio, [held]) + encode({"type": "decide"}))
        if header["type"] == "hold":
            return {"action": "hold", "reason": str(header.get("reason", ""))}
        if header["type"] != "target":
            raise self._garbage(f"Expected target or hold, was {header['type']!r}.")
        return self._target(header, data)

    def call(self, function: str, arguments: Sequence[object], named: Mapping[str, object] | None = None) -> Any:
        """Call `package.module:name` with plain values; lists of numbers arrive as arrays."""
        frame = {"type": "call", "function": function, "args": list(arguments), "kwargs": dict(named or {})}
        header, _ = self._ask(encode(frame))
        if header["type"] != "value" or "value" not in header:
            raise self._garbage(f"Expected a value, was {header['type']!r}.")
        return header["value"]

    def close(self) -> None:
        """End the worker and everything it started."""
        self._process.close()
        self._dead = self._dead or WorkerFailure("died", "The worker was closed.")

    # -- inside

    def _target(self, header: dict[str, Any], data: bytes) -> dict[str, Any]:
        symbols, count = header.get("symbols"), header.get("weights")
        rows = header.get("rows", 0)
        named = isinstance(symbols, list) and all(isinstance(symbol, str) for symbol in symbols)
        if not named or symbols is None or len(symbols) != rows or len(set(symbols)) != rows:
            raise self._garbage("Expected one symbol for each row, each once, was something else.")
        if header.get("columns") != ["weight", *PLAN] or type(count) is not int or not 0 <= count <= rows:
            raise self._garbage("Expected the columns weight and plan, was something else.")
        unknown = [symbol for symbol in symbols if symbol not in self._known]
        if unknown:
            raise self._failed("unknown_symbol", f"Expected weights of names that were shown, was {unknown[0][:80]!r}.")
        values = struct.unpack(f"<{4 * rows}d", data)
        weights = values[:count]
        for symbol, weight in zip(symbols, weights, strict=False):
            if not math.isfinite(weight) or weight < 0:
                raise self._failed("weights", f"Expected finite weights of at least 0, was {weight} for {symbol}.")
        plan = {}
        for row, symbol in enumerate(symbols):
            one = {name: values[rows * (at + 1) + row] for at, name in enumerate(PLAN)}
            if any(math.isinf(value) for value in one.values()):
                raise self._failed("plan", f"Expected a finite plan, was an infinite one for {symbol}.")
            told = {name: value for name, value in one.items() if not math.isnan(value)}
            if told:
                plan[symbol] = {**told, "limit_bps": told.get("limit_bps")}
        reasons = header.get("reasons")
        if not isinstance(reasons, dict) or not all(isinstance(text, str) for text in reasons.values()):
            raise self._garbage("Expected reasons as texts by symbol, was something else.")
        return {
            "action": "target",
            "weights": dict(zip(symbols[:count], weights, strict=True)),
            "plan": plan,
            "reasons": {symbol: reasons[symbol] for symbol in symbols if symbol in reasons},
        }

    def _ask(self, frame: bytes) -> tuple[dict[str, Any], bytes]:
        self._waiting.append(frame)
        self._flush()
        try:
            header, data = decode(self._read)
        except TimeoutError:
            raise self._timeout() from None
        except FrameError as error:
            raise self._failed("flood" if "at most" in str(error) else "protocol", str(error)) from None
        except (OSError, struct.error):
            raise self._died() from None
        if header["type"] == "failure":
            said = [header.get(name) for name in ("kind", "message", "traceback")]
            kind, message, trace = (value[:8_000] if isinstance(value, str) else "" for value in said)
            raise self._failed(kind if kind in ("raised", "memory") else "raised", message, trace)
        return header, data

    def _flush(self) -> None:
        if self._dead is not None:
            raise self._dead
        try:
            self._channel.sendall(b"".join(self._waiting))
        except TimeoutError:
            raise self._timeout() from None
        except OSError:
            raise self._died() from None
        self._waiting.clear()
        self._size = 0

    def _read(self, size: int) -> bytes:
        parts: list[bytes] = []
        while size:
            part = self._channel.recv(min(size, 1 << 20))
            if not part:
                raise ConnectionResetError
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def _timeout(self) -> WorkerFailure:
        return self._failed("timeout", f"Expected an answer within {self._seconds:g} seconds, was none.")

    def _died(self) -> WorkerFailure:
        try:
            code = self._process.process.wait(5)
        except Exception:  # noqa: BLE001 - it closed its channel and runs on: the same end
            code = None
        printed = self._process.output()[-2_000:]
        kind = "memory" if "MemoryError" in printed else "died"
        return self._failed(kind, f"The worker ended with code {code} before it answered.", printed)

    def _garbage(self, message: str) -> WorkerFailure:
        return self._failed("garbage", message)

    def _failed(self, kind: str, message: str, traceback: str = "") -> WorkerFailure:
        self._dead = WorkerFailure(kind, message, traceback)
        self._process.kill()
        return self._dead
