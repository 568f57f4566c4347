"""Model code in the sandbox: the same figures as ours, leaks refused, failures named, the service untouched."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from oomrl.arenas.research.engine import ResearchEngine
from oomrl.arenas.research.laboratory import Failure, ReferenceLaboratory, Trained
from oomrl.arenas.research.probes import LEAKS
from oomrl.arenas.research.references import simple_model
from oomrl.arenas.research.sandboxed import sandbox_laboratory
from oomrl.arenas.research.synthetic import make_panel

from .conftest import TINY

for name in ("sklearn", "pandas"):
    pytest.importorskip(name, reason=f"model code needs {name}: install the extra `arenas`")
pytest.importorskip("guardrails.sandbox", reason="no sandbox in this tree")
pytestmark = pytest.mark.slow

HONEST = """import numpy as np
from sklearn.linear_model import ElasticNet


def build():
    return ElasticNet(alpha=1e-4)


def features(panel):
    field = panel["a1"].ffill()
    return {"x": field.sub(field.mean(axis=1), axis=0), "y": panel["close"].pct_change(5, fill_method=None)}
"""
BROKEN = {
    "another estimator": (
        HONEST.replace("ElasticNet(alpha=1e-4)", "Pipeline([('a', ElasticNet()), ('b', LinearRegression())])").replace(
            "import ElasticNet\n", "import ElasticNet, LinearRegression\nfrom sklearn.pipeline import Pipeline\n"
        ),
        "convention",
    ),
    "raises": (HONEST.replace("    field =", "    1 / 0\n    field ="), "exception"),
    "another shape": (HONEST.replace("return {", "return {'z': np.zeros(3), "), "convention"),
    "never ends": (HONEST.replace("    field =", "    while True:\n        pass\n    field ="), "timeout"),
    "eats memory": (HONEST.replace("    field =", "    big = np.ones((200_000, 200_000))\n    field ="), "exception"),
}


@pytest.fixture(scope="module")
def panel():
    return make_panel(3, TINY, null=False)


def test_the_sandbox_and_this_process_agree(panel) -> None:
    model = simple_model(panel.fields)
    public = panel.public()
    rows = (0, panel.public_days)
    inside, outside = sandbox_laboratory(), ReferenceLaboratory()
    one, other = (laboratory.train(model.code, public, rows, 1) for laboratory in (inside, outside))
    assert isinstance(one, Trained), one
    assert isinstance(other, Trained)
    np.testing.assert_allclose(one.forecast, other.forecast, atol=1e-9)
    np.testing.assert_allclose(one.validation, other.validation, atol=1e-9)
    np.testing.assert_allclose(one.coefficients, other.coefficients, atol=1e-9)
    assert (one.rows, one.features) == (other.rows, other.features)
    later = [laboratory.forecast(model.code, panel) for laboratory in (inside, outside)]
    np.testing.assert_allclose(later[0], later[1], atol=1e-9)


@pytest.mark.parametrize("name", ["negative_shift", "centred_window", "backfill", "batch_statistics"])
def test_every_kind_of_leak_is_refused(name: str, panel) -> None:
    outcome = sandbox_laboratory().train(LEAKS[name], panel.public(), (0, panel.public_days), 1)
    assert isinstance(outcome, Failure)
    assert outcome.kind == "leak"
    assert "Expected forecasts" in outcome.message


@pytest.mark.parametrize("name", BROKEN)
def test_broken_code_is_a_named_failure(name: str, panel) -> None:
    code, kind = BROKEN[name]
    outcome = sandbox_laboratory(seconds=3.0 if name == "never ends" else 120.0).train(
        code, panel.public(), (0, panel.public_days), 1
    )
    assert isinstance(outcome, Failure), outcome
    assert outcome.kind == kind, outcome


def test_an_episode_with_code_of_a_players_own() -> None:
    engine = ResearchEngine(ReferenceLaboratory(sandbox_laboratory()), levels={"tiny": TINY})
    engine.reset(1, "model@tiny")

    def call(tool: str, **arguments: object) -> dict:
        return dict(engine.step({"tool": tool, "arguments": arguments}).data["result"])

    call("train_model", model_code=HONEST)
    call("get_train_model_result", job_id="train-1")
    assert call("get_train_model_result", job_id="train-1")["features"] == ["x", "y"]
    call("backtest", model_id="model-1", max_gross_exposure=1.0)
    assert call("get_backtest_result", job_id="backtest-1")["strategy_id"] == "strategy-1"
    done = engine.step({"tool": "submit_strategy", "arguments": {"strategy_id": "strategy-1", "rationale": "x"}})
    assert done.done
    assert -1.0 <= engine.grade().total <= 1.0
    assert "hidden_sharpe" in done.data["result"]["outcome"]


def test_the_service_never_imports_what_models_use() -> None:
    """Neither scikit-learn nor pandas nor the runner is loaded by playing an episode."""
    program = (
        "import sys\n"
        "from oomrl.arenas.research.arena import ARENA\n"
        "from oomrl.arenas.research.campaign import play\n"
        "play(ARENA.make(), ARENA.policies['simple'], 4, 'model@l2')\n"
        "unwanted = ('sklearn', 'pandas', 'joblib', 'oomrl.arenas.research.runner')\n"
        "print([name for name in unwanted if name in sys.modules])\n"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
