from __future__ import annotations

import json
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import jsonschema
import pytest
from pydantic import ValidationError

from oomrl.domain import diagnostic as module
from oomrl.domain.capital import Thresholds
from oomrl.domain.causes import NameRecord, Role, Site, StrategyFacts
from oomrl.domain.diagnostic import (
    Diagnostic,
    LogLine,
    Mask,
    diagnose,
    masked,
    numbered,
    one_screen,
    to_json,
)
from oomrl.domain.loss import PARTS, Loss, detect
from tests.unit.domain.histories import changed, history, marked

SCHEMA = Path(__file__).parents[3] / "docs" / "schemas" / "diagnostic.schema.json"
SITES = (
    Site(Role.CADENCE, "strategy.strategy", "decide", 60),
    Site(Role.SIGNAL, "strategy.ranks", "score", 60),
    Site(Role.LIQUIDITY, "strategy.liquidity", "plan", 9),
)
FACTS = StrategyFacts("rev-1", "daily", {"min_price": 5.0, "momentum_window": 252, "cadence": "daily"}, 8.0, SITES)
NAMES = (
    NameRecord("AAPL", {"selection": -9_000.0, "spread": -900.0}, 400_000.0, 0.01, 0.05, 0.0, 12),
    NameRecord("KSU", {"selection": 500.0, "spread": -90.0}, 40_000.0, 0.01, 0.02, 0.0, 3),
)


def churned() -> tuple[Loss, Diagnostic]:
    records = history(60, turnover=0.3, bps=9.0)
    loss = detect(records, marked(records, Thresholds()), Thresholds())
    assert loss is not None
    log = [
        LogLine(
            day=records[-1].day, symbol="AAPL", side="buy", shares=10.0, price=300.5, cost=1.25, note="KSU sold too"
        ),
        LogLine(day=records[-2].day, symbol="KSU", side="sell", shares=7.0, price=30.5, cost=9.0, note="\x1b[31m"),
    ]
    report = diagnose(
        loss,
        records,
        NAMES,
        FACTS,
        tape="sha256:abc",
        capital=1_000_000.0,
        principal_loss=0.02,
        drawdown=0.03,
        simulated=True,
        log=log,
        exceptions=["Traceback\nValueError: AAPL has no close on 2004-02-03"],
    )
    return loss, report


def test_the_papers_keys_stand_at_the_papers_places() -> None:
    _, report = churned()
    document = json.loads(to_json(report))
    assert document["event"] == "FINANCIAL_DEGRADATION_DETECTED"
    assert {"daily_pnl", "slippage_leakage"} <= set(document["metrics"])
    assert {"module", "root_cause", "execution_log"} <= set(document["diagnostics"])
    assert isinstance(document["mandate"], str)


def test_churn_names_its_cause_its_code_and_a_mandate() -> None:
    loss, report = churned()
    assert report.diagnostics.root_cause == "churn"
    assert (report.diagnostics.module, report.diagnostics.function) == ("strategy.strategy", "decide")
    assert "turnover" in report.mandate
    assert report.loss == loss.id
    assert report.metrics.friction_bps == pytest.approx(9.0, rel=1e-3)
    assert report.metrics.turnover == pytest.approx(0.3 * 252, rel=0.02)
    assert any("cash" in move for move in report.forbidden)
    assert sum(getattr(report.decomposition, name) for name in PARTS) == pytest.approx(loss.pnl, abs=0.06)


def test_the_same_loss_gives_the_same_bytes_and_another_mandate_keeps_the_id() -> None:
    _, one = churned()
    _, two = churned()
    assert to_json(one) == to_json(two)


def test_the_published_schema_is_the_codes_and_accepts_what_is_written() -> None:
    _, report = churned()
    assert SCHEMA.read_text("utf-8") == module.schema()
    published = json.loads(module.schema())
    jsonschema.Draft202012Validator.check_schema(published)
    jsonschema.validate(json.loads(to_json(report)), published)
    assert module.Diagnostic.model_validate_json(to_json(report)) == report


def test_unknown_keys_are_refused() -> None:
    _, report = churned()
    document = json.loads(to_json(report)) | {"surprise": 1}
    with pytest.raises(ValidationError):
        module.Diagnostic.model_validate_json(json.dumps(document))


def test_a_mask_hides_names_dates_and_dollars_and_keeps_rates() -> None:
    _, report = churned()
    mask = Mask(numbered(["KSU", "AAPL"]), days=-700, scale=0.37, price_parameters=frozenset({"min_price"}))
    hidden = masked(report, mask)
    text = to_json(hidden)
    assert "AAPL" not in text
    assert "KSU" not in text
    assert "2004-" not in text
    assert "sha256:abc" not in text
    assert hidden.labels.masked
    assert hidden.id == report.id
    assert hidden.metrics.daily_pnl == pytest.approx(report.metrics.daily_pnl * 0.37, abs=0.01)
    assert hidden.metrics.turnover == report.metrics.turnover
    assert hidden.names[0].symbol == "N002"
    assert hidden.strategy.parameters["min_price"] == pytest.approx(5.0 * 0.37)
    assert hidden.strategy.parameters["momentum_window"] == 252
    assert hidden.window.first == report.window.first - timedelta(days=700)
    assert hidden.diagnostics.execution_log[0].note == "N001 sold too"
    assert hidden.diagnostics.execution_log[0].price == pytest.approx(300.5 * 0.37, rel=1e-4)


def test_a_mask_without_a_name_or_with_broken_weeks_is_refused() -> None:
    _, report = churned()
    with pytest.raises(ValueError, match="every symbol"):
        masked(report, Mask({"AAPL": "N001"}))
    with pytest.raises(ValueError, match="whole weeks"):
        Mask({}, days=3)


def test_a_person_reads_it_on_one_screen_without_control_characters() -> None:
    _, report = churned()
    screen = one_screen(report)
    lines = screen.splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 100
    assert "FRICTION DRAIN" in lines[0]
    assert "churn" in screen
    assert all(c.isprintable() or c == "\n" for c in screen)
    assert "\x1b" not in to_json(report)


def test_a_shared_fall_says_that_nothing_is_demanded() -> None:
    records = history(120)
    records[-1] = changed(replace(records[-1], benchmark_return=-0.09), {"market": -90_000.0})
    loss = detect(records, marked(records, Thresholds()), Thresholds())
    assert loss is not None
    report = diagnose(
        loss, records, NAMES, FACTS, tape="t", capital=1e6, principal_loss=0.1, drawdown=0.1, simulated=True
    )
    assert report.diagnostics.root_cause == "shared_market"
    assert not report.labels.demands_patch
    assert "No change is demanded" in report.mandate
    assert "demands no patch" in one_screen(report)


def test_the_scenario_says_what_to_replay() -> None:
    loss, report = churned()
    assert report.scenario.symbols == ("AAPL", "KSU")
    assert (report.scenario.first, report.scenario.last) == (loss.first, loss.last)
    assert isinstance(report.scenario.first, date)
