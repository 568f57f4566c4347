"""The exchange calendar."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest

from oomrl.calendar import Calendar
from oomrl.errors import Mistake


@pytest.fixture(scope="module")
def nyse() -> Calendar:
    return Calendar("XNYS", date(2023, 12, 1), date(2025, 3, 31), closures=[date(2024, 10, 9)])


def test_holidays_and_closures_have_no_session(nyse: Calendar) -> None:
    assert nyse.session(date(2024, 7, 4)) is None
    assert nyse.session(date(2024, 10, 9)) is None
    assert nyse.session(date(2024, 10, 8)) is not None


def test_a_half_day_closes_three_hours_early(nyse: Calendar) -> None:
    full, half = nyse.session(date(2024, 7, 2)), nyse.session(date(2024, 7, 3))
    assert full is not None and half is not None
    assert full.closes.time().hour - half.closes.time().hour == 3


def test_the_last_closed_session_waits_for_its_data(nyse: Calendar) -> None:
    close = datetime(2024, 7, 2, 20, 0, tzinfo=UTC)
    early = nyse.last_closed(close + timedelta(minutes=19), timedelta(minutes=20))
    late = nyse.last_closed(close + timedelta(minutes=20), timedelta(minutes=20))
    assert early is not None and early.day == date(2024, 7, 1)
    assert late is not None and late.day == date(2024, 7, 2)


def test_a_week_may_start_on_a_tuesday(nyse: Calendar) -> None:
    assert nyse.first_of_week(date(2024, 1, 8))
    assert nyse.first_of_week(date(2024, 1, 16))
    assert not nyse.first_of_week(date(2024, 1, 17))


def test_spans_leave_out_their_first_day_and_hold_their_last(nyse: Calendar) -> None:
    days = [hours.day.day for hours in nyse.between(date(2024, 7, 2), date(2024, 7, 8))]
    assert days == [3, 5, 8]
    before = nyse.before(date(2024, 7, 5))
    assert before is not None and before.day == date(2024, 7, 3)


@pytest.mark.parametrize("name", ["NOPE", "XSAU"])
def test_an_exchange_that_is_not_known_or_not_for_so_long_is_a_mistake(name: str) -> None:
    with pytest.raises(Mistake, match=f"service.calendar.*{name}"):
        Calendar(name, date(1999, 1, 1))
