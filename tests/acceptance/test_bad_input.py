"""A person's mistakes get one clear line and exit code 2; nothing is left half-written and no traceback shows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import Ran

Command = Callable[..., Ran]


def replace(old: str, new: str) -> Callable[[Path], None]:
    def damage(tape: Path) -> None:
        file = tape / "NAME2.csv"
        file.write_text(file.read_text("utf-8").replace(old, new), "utf-8")

    return damage


def negative_price(tape: Path) -> None:
    file = tape / "NAME2.csv"
    head, first, *rest = file.read_text("utf-8").splitlines()
    cells = first.split(",")
    cells[5] = "-" + cells[5]
    file.write_text("\n".join([head, ",".join(cells), *rest]) + "\n", "utf-8")


def duplicate_day(tape: Path) -> None:
    file = tape / "NAME2.csv"
    lines = file.read_text("utf-8").splitlines()
    file.write_text("\n".join([*lines, lines[-1]]) + "\n", "utf-8")


def no_rows(tape: Path) -> None:
    file = tape / "NAME2.csv"
    file.write_text(file.read_text("utf-8").splitlines()[0] + "\n", "utf-8")


DAMAGES = {
    "missing column": (replace(",volume,", ",amount,"), "volume"),
    "negative price": (negative_price, "NAME2"),
    "duplicate day": (duplicate_day, "NAME2"),
    "symbol without data": (no_rows, "NAME2"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_bad_tape_is_named_and_nothing_is_written(
    name: str, small_tape: Path, tmp_path: Path, command: Command
) -> None:
    damage, hint = DAMAGES[name]
    damage(small_tape)
    state = tmp_path / "state"
    ran = command("simulate", "--tape", small_tape, "--state", state)
    assert ran.code == 2, ran
    assert "Traceback" not in ran.err + ran.out
    assert hint in ran.err
    assert ran.err.startswith("Error: ")
    assert len(ran.err.strip().splitlines()) == 1
    assert not state.exists()


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["--tape", "nowhere.parquet"], "nowhere.parquet"),
        (["--from", "2030-01-01"], "2030-01-01"),
        (["--from", "yesterday"], "yesterday"),
        (["--start", "nonsense"], "nonsense"),
        (["--model", "psychic"], "psychic"),
    ],
)
def test_a_wrong_option_is_named(arguments: list[str], hint: str, tmp_path: Path, command: Command) -> None:
    state = tmp_path / "state"
    ran = command("simulate", *arguments, "--state", state)
    assert ran.code == 2, ran
    assert "Traceback" not in ran.err + ran.out
    assert hint in ran.err
    assert not state.exists()
