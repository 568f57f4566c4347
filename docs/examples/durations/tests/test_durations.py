"""Durations are read and written."""

import pytest
from durations import parse, show


@pytest.mark.parametrize(
    ("text", "seconds"), [("1h30m", 5400), ("45s", 45), ("2d", 172800), ("1D2H3M4S", 93784), (" 10m ", 600)]
)
def test_reading(text, seconds):
    assert parse(text) == seconds


@pytest.mark.parametrize("text", ["", "h", "10", "1x", "30m1h", "1h1h", "1h 30m"])
def test_what_is_no_duration_is_refused(text):
    with pytest.raises(ValueError, match="Expected a duration such as 1h30m"):
        parse(text)


@pytest.mark.parametrize(
    ("seconds", "text"), [(5400, "1h30m"), (45, "45s"), (0, "0s"), (93784, "1d2h3m4s"), (86400, "1d"), (59, "59s")]
)
def test_writing(seconds, text):
    assert show(seconds) == text


@pytest.mark.parametrize("seconds", [1, 59, 60, 3599, 3600, 86399, 86400, 100_000])
def test_there_and_back(seconds):
    assert parse(show(seconds)) == seconds


def test_negative_durations_are_refused():
    with pytest.raises(ValueError, match="at least 0, was -1"):
        show(-1)
