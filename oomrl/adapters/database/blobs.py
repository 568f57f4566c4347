"""Pack what is read back whole: the bars of a session as sent, and checkpoints.

A packed session is zlib over: u32 little-endian length of a JSON header, the header {symbols, columns,
benchmark}, then each column's little-endian float64. The bits of every float come back as they went in, NaN
included.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping
from datetime import date

import numpy as np

from oomrl.adapters.database.engine import canonical
from oomrl.domain.market import Session
from oomrl.domain.trading import Decision, Hold, LiquidityPlan, TargetPortfolio


def pack_session(session: Session) -> bytes:
    """Return a session as bytes."""
    header = canonical(
        {
            "symbols": list(session.symbols),
            "columns": list(session.columns),
            "benchmark": None if session.benchmark is None else session.benchmark.hex(),
        }
    ).encode()
    parts = [struct.pack("<I", len(header)), header]
    parts += [np.ascontiguousarray(column, dtype="<f8").tobytes() for column in session.columns.values()]
    return zlib.compress(b"".join(parts), level=1)


def unpack_session(day: date, blob: bytes, symbols: dict[tuple[str, ...], tuple[str, ...]] | None = None) -> Session:
    """Return the session that `pack_session` was given. `symbols` shares one tuple among equal sets of names."""
    raw = zlib.decompress(blob)
    (length,) = struct.unpack_from("<I", raw)
    header = json.loads(raw[4 : 4 + length])
    names = tuple(header["symbols"])
    if symbols is not None:
        names = symbols.setdefault(names, names)
    table = np.frombuffer(raw, dtype="<f8", offset=4 + length).reshape(len(header["columns"]), len(names))
    benchmark = header["benchmark"]
    return Session(
        day=day,
        symbols=names,
        columns=dict(zip(header["columns"], table, strict=True)),
        benchmark=None if benchmark is None else float.fromhex(benchmark),
    )


def pack_json(value: Mapping[str, object]) -> bytes:
    """Return a JSON object as compressed bytes."""
    return zlib.compress(canonical(value).encode(), level=1)


def unpack_json(blob: bytes) -> dict[str, object]:
    """Return the object that `pack_json` was given."""
    value = json.loads(zlib.decompress(blob))
    assert isinstance(value, dict)
    return value


def decision_columns(decision: Decision) -> dict[str, object]:
    """Return a decision as the columns kind, weights, plan and reasons."""
    if isinstance(decision, Hold):
        return {"kind": "hold", "weights": {}, "plan": {}, "reasons": {"": decision.reason}}
    plan = {name: [p.max_participation, p.sessions, p.limit_bps] for name, p in decision.plan.items()}
    return {
        "kind": "target",
        "weights": dict(decision.weights),
        "plan": plan,
        "reasons": dict(decision.reasons),
    }


def decision_of(
    kind: str, weights: Mapping[str, float], plan: Mapping[str, list[object]], reasons: Mapping[str, str]
) -> Decision:
    """Return the decision that `decision_columns` was given."""
    if kind == "hold":
        return Hold(reasons.get("", ""))
    plans = {
        name: LiquidityPlan(float(str(share)), int(str(sessions)), None if limit is None else float(str(limit)))
        for name, (share, sessions, limit) in plan.items()
    }
    return TargetPortfolio(weights=dict(weights), plan=plans, reasons=dict(reasons))
