"""A strategy that fails halts trading with the account left as it was; the failure is recorded, never a traceback."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest
from sqlalchemy import func, select

from oomrl.adapters.database.tables import capital_events, marks, orders
from tests import databases

from .conftest import Ran, start_patch

Command = Callable[..., Ran]

DECIDE = "    def decide(self, portfolio: dict) -> dict:\n"
BODIES = {
    "raises": 'raise ValueError("no idea")',
    "exits": "raise SystemExit(0)",
    "hangs": "while True:\n            pass",
    "eats memory": 'return {"action": "hold", "reason": str(len([0.0] * 10**10))}',
    "garbage": "return 42",
    "NaN": 'return {"action": "target", "weights": {"NAME1": math.nan}}',
    "sum to 3": 'return {"action": "target", "weights": {"NAME1": 1.5, "NAME2": 1.5}}',
    "negative": 'return {"action": "target", "weights": {"NAME1": -0.1}}',
    "unknown symbol": 'return {"action": "target", "weights": {"NOPE": 0.5}}',
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BODIES)
def test_a_failing_strategy_halts_trading(name: str, small_tape: Path, tmp_path: Path, command: Command) -> None:
    def fail(source: str) -> str:
        head, _, rest = source.partition(DECIDE)
        assert rest, "the strategy's decide method was not found"
        early = '{"action": "target", "weights": {"NAME0": 0.5}}'
        late = f'if str(portfolio["date"]) < "2010-06-15":\n            return {early}'
        return f"import math  # for a failing answer\n{head}{DECIDE}        {late}\n        {BODIES[name]}\n{rest}"

    patch = start_patch("src/strategy/strategy.py", fail, tmp_path / "start.patch")
    state = tmp_path / "state"
    ran = command(
        "simulate", "--tape", small_tape, "--start", patch, "--from", "2010-06-01", "--state", state, "--json"
    )
    assert ran.code == 0, ran.err
    assert "Traceback" not in ran.err
    result = json.loads(ran.out)
    assert result["losses"] >= 1
    kinds = {row[0] for row in databases.rows(state, select(capital_events.c.kind))}
    ((last,),) = databases.rows(state, select(marks.c.state).order_by(marks.c.day.desc()).limit(1))
    late = select(func.count()).select_from(orders).where(orders.c.decided_on > date(2010, 6, 15))
    ((after,),) = databases.rows(state, late)
    assert "halt" in kinds
    assert last == "halted"
    assert after == 0
    assert result["fills"] > 0, "the account holds what it held"
