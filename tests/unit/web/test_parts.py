from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oomrl.adapters.changes import Parameter
from oomrl.domain.people import Freeze
from oomrl.domain.records import StoredVerdict, cautions
from oomrl.errors import Mistake
from oomrl.review import reason_to_wait, risk_of
from oomrl.settings import ReviewSettings, load
from oomrl.web import charts
from oomrl.web.evidence import gate
from oomrl.web.guard import Rate

DAY = date(2026, 1, 5)
AT = datetime(2026, 1, 5, 22, tzinfo=UTC)
ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("parameter", "words"),
    [
        (Parameter("parameters.exposure", 0.98, 0.49), "exposure falls from 0.98 to 0.49, -50%."),
        (Parameter("parameters.max_sessions", 3, 30), "max sessions rises from 3 to 30, 10 times as much."),
        (Parameter("strategy.cadence", "daily", "weekly"), "cadence changes from daily to weekly."),
        (Parameter("parameters.x", None, 2), "x is new: 2."),
        (Parameter("parameters.x", 2, None, "why"), "x is gone; it was 2 (why)."),
        (
            Parameter("parameters.x", 0.0, 3_000_000.0, "dollars"),
            "x rises from 0.0 to 3,000,000, from nothing (dollars).",
        ),
    ],
)
def test_a_parameter_is_told_in_plain_words(parameter: Parameter, words: str) -> None:
    assert parameter.in_words() == words


def test_what_writes_weights_plans_limits_or_exposure_takes_two_people() -> None:
    """What is asked of the shipped strategy is read off its sources, not off the settings."""
    rules, source = ReviewSettings(), ROOT / "strategy_repo" / "src" / "strategy"
    weighs = re.compile(r"exposure|max_weight|weights\"|\"plan\"|wanted|max_holdings|max_participation|dollars")
    weighty = {path.name for path in source.glob("*.py") if weighs.search(path.read_text())}
    assert {"decision.py", "parameters.py", "sizing.py", "strategy.py"} <= weighty
    for name in sorted(weighty):
        assert risk_of([f"src/strategy/{name}"], [], rules).approvals == 2, name
        for one in re.findall(r"\bparameters\.(\w+)", (source / name).read_text()):
            if "_window" not in one and name in ("selection.py", "sizing.py", "universe.py", "liquidity.py"):
                assert risk_of([], [f"parameters.{one}"], rules).approvals == 2, one
    for path in (ROOT / "oomrl" / "adapters" / "skeleton" / "src").rglob("*.py"):
        if weighs.search(path.read_text()):
            assert risk_of([f"src/mine/{path.name}"], [], rules).approvals == 2, path.name
    for moved in ("parameters.volatility_sizing", "parameters.no_trade_band"):
        assert risk_of(["strategy.toml"], [moved], rules).name == "risk"


@pytest.mark.parametrize(("kind", "said"), [("alone", "no curated version"), ("idle", "none of the faults")])
def test_new_tests_that_nobody_else_vouches_for_are_warned_of(kind: str, said: str) -> None:
    name = "tests/test_new.py::test_defect_<b>"
    stages = [{"name": "references", "status": "pass", "evidence": {kind: [name]}}, {"name": "patch"}]
    tests = {"decision": "pass", "stages": stages}
    verdict = StoredVerdict(
        "d", "p", "r", "pass", "", "", {"phases": {"tests": tests, "logic": {"decision": "pass"}}}, AT
    )
    [warning] = gate(verdict).warnings
    assert [warning] == cautions(verdict) and warning.startswith(name) and said in warning
    assert cautions(replace(verdict, payload={})) == []


def test_decisions_that_are_other_ones_in_made_up_markets_are_warned_of() -> None:
    evidence = {"decisions": 900, "changed": 30}
    largest = "in a market of 9 names: hold; before: target"
    odd = {"odd": {"decisions": 900, "changed": 30, "largest": largest}}
    for found, said in (
        (evidence, True),
        (evidence | odd, True),
        (odd, True),
        ({**evidence, "changed": 0}, False),
        ({}, False),
    ):
        others = {"coverage": {"changed": {"src/a.py": {}}}, "probes": {"probed": 9, "changed": 4}, "acceptance": found}
        stages = [{"name": name, "status": "pass", "evidence": told} for name, told in others.items()]
        logic = {"decision": "pass", "stages": stages}
        verdict = StoredVerdict("d", "p", "r", "pass", "", "", {"phases": {"logic": logic}}, AT)
        assert [warning for warning in gate(verdict).warnings if "30 of 900 decisions" in warning] == (
            gate(verdict).warnings if said else []
        )
        assert sum(largest in warning for warning in gate(verdict).warnings) == ("odd" in found)


