"""The fault file: what it may say, when faults strike, and that the same seed makes the same faults."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from oomrl.errors import Mistake
from oomrl.exchange.emulator.faults import ANSWER, FILL, REQUEST, SITES, Fault, Faults, faults_of

NOW = datetime(2007, 1, 3, 15, 0, tzinfo=UTC)
DOCS = Path(__file__).resolve().parents[3] / "docs" / "faults.md"


def strikes(faults: Faults, site: str, count: int, endpoint: str = "POST /v2/orders", symbol: str = "AA") -> list[int]:
    return [turn for turn in range(1, count + 1) if faults.at(site, NOW, endpoint, symbol)]


def test_scripted_faults_strike_at_their_turns() -> None:
    faults = faults_of('[[fault]]\nkind = "accepted_then_504"\nnth = [2, 5]', "f")
    assert strikes(faults, ANSWER, 7) == [2, 5]
    assert strikes(faults, ANSWER, 7, "GET /v2/account") == []


def test_chance_is_seeded_and_each_fault_has_its_own() -> None:
    one = '[[fault]]\nkind = "partial_fill"\nprobability = 0.3\n'
    alone, again = faults_of(f"seed = 4\n{one}", "f"), faults_of(f"seed = 4\n{one}", "f")
    other = faults_of(f"seed = 5\n{one}", "f")
    with_another = faults_of(f'seed = 4\n{one}[[fault]]\nkind = "html_502"\nprobability = 0.5', "f")
    turns = strikes(alone, FILL, 200)
    assert turns == strikes(again, FILL, 200) and 30 < len(turns) < 90
    assert turns != strikes(other, FILL, 200)
    strikes(with_another, REQUEST, 50)
    assert turns == strikes(with_another, FILL, 200)


def test_faults_are_kept_to_times_symbols_and_instants() -> None:
    text = '[[fault]]\nkind = "html_502"\nsymbol = "AA"\ntimes = 2\nuntil = 2007-01-03T15:00:01Z'
    faults = faults_of(text, "f")
    assert strikes(faults, REQUEST, 5, symbol="BB") == []
    assert strikes(faults, REQUEST, 5) == [1, 2]
    assert faults.report() == [{"kind": "html_502", "fitted": 5, "struck": 2}]
    late = faults_of('[[fault]]\nkind = "html_502"\nsince = 2007-01-03T15:00:01Z', "f")
    assert strikes(late, REQUEST, 5) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[fault", "expected TOML"),
        ('[[fault]]\nkind = "gremlins"', "fault.0.kind"),
        ('[[fault]]\nkind = "slow"\nspeed = 3', "fault.0.speed"),
        ('[[fault]]\nkind = "slow"\nnth = [1]\nprobability = 0.5', "exclude each other"),
        ('[[fault]]\nkind = "slow"\nprobability = 1.5', "fault.0.probability"),
        ('[[fault]]\nkind = "untradable"\nat = 2007-01-03T15:00:00Z', "needs symbol"),
        ('[[fault]]\nkind = "calendar"', "needs day"),
        ('[[fault]]\nkind = "unknown_enum"', "needs field"),
        ('[[fault]]\nkind = "slow"\napplied = true', "may be applied"),
        ('[[fault]]\nkind = "calendar"\nday = 2007-01-03\nhours = "morning"', "fault.0.hours"),
    ],
)
def test_a_file_that_cannot_be_meant_is_refused_in_one_line(text: str, message: str) -> None:
    with pytest.raises(Mistake, match=re.escape(message)) as mistake:
        faults_of(text, "my.toml")
    assert str(mistake.value).startswith("my.toml") and "\n" not in str(mistake.value)


def test_every_kind_and_setting_is_documented_and_the_example_is_a_fault_file() -> None:
    text = DOCS.read_text("utf-8")
    documented = set(re.findall(r"`(\w+)`", text))
    assert set(SITES) <= documented
    assert set(Fault.model_fields) <= documented
    example = re.search(r"```toml\n(.*?)```", text, re.DOTALL)
    assert example is not None
    assert [fault.kind for fault in faults_of(example.group(1), "docs").file.fault] == [
        "accepted_then_504",
        "reset",
        "partial_fill",
    ]
