"""The exchange calendar and the trigger that follows it."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest

from oomrl.calendar import Calendar
from oomrl.daemon import AfterClose


@pytest.fixture(scope="module")
def nyse() -> Calendar:
    return Calendar("XNYS", date(2023, 12, 1), date(2025, 3, 31))


def test_a_holiday_has_no_session(nyse: Calendar) -> None:
    assert nyse.session(date(2024, 7, 4)) is None


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


def test_a_year_of_firings_meets_each_session_once_through_clock_changes(nyse: Calendar) -> None:
    trigger = AfterClose(nyse)
    expected = [hours for hours in nyse.hours if hours.day.year == 2024]
    fired: list[datetime] = []
    now = datetime(2024, 1, 1, tzinfo=UTC)
    while (moment := trigger.get_next_fire_time(fired[-1] if fired else None, now)) and moment.year == 2024:
        fired.append(moment)
        now = moment
    assert fired == [hours.closes + timedelta(minutes=20) for hours in expected]
    assert date(2024, 2, 29) in {moment.date() for moment in fired}
    assert {moment.hour for moment in fired} == {17, 18, 20, 21}


def test_a_late_wake_up_does_not_fire_the_past(nyse: Calendar) -> None:
    trigger = AfterClose(nyse)
    asleep_since = datetime(2024, 7, 1, 20, 20, tzinfo=UTC)
    awake = datetime(2024, 7, 9, 12, 0, tzinfo=UTC)
    following = trigger.get_next_fire_time(asleep_since, awake)
    assert following is not None and following.date() == date(2024, 7, 9)