def test_the_gravest_class_counts() -> None:
    rules = ReviewSettings()
    assert risk_of(["src/strategy/ranks.py"], [], rules).name == "ordinary"
    assert risk_of(["src/strategy/liquidity.py"], [], rules).name == "execution"
    both = risk_of(["src/strategy/liquidity.py", "src/strategy/sizing.py"], ["parameters.exposure"], rules)
    assert (both.name, both.approvals) == ("risk", 2)
    assert both.because == ("src/strategy/sizing.py", "parameters.exposure")


@pytest.mark.parametrize(
    ("windows", "at", "opens"),
    [
        ((), "2026-01-05T12:00", True),
        (("mon-thu",), "2026-01-05T12:00", True),
        (("tue",), "2026-01-05T12:00", False),
        (("sat-mon",), "2026-01-05T12:00", True),
        (("mon 11:00-12:00",), "2026-01-05T12:00", False),
        (("mon 12:00-12:01",), "2026-01-05T12:00", True),
        (("tue", "mon 20:30-23:00"), "2026-01-05T21:30", True),
    ],
)
def test_windows_open_and_close(windows: tuple[str, ...], at: str, opens: bool) -> None:
    instant = datetime.fromisoformat(at).replace(tzinfo=UTC)
    assert (reason_to_wait(instant, DAY, [], windows) == "") is opens


def test_a_freeze_holds_on_both_its_ends_until_it_is_lifted() -> None:
    at = datetime(2026, 1, 5, tzinfo=UTC)
    freeze = Freeze("f", "run", DAY, DAY + timedelta(days=2), "close", "olga", at)
    held = [bool(reason_to_wait(at, DAY + timedelta(days=n), [freeze], ())) for n in (-1, 0, 2, 3)]
    assert held == [False, True, True, False]
    lifted = Freeze("f", "run", DAY, DAY, "close", "olga", at, at, "olga")
    assert reason_to_wait(at, DAY, [lifted], ()) == ""


@pytest.mark.parametrize("window", ["", "monday", "mon-", "mon 25:00-26:00", "mon 9-10", "Mon"])
def test_a_window_that_cannot_be_read_is_a_mistake_of_the_settings(window: str) -> None:
    with pytest.raises(Mistake, match="review.windows"):
        load(None, {"review": {"windows": [window]}})


@given(st.lists(st.floats(0, 100), min_size=1, max_size=40))
def test_a_rate_lets_no_more_through_than_its_burst_and_its_pace(pauses: list[float]) -> None:
    at = [0.0]
    rate = Rate(30, now=lambda: at[0])
    through = 0
    for pause in pauses:
        at[0] += pause
        through += rate.wait("a") == 0.0
    assert through <= 10 + at[0] * 0.5 + 1e-6
    assert rate.wait("b") == 0.0


def test_charts_say_the_same_in_words_and_hold_no_foreign_markup() -> None:
    chart = charts.waterfall({"market": -10.0, "<b>": 4.0}, title="Where <it> went", about="Ten & four")
    assert "<b>" not in chart and "&lt;b&gt;" in chart and "Ten &amp; four" in chart
    days = [DAY + timedelta(days=n) for n in range(2_000)]
    lines = charts.lines(
        days,
        [charts.Line("a", "a", [float(n) for n in range(2_000)])],
        title="t",
        about="a",
        marks=[charts.Mark(days[777], "loss", "a loss", "/diagnostics/d")],
    )
    assert lines.count(",") < 2_500 and 'href="/diagnostics/d"' in lines and "style=" not in lines


@pytest.mark.parametrize(
    ("value", "text"), [(0.5, "$0.50"), (-12.0, "−$12"), (12_345.0, "$12.35k"), (-9.5e6, "−$9.5M"), (2e9, "$2bn")]
)
def test_dollars_beside_a_chart(value: float, text: str) -> None:
    assert charts.dollars(value) == text


@pytest.mark.parametrize(("deepest", "labels"), [(-0.5, "−20%"), (-0.11, "−2.5%"), (-0.0004, "−0.01%")])
def test_levels_of_a_chart_are_told_apart(deepest: float, labels: str) -> None:
    days = [date(2020, 1, 1) + timedelta(days=n) for n in range(3)]
    chart = charts.lines(days, [charts.Line("a", "a", [0.0, deepest, 0.0])], title="t", about="a", money=False)
    screen, _, phone = chart.partition('class="narrow"')
    ticks, again = (re.findall(r'text-anchor="end">([^<]*%)<', one) for one in (screen, phone))
    assert again == ticks
    assert len(set(ticks)) == len(ticks) > 2 and labels in ticks, ticks
