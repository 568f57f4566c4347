"""Read tapes: the built-in one, a Parquet file, or a folder of CSVs. Whatever is wrong is named in one line."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv
import pyarrow.parquet as pq

from oomrl.domain.market import Floats, Ints, ticks
from oomrl.errors import Mistake
from oomrl.exchange.tape import RECORDED, Tape
from oomrl.exchange.twin import twin

BUILTIN_NAMES = ("builtin", "bokeh")
TWIN = "twin:"
BUILTIN_SYMBOLS = ("AAPL", "FB", "GOOG", "IBM", "MSFT")
PRICES = ("open", "high", "low", "close")
#: Beyond these (dollars a share, shares a day, characters) a number or a name is an error of whoever recorded it.
MOST_PRICE = 10_000_000
MOST_VOLUME = 1_000_000_000_000
MOST_CHARACTERS = 32
#: Spin-offs stand on real tapes as dividends above the price (KSU 2000-07-13: 181 of 93.75); those are quarantined.
MOST_WORTHS = 10
FORMAT = "See `oomrl replay --help`: symbol, date, open, high, low, close, volume, dividend, split."


def load_tape(source: str | Path) -> Tape:
    """Read the tape that `source` names: `builtin` (or `bokeh`), a Parquet file, or a folder of CSVs.

    `twin:SEED:SOURCE` is the counterfactual twin of another one.

    Prices and dividends are rounded to $0.0001, rows are sorted, split ratios within 1e-5 of a fraction with a
    denominator up to 100 become that fraction. Raises `Mistake` for anything that cannot be a market's record.
    """
    if str(source) in BUILTIN_NAMES:
        return builtin_tape()
    if str(source).startswith(TWIN):
        seed, _, other = str(source).removeprefix(TWIN).partition(":")
        if not seed.isdecimal() or not other:
            raise Mistake(f"Expected a twin as twin:SEED:TAPE, such as twin:7:builtin, was {source}.")
        return twin(load_tape(other), int(seed))
    path = Path(source)
    if path.is_dir():
        return _folder(path)
    if not path.is_file():
        raise Mistake(f"Expected a tape at {path}, found nothing. Name a Parquet file, a folder of CSVs, or `builtin`.")
    if path.suffix.lower() == ".csv":
        return tape_of_rows(path.stem, str(path), _csv(path))
    try:
        table = pq.read_table(path)
    except (OSError, pa.ArrowException) as error:
        raise Mistake(f"Expected a Parquet file at {path}, could not read it: {_first_line(error)}.") from error
    return tape_of_rows(path.stem, str(path), table)


def _folder(folder: Path) -> Tape:
    files = sorted(folder.glob("*.csv"))
    if not files:
        raise Mistake(f"Expected CSV files in {folder}, one a symbol, found none.")
    tables = []
    for file in files:
        table = _csv(file)
        if table.num_rows == 0:
            raise Mistake(f"{file}: symbol {file.stem} has no data. Remove the file or fill it.")
        tables.append(table)
    wanted = ["symbol", "date", *RECORDED]
    return tape_of_rows(folder.name, str(folder), pa.concat_tables([table.select(wanted) for table in tables]))


def _csv(file: Path) -> pa.Table:
    kinds = dict.fromkeys(RECORDED, pa.float64()) | {"symbol": pa.string(), "date": pa.date32()}
    options = pcsv.ConvertOptions(column_types=kinds)
    try:
        table = pcsv.read_csv(file, convert_options=options)
    except (OSError, pa.ArrowException) as error:
        raise Mistake(f"{file}: could not read it: {_first_line(error)}.") from error
    if "symbol" not in table.column_names:
        table = table.append_column("symbol", pa.array([file.stem] * table.num_rows, pa.string()))
    _require_columns(table, str(file))
    return table.select(["symbol", "date", *RECORDED])


def _require_columns(table: pa.Table, where: str) -> None:
    missing = [column for column in ("symbol", "date", *RECORDED) if column not in table.column_names]
    if missing:
        raise Mistake(
            f"{where}: expected a column {', '.join(missing)}, found {', '.join(table.column_names)}. {FORMAT}"
        )


def tape_of_rows(name: str, where: str, table: pa.Table) -> Tape:
    """Check a table with a row a name and day, and turn it into a tape. `where` is what a `Mistake` names."""
    _require_columns(table, where)
    if table.num_rows == 0:
        raise Mistake(f"{where}: the tape has no rows. {FORMAT}")
    for column in ("symbol", "date"):
        if table[column].null_count:
            raise Mistake(f"{where}: expected a {column} in each row, {table[column].null_count} have none.")
    try:
        listed = [str(symbol) for symbol in pc.unique(table["symbol"]).to_pylist()]
        for symbol in listed:
            if not (symbol.isprintable() and 0 < len(symbol) <= MOST_CHARACTERS):
                shown = ascii(symbol[:MOST_CHARACTERS])
                raise Mistake(f"{where}: expected symbols of 1 to {MOST_CHARACTERS} printable characters, was {shown}.")
        symbols = tuple(sorted(listed))
        order = pa.array(symbols, pa.string())
        name_of_row = pc.index_in(pc.cast(table["symbol"], pa.string()), order).to_numpy().astype(np.int64)
        day_of_row = pc.cast(pc.cast(table["date"], pa.date32()), pa.int32()).to_numpy().astype(np.int64)
        values = {column: pc.cast(table[column], pa.float64()).to_numpy() for column in RECORDED}
    except pa.ArrowException as error:
        raise Mistake(f"{where}: expected dates and numbers: {_first_line(error)}.") from error
    return assemble(name, where, symbols, name_of_row, day_of_row, values)


def assemble(
    name: str, where: str, symbols: tuple[str, ...], name_of_row: Ints, day_of_row: Ints, values: Mapping[str, Floats]
) -> Tape:
    """Check rows and turn them into a tape.

    `name_of_row` (rows,) indexes `symbols`, `day_of_row` (rows,) counts days since 1970-01-01, each array of
    `values` has shape (rows,). Raises `Mistake` that names the first bad row's symbol and day.
    """
    numbers, at_day = np.unique(day_of_row, return_inverse=True)
    place = at_day * len(symbols) + name_of_row
    counts = np.bincount(place, minlength=len(numbers) * len(symbols))
    epoch = date(1970, 1, 1).toordinal()
    days = tuple(date.fromordinal(epoch + int(number)) for number in numbers)
    if counts.max() > 1:
        first = int(np.argmax(counts > 1))
        day, symbol = days[first // len(symbols)], symbols[first % len(symbols)]
        raise Mistake(f"{where}: {symbol} has {counts[first]} rows on {day}. Expected one; remove the others.")
    cleaned = {column: np.asarray(values[column], dtype=np.float64) for column in RECORDED}
    for column in (*PRICES, "dividend"):
        cleaned[column] = ticks(cleaned[column]) / 10_000
    cleaned["split"] = _whole_ratios(cleaned["split"])
    _check(where, symbols, days, name_of_row, at_day, cleaned)
    columns = {}
    for column in RECORDED:
        grid = np.full(len(numbers) * len(symbols), np.nan)
        grid[place] = cleaned[column]
        columns[column] = grid.reshape(len(numbers), len(symbols))
    return Tape(name, symbols, days, columns)


def _check(
    where: str,
    symbols: tuple[str, ...],
    days: tuple[date, ...],
    name_of_row: Ints,
    at_day: Ints,
    values: Mapping[str, Floats],
) -> None:
    """Raise `Mistake` for the first row, by day and then by name, that no market can have printed."""
    tests = [(~np.isfinite(values[column]), f"a finite {column}", column) for column in RECORDED]
    for column in (*PRICES, "split"):
        article = "an" if column == "open" else "a"
        tests.append((values[column] <= 0, f"{article} {column} above zero", column))
    for column in ("volume", "dividend"):
        tests.append((values[column] < 0, f"a {column} of zero or more", column))
    tests.append((values["high"] < values["low"], "a high not below the low", "high"))
    for column in ("open", "close"):
        outside = (values[column] > values["high"]) | (values[column] < values["low"])
        tests.append((outside, f"the {column} between low and high", column))
    for column, most in (*((price, MOST_PRICE) for price in PRICES), ("volume", MOST_VOLUME)):
        tests.append((values[column] > most, f"a {column} of at most {most:,.0f}", column))
    paid = values["dividend"] > MOST_WORTHS * _worth(name_of_row, at_day, values)
    tests.append((paid, f"a dividend of at most {MOST_WORTHS} times what the share was worth", "dividend"))
    for bad, wanted, column in tests:
        if bad.any():
            rows = np.flatnonzero(bad)
            row = rows[np.lexsort((name_of_row[rows], at_day[rows]))[0]]
            raise Mistake(
                f"{where}: {symbols[name_of_row[row]]} on {days[at_day[row]]}: expected {wanted}, "
                f"was {values[column][row]:g}. Correct or remove the row."
            )


def _worth(name_of_row: Ints, at_day: Ints, values: Mapping[str, Floats]) -> Floats:
    """Return the close before each row (rows,) in shares of the row's day; a name's first row has no bound."""
    rows = np.lexsort((at_day, name_of_row))
    worth = np.full(len(rows), np.inf)
    split = np.where(values["split"] > 0, values["split"], 1.0)
    same = name_of_row[rows][1:] == name_of_row[rows][:-1]
    worth[rows[1:][same]] = values["close"][rows[:-1][same]] * np.maximum(1.0, 1.0 / split[rows[1:][same]])
    return worth


def _whole_ratios(split: Floats) -> Floats:
    """Undo the float noise of split ratios: 1.49999925 was 3:2."""
    out = split.copy()
    for ratio in np.unique(split[np.isfinite(split) & (split > 0)]):
        near = Fraction(float(ratio)).limit_denominator(100)
        if near > 0 and abs(float(near) / ratio - 1) < 1e-5:
            out[split == ratio] = float(near)
    return out


def builtin_tape() -> Tape:
    """Read the tape that comes with bokeh_sampledata: five US names, 2000-03 to 2013-03 (Quandl WIKI).

    That record has raw bars and an adjusted close, no splits or dividends. Both are recovered from the factor
    adjusted/raw close, which only changes on ex-dates, by split * (close + dividend) / close.
    """
    from bokeh_sampledata import stocks

    parts: dict[str, list[Floats]] = {column: [] for column in RECORDED}
    names, numbers = [], []
    epoch = date(1970, 1, 1).toordinal()
    for number, symbol in enumerate(BUILTIN_SYMBOLS):
        record = getattr(stocks, symbol)
        bars = {column: np.array(record[column], dtype=np.float64) for column in (*PRICES, "volume", "adj_close")}
        split, dividend = recovered_actions(bars["close"], bars.pop("adj_close"))
        for column, values in (bars | {"split": split, "dividend": dividend}).items():
            parts[column].append(values)
        days = [date.fromisoformat(day).toordinal() - epoch for day in record["date"]]
        numbers.append(np.array(days, dtype=np.int64))
        names.append(np.full(len(days), number, dtype=np.int64))
    rows = {column: np.concatenate(pieces) for column, pieces in parts.items()}
    return assemble("builtin", "builtin", BUILTIN_SYMBOLS, np.concatenate(names), np.concatenate(numbers), rows)


def recovered_actions(close: Floats, adjusted: Floats) -> tuple[Floats, Floats]:
    """Return (split, dividend), each of shape (sessions,), from raw and adjusted closes.

    A factor change of 1.3 or more is a split (to the nearest half); what remains of it is a dividend in whole
    cents. Changes below half a cent a share are the record's own rounding.
    """
    factor = adjusted / close
    change = np.ones(len(close))
    change[1:] = factor[1:] / factor[:-1]
    split = np.where(change >= 1.3, np.rint(change * 2) / 2, 1.0)
    dividend = np.rint(close * (change / split - 1) * 100) / 100
    return split, np.where(dividend > 0, dividend, 0.0)


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0].rstrip(". ")
