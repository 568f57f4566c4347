"""What two versions decide is compared in numbers alone: how many decisions differ, and what the furthest apart say."""

from __future__ import annotations

import math

from guardrails.decisions import Compared, Decision, in_words

HOLD: Decision = ("hold", {"A": 0.5}, {})
HALF: Decision = ("target", {"A": 0.5, "B": 0.0}, {"A": {"limit_bps": 30.0, "sessions": 2}, "C": {"limit_bps": 9.0}})
WHOLE: Decision = ("target", {"A": 0.5, "B": 0.5}, {})


def test_a_decision_is_said_in_numbers_of_names_and_shares() -> None:
    assert in_words(HOLD) == "hold, 1 names, 0.5 of equity, 0.5 at most in one"
    assert in_words(HALF) == "target, 1 names, 0.5 of equity, 0.5 at most in one, sessions 2, limit_bps 9 to 30"
    assert in_words(("target", {}, {"A": {"limit_bps": None}})) == "target, 0 names, 0 of equity, 0 at most in one"
    assert "nan" in in_words(("target", {"A": math.nan}, {}))


def test_what_differs_is_counted_and_the_furthest_apart_is_shown() -> None:
    found = Compared.of("here", [HOLD, HALF, WHOLE], [HOLD, HOLD, HALF])
    assert (found.decisions, found.changed) == (3, 2)
    assert found.largest == f"here: {in_words(HALF)}; before: {in_words(HOLD)}"
    nearly: Decision = ("target", {"A": 0.5 + 1e-9, "B": 0.5}, {})
    assert Compared.of("there", [WHOLE, WHOLE], [nearly]) == Compared(decisions=2)


def test_runs_come_to_their_sums_and_the_furthest_of_all() -> None:
    near, far = Compared(5, 1, 0.1, "near"), Compared(7, 2, 0.9, "far")
    assert Compared.all([near, far, Compared(3)]) == Compared(15, 3, 0.9, "far")
    assert Compared.all([]) == Compared()
