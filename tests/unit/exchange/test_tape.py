"""Tapes: what is read, what is refused and how, what is shown, and what is kept from trading."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from oomrl.domain.market import COLUMNS
from oomrl.errors import Mistake
from oomrl.exchange.tape import Tape
from oomrl.exchange.tape_files import load_tape
from oomrl.testing.markets import CALM, Weather, made_up_tape

HEAD = "symbol,date,open,high,low,close,volume,dividend,split"
ROWS = [
    "AA,2020-01-03,11,12,10,11.5,1000,0,1",
    "AA,2020-01-02,10,11,9,10.5,1000,0,1",
    "AA,2020-01-06,11,12,10,11.00004,0,0.25,1",
]


def folder(tmp_path: Path, **files: list[str]) -> Path:
    for name, rows in files.items():
        (tmp_path / f"{name}.csv").write_text("\n".join([HEAD, *rows]) + "\n", "utf-8")
    return tmp_path


def test_rows_are_sorted_and_prices_rounded_and_sessions_shown_in_order(tmp_path: Path) -> None:
    tape = load_tape(folder(tmp_path, AA=ROWS, BB=["BB,2020-01-03,5,5,5,5,10,0,2"]))
    assert tape.symbols == ("AA", "BB")
    sessions = list(tape.sessions())
    assert [session.day.day for session in sessions] == [2, 3, 6]
    assert [session.symbols for session in sessions] == [("AA",), ("AA", "BB"), ("AA",)]
    assert sessions[0].symbols is sessions[2].symbols
    assert sessions[2]["close"].tolist() == [11.0]
    assert sessions[2]["dividend"].tolist() == [0.25]
    assert sessions[2]["tradable"].tolist() == [0.0]
    assert set(sessions[0].columns) == set(COLUMNS)
    with pytest.raises(ValueError, match="read-only"):
        sessions[1]["close"][0] = 1.0


def test_a_range_of_sessions_excludes_its_start_and_includes_its_end(tmp_path: Path) -> None:
    tape = load_tape(folder(tmp_path, AA=ROWS))
    assert [s.day.day for s in tape.sessions(date(2020, 1, 2), date(2020, 1, 3))] == [3]
    assert list(tape.sessions(after=date(2020, 1, 6))) == []
    tape.require(date(2020, 1, 3))
    with pytest.raises(Mistake, match="no session from 2021-01-01"):
        tape.require(date(2021, 1, 1))


def test_the_same_content_has_the_same_digest_wherever_it_came_from(tmp_path: Path) -> None:
    one = load_tape(folder(tmp_path, AA=ROWS))
    table = pa.table(
        {
            "symbol": ["AA"] * 3,
            "date": [date(2020, 1, 2), date(2020, 1, 3), date(2020, 1, 6)],
            "open": [10.0, 11.0, 11.0],
            "high": [11.0, 12.0, 12.0],
            "low": [9.0, 10.0, 10.0],
            "close": [10.5, 11.5, 11.0],
            "volume": [1000, 1000, 0],
            "dividend": [0.0, 0.0, 0.25],
            "split": [1.0, 1.0, 1.0],
        }
    )
    pq.write_table(table, tmp_path / "same.parquet")
    assert load_tape(tmp_path / "same.parquet").digest == one.digest
    assert load_tape(str(tmp_path / "same.parquet")).name == "same"
    assert made_up_tape(1).digest != made_up_tape(2).digest


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("AA,2020-01-07,-1,12,10,11,1000,0,1", "AA on 2020-01-07: expected an open above zero, was -1"),
        ("AA,2020-01-07,0,12,10,11,1000,0,1", "AA on 2020-01-07: expected an open above zero, was 0"),
        ("AA,2020-01-07,11,12,10,0.00001,1000,0,1", "expected a close above zero"),
        ("AA,2020-01-07,11,12,10,,1000,0,1", "expected a finite close, was nan"),
        ("AA,2020-01-07,11,10,12,11,1000,0,1", "expected a high not below the low"),
        ("AA,2020-01-07,13,12,10,11,1000,0,1", "expected the open between low and high, was 13"),
        ("AA,2020-01-07,11,12,10,11,-5,0,1", "expected a volume of zero or more, was -5"),
        ("AA,2020-01-07,11,12,10,11,5,-1,1", "expected a dividend of zero or more, was -1"),
        ("AA,2020-01-07,11,12,10,11,5,0,0", "expected a split above zero, was 0"),
        ("AA,2020-01-07,11,1e9,10,11,5,0,1", "expected a high of at most 10,000,000, was 1e+09"),
        ("AA,2020-01-07,11,12,10,11,1e15,0,1", "expected a volume of at most 1,000,000,000,000, was 1e+15"),
        ("AA,2020-01-07,11,12,10,11,5,1e6,1", "expected a dividend of at most 10 times what the share was worth"),
        (f"{'A' * 5_000},2020-01-07,11,12,10,11,5,0,1", "expected symbols of 1 to 32 printable characters, was 'AAA"),
        ("AA,2020-01-03,11,12,10,11,5,0,1", "AA has 2 rows on 2020-01-03"),
        ("AA,2020-01-07,eleven,12,10,11,5,0,1", "could not read it"),
        ("AA,tomorrow,11,12,10,11,5,0,1", "could not read it"),
        ("AA,2020-01-07,11,12", "could not read it"),
    ],
)
def test_a_bad_row_is_named_in_one_line(tmp_path: Path, row: str, message: str) -> None:
    with pytest.raises(Mistake) as caught:
        load_tape(folder(tmp_path, AA=[*ROWS, row]))
    assert message in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1
    assert str(tmp_path) in str(caught.value)


def test_a_missing_column_a_name_without_rows_and_a_file_that_is_none_are_named(tmp_path: Path) -> None:
    with pytest.raises(Mistake, match="nowhere"):
        load_tape(tmp_path / "nowhere")
    with pytest.raises(Mistake, match="found none"):
        load_tape(tmp_path)
    with pytest.raises(Mistake, match="symbol BB has no data"):
        load_tape(folder(tmp_path, AA=ROWS, BB=[]))
    (tmp_path / "BB.csv").write_text(HEAD.replace("volume", "amount") + "\nBB,2020-01-02,1,1,1,1,1,0,1\n")
    with pytest.raises(Mistake, match=r"BB\.csv: expected a column volume"):
        load_tape(tmp_path)
    (tmp_path / "BB.csv").write_bytes(b"")
    with pytest.raises(Mistake, match=r"BB\.csv: could not read it"):
        load_tape(tmp_path)
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 nothing")
    with pytest.raises(Mistake, match="could not read it"):
        load_tape(tmp_path / "broken.parquet")


def test_a_symbol_may_come_from_the_name_of_its_file(tmp_path: Path) -> None:
    (tmp_path / "XYZ.csv").write_text("date,open,high,low,close,volume,dividend,split\n2020-01-02,1,1,1,1,1,0,1\n")
    assert load_tape(tmp_path).symbols == ("XYZ",)


def test_the_built_in_tape_has_its_splits_and_dividends_back() -> None:
    tape = load_tape("builtin")
    assert tape.symbols == ("AAPL", "FB", "GOOG", "IBM", "MSFT")
    assert (tape.days[0], tape.days[-1], len(tape)) == (date(2000, 3, 1), date(2013, 3, 1), 3270)
    split, dividend = tape.columns["split"], tape.columns["dividend"]
    splits = {
        (tape.symbols[n], str(tape.days[t])): split[t, n]
        for t, n in zip(*np.nonzero(np.nan_to_num(split, nan=1.0) != 1.0), strict=True)
    }
    assert splits == {("AAPL", "2000-06-21"): 2.0, ("AAPL", "2005-02-28"): 2.0, ("MSFT", "2003-02-18"): 2.0}
    assert (np.nan_to_num(dividend) > 0).sum() == 92
    special = tape.days.index(date(2004, 11, 15)), tape.symbols.index("MSFT")
    assert dividend[special] == 3.08  # $3 special and $0.08 regular, the same ex-date
    assert load_tape("bokeh").digest == tape.digest
    assert not any(session.suspected for session in tape.sessions())


def test_a_tape_cut_at_a_day_holds_nothing_of_what_follows() -> None:
    tape = made_up_tape(3, sessions=30)
    cut = tape.until(tape.days[12])
    assert cut.days == tape.days[:13]
    assert all(len(values) == 13 and values.base is None for values in cut.columns.values())
    with pytest.raises(Mistake, match="begins on"):
        tape.until(date(1990, 1, 1))


def test_a_scrambled_tape_is_the_same_until_that_day_and_valid_after_it() -> None:
    tape = made_up_tape(3, sessions=30)
    other = tape.scrambled_after(tape.days[12], 5)
    assert other.until(tape.days[12]).digest == tape.until(tape.days[12]).digest
    assert other.digest != tape.digest
    assert other.digest == tape.scrambled_after(tape.days[12], 5).digest
    for session in other.sessions(after=tape.days[12]):
        assert (session["low"] <= np.minimum(session["open"], session["close"])).all()
        assert (session["high"] >= np.maximum(session["open"], session["close"])).all()


def jumping(factor: float, volume_factor: float = 1.0, at: int = 30) -> Tape:
    tape = made_up_tape(8, sessions=50, names=3, weather=CALM)
    for column in ("open", "high", "low", "close"):
        tape.columns[column][at:, 1] = np.round(tape.columns[column][at:, 1] * factor, 4)
    tape.columns["volume"][:, 1] = 1e6
    tape.columns["volume"][at, 1] *= volume_factor
    return tape


@pytest.mark.parametrize(
    ("factor", "volume"), [(0.1, 1.0), (0.1, 50.0), (0.5, 2.0), (2.0, 0.5), (1 / 1.6, 1.5), (10, 1)]
)
def test_a_jump_without_a_record_is_quarantined_from_its_first_print_on(factor: float, volume: float) -> None:
    sessions = list(jumping(factor, volume).sessions())
    assert [s.suspected for s in sessions[29:32]] == [(), ("N001",), ()]
    assert not any(session.quarantined for session in sessions[:30])
    assert all(session.quarantined == ("N001",) for session in sessions[30:40])
    assert not any(session.quarantined for session in sessions[40:])
    assert [s["tradable"][1] for s in sessions[28:42]] == [1, 1, *[0] * 10, 1, 1]


@pytest.mark.parametrize(("factor", "volume"), [(0.5, 12.0), (0.75, 1.0), (1.3, 1.0)])
def test_a_crash_on_heavy_trading_and_a_move_that_happens_are_no_suspects(factor: float, volume: float) -> None:
    assert not any(session.suspected for session in jumping(factor, volume).sessions())


def test_a_recorded_split_is_no_suspect() -> None:
    tape = jumping(0.5)
    tape.columns["split"][30, 1] = 2.0
    assert not any(session.suspected for session in tape.sessions())


def test_a_dividend_that_is_no_cash_is_suspected() -> None:
    tape = made_up_tape(8, sessions=50, names=3, weather=CALM)
    tape.columns["dividend"][20, 2] = tape.columns["close"][19, 2] * 0.4
    assert [s.suspected for s in tape.sessions()][19:22] == [(), ("N002",), ()]


def test_names_come_and_go() -> None:
    tape = made_up_tape(4, sessions=80, names=12, weather=Weather(late=0.5, delisted=0.5))
    counts = [len(session.symbols) for session in tape.sessions()]
    assert min(counts) < max(counts) <= 12
