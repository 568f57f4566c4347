"""One case of each campaign about evidence, on the real tape; the campaigns themselves run by their make targets."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from bench import market, promotion
from bench.campaign import Campaign, wilson
from bench.causes import RIGHT, diagnosed
from bench.memory import worth
from bench.models import Asked, uplift
from oomrl.testing.starts import KINDS
from tests.acceptance.conftest import ROOT

TAPE = ROOT.parent / "shared" / "tapes" / "us-equities-dev.parquet"
needs_tape = pytest.mark.skipif(not TAPE.exists(), reason=f"SKIPPED: the development tape is not at {TAPE}")


def test_a_placebo_moves_parameters_alone_and_keeps_its_seed() -> None:
    base = market.shipped()
    for seed in range(40):
        made = promotion.jittered(base, seed)
        assert made == promotion.jittered(base, seed)
        assert {path for path in made if made[path] != base[path]} <= {"strategy.toml"}
        before, after = (tomllib.loads(tree["strategy.toml"].decode()) for tree in (base, made))
        assert before["strategy"] == after["strategy"]
    assert len({promotion.jittered(base, seed)["strategy.toml"] for seed in range(40)}) == 40


def test_every_kind_of_fault_has_a_right_cause() -> None:
    assert set(RIGHT) == set(KINDS)


@needs_tape
@pytest.mark.tape
def test_null_models_are_not_promoted() -> None:
    answers = promotion.null_models(str(TAPE), 5)
    assert {name: answer["promoted"] for name, answer in answers.items()} == dict.fromkeys(answers, False)
    assert "holds_cash" in answers["always_cash"]["refusals"]


@needs_tape
@pytest.mark.tape
def test_a_planted_fault_is_measured_its_repair_promoted_and_its_cause_named() -> None:
    seed = 400_000 + KINDS.index("stale_signal") + (-400_000 % len(KINDS))
    assert market.planted(seed).start.kind == "stale_signal"
    row = promotion.repair(str(TAPE), seed)
    assert row["measurable"] and row["promoted"], row
    found = diagnosed(Asked(str(TAPE), "offline", None), seed)
    assert found["place"] == 1, found


def test_a_campaign_keeps_a_row_a_case(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    campaign = Campaign("trial", 2, 7, tmp_path)
    campaign.add("case/1", 1, solved=True)
    assert campaign.finish(False, solved=1) == 1
    written = json.loads((tmp_path / "trial.json").read_text("utf-8"))
    assert written["rows"][0].keys() == {"id", "seed", "digest", "solved"}
    assert {"name", "size", "seed", "seconds", "passed", "solved"} <= written.keys()
    assert "Falls short" in capsys.readouterr().out


def test_memory_is_worth_the_paired_difference_of_tape_and_twin() -> None:
    pairs = [(0.5, 0.1), (None, None), (0.4, 0.2)]  # a fault without a deployment has no uplift
    told = worth([{"tape": {"uplift": one}, "twin": {"uplift": other}} for one, other in pairs])
    assert told["uplift_sharpe"] == {"tape": 0.3, "twin": 0.1}
    assert told["memory_worth"] == {"mean": 0.2, "interval": [-0.0263, 0.4263]}


def test_intervals_and_uplift() -> None:
    low, high = wilson(0, 200)
    assert low == 0.0 and high == pytest.approx(0.0188, abs=1e-4)
    rows = [{"uplift": value, "controls": {"placebo": 0.0}} for value in (0.1, 0.3)]
    told = uplift(rows)
    assert told["starts"] == 2 and told["run"]["mean"] == pytest.approx(0.2) and told["placebo"]["mean"] == 0.0
