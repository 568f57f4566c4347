"""What `oomrl strategy check` says of code bases that were never written for the gate."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from guardrails.policy import parse_policy
from oomrl.adapters import environments, strategy_check
from oomrl.adapters.starts import start_tree, strategy_folder
from oomrl.errors import Mistake

MOMENTUM = """\
import pandas as pd


def momentum(frame: pd.DataFrame) -> pd.Series:
    return frame.rolling(252).mean()
"""


def written(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        (path if path.suffix else path.with_suffix(".py")).write_text(text)
    return folder


def judged(folder: Path) -> strategy_check.Judged:
    return strategy_check.judge(folder, run=False)


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    strategy_check.new(tmp_path / "mine")
    return tmp_path / "mine"


def test_the_skeleton_and_the_shipped_strategy_have_no_findings(mine: Path) -> None:
    assert judged(mine).remarks == ()
    assert judged(environments.shipped("strategy_repo")).remarks == ()


def test_the_skeleton_is_never_written_over_something(mine: Path) -> None:
    (mine / "README.md").write_text("mine")
    with pytest.raises(Mistake, match="new or empty folder"):
        strategy_check.new(mine)
    assert (mine / "README.md").read_text() == "mine"


def test_a_code_base_of_another_shape_is_judged_with_its_own_paths(tmp_path: Path) -> None:
    found = judged(written(tmp_path, alpha____init__="", alpha__signals=MOMENTUM))
    places = {remark.place for remark in found.remarks if remark.part == "code"}
    assert places == {"alpha/signals.py:1", "alpha/signals.py:4", "alpha/signals.py:5"}
    assert {remark.place for remark in found.remarks if remark.part == "layout"} >= {"policy.toml", "strategy.toml"}


def test_loose_scripts_are_judged_too(tmp_path: Path) -> None:
    found = judged(written(tmp_path, idea="import os\n\n\ndef act():\n    return os.getcwd()\n"))
    assert ("GR203", "idea.py:1") in {(remark.code, remark.place) for remark in found.remarks}
    assert found.imports == {"os": ("getcwd",)}
    assert found.profile == "", "files and processes are never granted"


def test_a_profile_lets_in_what_it_promises(mine: Path) -> None:
    code = mine / "src" / "strategy" / "frames.py"
    code.write_text(MOMENTUM)
    before = judged(mine)
    assert before.remaining == 0
    grants = tomllib.loads(before.profile)["code"]
    assert grants == {"attributes": ["rolling"], "imports": {"pandas": ["DataFrame", "Series"]}}
    policy = (mine / "policy.toml").read_text()
    policy = policy.replace("[code]\n", '[code]\nattributes = ["rolling"]\n')
    policy = policy.replace("[code.imports]", '[code.imports]\npandas = ["DataFrame", "Series"]\n#')
    (mine / "policy.toml").write_text(policy)
    assert [remark for remark in judged(mine).remarks if remark.part == "code"] == []


@pytest.mark.parametrize("reaching", ["pd.read_csv('x')", "frame.to_pickle('x')", "frame.eval('a + b')"])
def test_reading_writing_and_evaluating_are_never_offered(tmp_path: Path, reaching: str) -> None:
    code = f"import pandas as pd\n\n\ndef act(frame: pd.DataFrame):\n    return {reaching}\n"
    found = judged(written(tmp_path, alpha____init__="", alpha__act=code))
    name = reaching.partition("(")[0].rpartition(".")[2]
    assert found.remaining > 0
    assert name not in found.profile


def test_what_is_imported_must_be_locked(mine: Path) -> None:
    (mine / "src" / "strategy" / "model.py").write_text("from sklearn.linear_model import Ridge\n\nKIND = Ridge\n")
    remarks = [remark for remark in judged(mine).remarks if remark.part == "dependencies"]
    assert ["scikit-learn" in remark.what for remark in remarks] == [True]
    lock = mine / "requirements.lock"
    lock.write_text(lock.read_text() + "scikit_learn==1.8.0 \\\n    --hash=sha256:00\n")
    assert [remark for remark in judged(mine).remarks if remark.part == "dependencies"] == []


def test_pickled_models_and_data_are_named(mine: Path) -> None:
    for name in ("src/strategy/model.PKL", "data/prices.parquet", "baseline/kept.csv"):
        (mine / name).parent.mkdir(exist_ok=True)
        (mine / name).write_bytes(b"x")
    places = {remark.place for remark in judged(mine).remarks if remark.part == "data"}
    assert places == {"src/strategy/model.PKL", "data/prices.parquet"}


def test_a_parameter_that_begins_outside_its_bounds_is_named(mine: Path) -> None:
    settings = mine / "strategy.toml"
    settings.write_text(settings.read_text().replace("window = 21 ", "window = 400 "))
    (remark,) = judged(mine).remarks
    assert (remark.part, remark.code) == ("parameters", "GR120")
    assert "window" in remark.what


@pytest.mark.parametrize("text", ["schema = 1\nsurprise = 2\n", "[layout", ""])
def test_a_policy_that_cannot_be_read_is_one_remark(mine: Path, text: str) -> None:
    (mine / "policy.toml").write_text(text)
    assert [remark.place for remark in judged(mine).remarks if remark.part == "layout"] == ["policy.toml"]


def test_every_kind_of_import_has_an_advice_and_no_root_two() -> None:
    kinds = strategy_check.advice()
    roots = [root for one in kinds.values() for root in one.roots]
    assert len(roots) == len(set(roots))
    assert {one.way for one in kinds.values()} == {"policy", "lock", "never"}
    assert strategy_check.advice_on("something_unheard_of") is kinds["other"]


def test_a_start_may_be_a_folder_of_ones_own(mine: Path) -> None:
    tree, inverse = start_tree(str(mine))
    assert inverse is None
    assert parse_policy(tree["policy.toml"]).acceptance.strategy == "strategy:Strategy"
    assert strategy_folder(str(mine)) == mine
    (mine / "policy.toml").unlink()
    with pytest.raises(Mistake, match=r"Expected policy\.toml in .*oomrl strategy check"):
        start_tree(str(mine))


def test_a_name_that_ships_means_what_ships(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shipped").mkdir()
    assert strategy_folder("shipped") == environments.shipped("strategy_repo")
