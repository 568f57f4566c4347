from __future__ import annotations

from dataclasses import replace

import pytest

from oomrl.domain.deployment import Watched, Wire, tripped
from oomrl.domain.loss import DayRecord
from tests.unit.domain.histories import changed, history

RECORDS = history(180)
DEPLOYED = Watched("new", RECORDS[150].day, 0.02 * 252, 5.0, 0.97)


def wire(records: list[DayRecord], exposure: float = 0.97) -> Wire | None:
    trip = tripped(DEPLOYED, records, [exposure] * len(records))
    return trip.wire if trip else None


def test_what_behaves_as_its_replay_stays() -> None:
    assert [wire(history(151 + n, seed)) for n in range(0, 60, 7) for seed in range(5)] == [None] * 45


def test_one_failure_rolls_back() -> None:
    records = [*RECORDS[:-1], replace(RECORDS[-1], failure="timeout")]
    assert wire(records) is Wire.FAILURE


def test_a_fall_beyond_the_market_rolls_back_and_a_shared_one_does_not() -> None:
    assert wire([*RECORDS[:-1], changed(RECORDS[-1], {"selection": -150_000.0})]) is Wire.FALL
    assert wire([*RECORDS[:-1], changed(RECORDS[-1], {"market": -150_000.0})]) is None
    jump = changed(RECORDS[-1], {"corporate_actions": -150_000.0}, quarantined={"KSU": -150_000.0})
    assert wire([*RECORDS[:-1], jump]) is None


def test_a_revision_that_stops_trading_is_rolled_back() -> None:
    assert wire(RECORDS, exposure=0.2) is Wire.STANDSTILL


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"turnover": 0.2}, Wire.TURNOVER),
        ({"friction_bps": 40.0}, Wire.FRICTION),
        ({"limits_hit": ("gross",)}, Wire.LIMITS),
    ],
)
def test_trading_far_from_the_replay_rolls_back(change: dict[str, object], expected: Wire) -> None:
    records = RECORDS[:150] + [replace(record, **change) for record in RECORDS[150:]]  # type: ignore[arg-type]
    assert wire(records) is expected


def test_the_watch_ends_and_nothing_is_judged_before_it_begins() -> None:
    broken = replace(RECORDS[-1], failure="timeout")
    assert tripped(replace(DEPLOYED, first=RECORDS[100].day), [*RECORDS[:-1], broken], [1.0] * 180) is None
    assert tripped(DEPLOYED, RECORDS[:150], [1.0] * 150) is None
    with pytest.raises(ValueError, match="one exposure"):
        tripped(DEPLOYED, RECORDS, [])
