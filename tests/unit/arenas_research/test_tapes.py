"""Real tapes: adjusted, anonymous, shifted, and honest about faults."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from oomrl.arenas.research.agents import POLICIES
from oomrl.arenas.research.arena import arena_on_tape
from oomrl.arenas.research.campaign import play
from oomrl.arenas.research.engine import ResearchEngine
from oomrl.arenas.research.tapes import panel_from
from oomrl.errors import Mistake
from oomrl.exchange.tape import Tape
from oomrl.exchange.tape_files import load_tape as read_tape

DAYS, NAMES = 420, 14
SIZE = {"names": 12, "public_days": 200, "windows": 2, "window_days": 60, "gap": 5}


def rows(split_at: int = 100, jump_at: int = 150) -> dict[str, list]:
    rng = np.random.default_rng(1)
    table: dict[str, list] = {
        name: [] for name in ("symbol", "date", "open", "high", "low", "close", "volume", "dividend", "split")
    }
    start = dt.date(2001, 1, 1)
    for k in range(NAMES):
        price = 50.0
        for t in range(DAYS):
            split = 2.0 if (k, t) == (0, split_at) else 1.0
            price *= (1.0 + 0.01 * rng.standard_normal()) / split
            if (k, t) == (1, jump_at):
                price *= 0.2
            dividend = 0.5 if (k, t) == (2, 120) else 0.0
            price -= dividend
            for name, value in (
                ("symbol", f"SYM{k}"),
                ("date", start + dt.timedelta(days=t)),
                ("open", price),
                ("high", price * 1.01),
                ("low", price * 0.99),
                ("close", price),
                ("volume", 1e5),
                ("dividend", dividend),
                ("split", split),
            ):
                table[name].append(value)
    return table


@pytest.fixture(scope="module")
def parquet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tape") / "tape.parquet"
    pq.write_table(pa.table(rows()), path)
    return path


def test_splits_and_dividends_make_no_profit_and_jumps_are_quarantined(parquet: Path) -> None:
    panel = panel_from(read_tape(parquet), 3, **SIZE)
    assert np.abs(panel.returns).max() < 0.06
    jumped = np.flatnonzero(~panel.tradable.all(axis=0))
    if len(jumped):
        held_back = np.flatnonzero(~panel.tradable[:, jumped[0]])
        assert len(held_back) <= 20
    np.testing.assert_allclose(panel.columns["close"], 100.0 * np.cumprod(1.0 + panel.returns, axis=0))
    assert (panel.columns["high"] >= panel.columns["close"]).all()


def test_names_and_stretch_are_hidden_and_drawn_by_seed(parquet: Path) -> None:
    tape = read_tape(parquet)
    first, again, other = (
        panel_from(tape, 1, **SIZE),
        panel_from(tape, 1, **SIZE),
        panel_from(tape, 2, **SIZE),
    )
    assert first.digest == again.digest != other.digest
    assert all(name.startswith("N") for name in first.names)
    assert first.truth is None


def test_an_episode_on_a_tape_scores_without_a_ceiling(parquet: Path) -> None:
    tape = read_tape(parquet)
    engine = ResearchEngine(tape=lambda seed: panel_from(tape, seed, **SIZE))
    assert -1.0 <= play(engine, POLICIES["simple"], 1, "model@tape") <= 1.0
    engine.reset(1, "features@tape")
    done = engine.step({"tool": "execute", "arguments": {"rationale": "x", "abstain": True}})
    assert done.reward == 0.0
    assert engine.hidden()["tradable"] is None


def test_a_tape_that_is_too_short_or_narrow_is_refused(parquet: Path) -> None:
    tape = read_tape(parquet)
    with pytest.raises(Mistake, match="at least"):
        panel_from(tape, 1, public_days=5000)
    few = Tape(tape.name, tape.symbols[:6], tape.days, {name: v[:, :6] for name, v in tape.columns.items()})
    with pytest.raises(Mistake, match="at least 10 names"):
        panel_from(few, 1, **SIZE)


def test_the_arena_on_a_tape_names_it_in_its_version_and_has_no_oracle(parquet: Path) -> None:
    arena = arena_on_tape(str(parquet))
    assert arena.version.endswith(read_tape(parquet).digest[:12])
    assert set(arena.tasks) == {"model@tape", "features@tape"}
    assert "oracle" not in arena.policies and {"random", "simple", "heuristic"} <= set(arena.policies)
    assert {schema["name"] for schema in arena.tool_schemas} >= {"train_model", "build_features", "execute"}
    with pytest.raises(Mistake, match="days"):
        arena.make().reset(0, "features@tape")
