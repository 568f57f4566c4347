"""The policy is read strictly, and what steers a run is locked whatever it says."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import pytest

import guardrails
from guardrails.checks.parameters import judge_parameters
from guardrails.policy import Bound, Phase, PolicyError, load_policy, locked, matches, parse_policy
from tests.unit.guardrails import small


def test_the_example_policy_is_read() -> None:
    policy = load_policy(Path(guardrails.__file__).parent / "example_policy.toml")
    assert policy.package_folder == "src/strategy" and len(policy.digest) == 64
    assert pickle.loads(pickle.dumps(policy)) == policy  # noqa: S301  our own record


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (b"\n[limits]\nfile = 3\n", "'file'"),
        (b"\n[limits]\nfiles = '3'\n", "int at policy.limits.files"),
        (b"\n[limits]\nfiles = true\n", "int at policy.limits.files"),
        (b"\n[sandbox]\nminimum = 'S0'\n", "S2"),
        (b"\n[coverage]\ntotal = '95'\n", "float"),
        (b"\n[tests]\ndefect_prefix = ['a']\n", "str"),
        (b"\n[phases.other]\neditable = 'a'\n", "list"),
        (b"\n[bounds.x]\ntype = 'integer'\n", "'int'"),
        (b"\nthis is no toml", "TOML"),
        (b"\xff", "UTF-8"),
    ],
)
def test_a_wrong_policy_is_no_policy(change: bytes, said: str) -> None:
    with pytest.raises(PolicyError, match=said):
        parse_policy(small.POLICY + change)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (b"schema = 1", b"schema = 2", "schema"),
        (b"schema = 1", b"schema = 1\ndigest = 'x'", "digest"),
        (b'package = "strategy"\n', b"", "'package'"),
        (b"[phases.tests]", b"[phases.test]", "tests"),
    ],
)
def test_a_policy_says_everything_it_must(old: bytes, new: bytes, said: str) -> None:
    with pytest.raises(PolicyError, match=said):
        parse_policy(small.POLICY.replace(old, new))


STEERING = """
conftest.py setup.py sitecustomize.py usercustomize.py pytest.ini .pytest.ini pyproject.toml setup.cfg
tox.ini .coveragerc .coveragerc.toml .coverage requirements.txt requirements-dev.in constraints.txt Pipfile Pipfile.lock
poetry.lock uv.lock policy.toml a.pth a.pyc a.so a.pyd a.pkl a.npy a.json a.csv a.parquet a.sh .gitattributes
.gitmodules .env noxfile.py CONFTEST.PY Makefile ruff.toml mypy.ini __main__.py
"""


@pytest.mark.parametrize("name", STEERING.split())
def test_what_steers_a_run_is_locked(name: str) -> None:
    policy = small.policy()
    anything = replace(policy, phases={**policy.phases, "logic": Phase(("**",), ("**",), ("**",))})
    assert locked(name) and not anything.may("edit", name, "logic")
    assert not anything.may("create", f"src/strategy/{name}", "logic")


def test_globs_stay_in_their_folders() -> None:
    assert matches("src/a/b.py", "src/**/*.py") and matches("src/b.py", "src/**/*.py")
    assert not matches("src/a/b.py", "src/*.py") and not matches("other/src/b.py", "src/**/*.py")
    assert not matches("src/b.pyx", "src/**/*.py") and not matches("src/b.py\n", "src/*.py")
    assert matches("tests/test_a.py", "tests/test_?.py") and not matches("tests/test_ab.py", "tests/test_?.py")


BOUNDS = {
    "cadence": Bound("str", choices=("daily", "weekly")),
    "parameters.lookback": Bound("int", 5, 252, max_relative_change=0.5),
    "parameters.band": Bound("float", 0.0, 1.0),
    "parameters.on": Bound("bool"),
    "parameters.text": Bound("str"),
}
BEFORE = b'cadence = "daily"\nname = "x"\n[parameters]\nlookback = 20\nband = 0.5\non = true\n'


@pytest.mark.parametrize(
    ("old", "new", "fine"),
    [
        ("", "", True),
        ('"daily"', '"weekly"', True),
        ('"daily"', '"hourly"', False),
        ('"daily"', "5", False),
        ("lookback = 20", "lookback = 30", True),
        ("lookback = 20", "lookback = 31", False),
        ("lookback = 20", "lookback = 4", False),
        ("lookback = 20", "lookback = 20.0", False),
        ("lookback = 20", "lookback = true", False),
        ("band = 0.5", "band = 1", True),
        ("band = 0.5", "band = nan", False),
        ("band = 0.5", "band = inf", False),
        ("band = 0.5", "band = '0.5'", False),
        ("on = true", "on = false", True),
        ("on = true", "on = 1", False),
        ("lookback = 20\n", "", False),
        ('name = "x"', 'name = "y"', False),
        ('name = "x"', 'name = "x"\nextra = 1', False),
        ("on = true", "on = true\ntext = 'free'", False),
        ("on = true", "on = true\nband = 0.5", False),
        ('name = "x"', 'name = "x"\n"parameters.lookback" = 22', False),
        ("[parameters]", "[parameters", False),
        ("on = true", "# on, as before\non = true", True),
    ],
)
def test_parameters_move_within_their_bounds(old: str, new: str, fine: bool) -> None:
    policy = replace(small.policy(), bounds=BOUNDS)
    after = BEFORE.decode().replace(old, new, 1).encode()
    result = small.tree().replace({"strategy.toml": after})
    assert (judge_parameters(BEFORE, result, policy) == []) is fine
