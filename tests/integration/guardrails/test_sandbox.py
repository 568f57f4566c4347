"""Each combination of user (this one, an ordinary one) and profile holds the same."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

import pytest

from guardrails.sandbox.launch import ENVIRONMENT
from tests.integration.guardrails.scenarios import ROOT, SCENARIOS

SMALL = "unit/guardrails/small.py"
NOBODY = [shutil.which("setpriv") or "setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--"]
PROFILES = [
    pytest.param(
        "S3", marks=pytest.mark.skipif(shutil.which("bwrap") is None, reason="S3 needs bubblewrap: install it")
    ),
    "S2",
]
profiles = pytest.mark.parametrize("profile", PROFILES)
scenarios = pytest.mark.parametrize("name", SCENARIOS)


@cache
def interpreter_of_nobody() -> str | None:
    """Return an interpreter that an ordinary user may start here, where the tests run as root."""
    for python in (sys.executable, "/usr/local/bin/python3", "/usr/bin/python3"):
        command = [
            *NOBODY,
            python,
            "-c",
            "import os, sys; os.stat(sys.executable); sys.exit(sys.version_info < (3, 11))",
        ]
        try:
            if subprocess.run(command, capture_output=True).returncode == 0:
                return python
        except OSError:
            return None
    return None


def environment_with_pytest(python: str, place: Path) -> str:
    """Make a virtual environment of an ordinary user's interpreter, with what the gate runs."""
    version = subprocess.run([python, "-c", "import sys; print(sys.version_info[:2])"], capture_output=True, text=True)
    if version.stdout.strip() != str(sys.version_info[:2]):
        pytest.skip("SKIPPED LOUDLY: the interpreter that an ordinary user may start is of another version")
    subprocess.run([python, "-m", "venv", "--without-pip", str(place)], check=True)
    [packages] = (place / "lib").glob("python*/site-packages")
    for name in ("pytest", "_pytest", "pluggy", "iniconfig", "packaging", "pygments", "coverage", "unidiff"):
        [source] = importlib.util.find_spec(name).submodule_search_locations
        shutil.copytree(source, packages / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(importlib.util.find_spec("py").origin, packages)
    subprocess.run(["chmod", "-R", "a+rX", str(place)], check=True)
    return str(place / "bin" / "python")


def as_nobody(*command: str, path: str = os.environ["PATH"]) -> subprocess.CompletedProcess[str]:
    python = interpreter_of_nobody()
    if os.geteuid() != 0:
        pytest.skip("the tests run as an ordinary user already")
    if python is None:
        pytest.skip("no interpreter of 3.11 or later that an ordinary user may start, or no setpriv")
    with tempfile.TemporaryDirectory() as place:  # a copy: the checkout may lie in a folder of root
        Path(place).chmod(0o755)
        ignore = shutil.ignore_patterns("__pycache__", "attacks")
        shutil.copytree(ROOT / "guardrails", Path(place, "guardrails"), ignore=ignore)
        for name in ("integration/guardrails/scenarios.py", "integration/guardrails/whole_gate.py", SMALL):
            Path(place, "tests", name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / "tests" / name, Path(place, "tests", name))
        subprocess.run(["chmod", "-R", "a+rX", place], check=True)
        if "tests.integration.guardrails.whole_gate" in command:
            python = environment_with_pytest(python, Path(place, "venv"))
        environment = {"PATH": path, "PYTHONPATH": place, "PYTHONDONTWRITEBYTECODE": "1"}
        return subprocess.run([*NOBODY, python, *command], capture_output=True, text=True, env=environment, cwd="/")


@scenarios
@profiles
def test_it_holds(name, profile):
    SCENARIOS[name](profile)


@scenarios
@profiles
def test_it_holds_for_an_ordinary_user(name, profile):
    done = as_nobody("-m", "tests.integration.guardrails.scenarios", name, profile)
    assert done.returncode == 0, done.stderr


def as_this_user(*command: str, path: str = os.environ["PATH"]) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)}
    return subprocess.run([sys.executable, *command], capture_output=True, text=True, env=environment)


@pytest.mark.parametrize("start", [as_this_user, as_nobody])
@pytest.mark.parametrize("bubblewrap", [True, False])
def test_the_whole_gate_judges_alike_for_each_user_with_and_without_bubblewrap(start, bubblewrap):
    """Where it is weaker it says so, and where the policy asks for more than there is it judges nothing."""
    if bubblewrap and shutil.which("bwrap") is None:
        pytest.skip("S3 needs bubblewrap: install it")
    path, profile = (os.environ["PATH"], "S3") if bubblewrap else ("/nonexistent", "S2")

    def judged(minimum, patch):
        done = start("-m", "tests.integration.guardrails.whole_gate", minimum, patch, path=path)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    honest = judged("S2", "honest")
    assert honest["allowed"] and honest["held"] and honest["profile"] == profile, str(honest)
    for patch, code in (("wrong", "GR501"), ("untested", "GR511"), ("greedy", "GR501")):
        verdict = judged("S2", patch)
        assert verdict["decision"] == "refuse" and code in verdict["codes"] and verdict["profile"] == profile
    strict = judged("S3", "honest")
    assert strict["allowed"] == bubblewrap
    assert bubblewrap or (strict["decision"], strict["codes"], strict["profile"]) == ("error", ["GR901"], "none")
    assert bubblewrap or "was S2" in strict["reasons"][0]


def test_the_canaries_are_real_attacks():
    """Outside a sandbox, nearly all of them get through; what does not is known by name."""
    harmless = {
        "mount", "node made", "superuser", "perf_event_open", "performance counters", "handle", "bpf", "page faults",
        "interpreter written", "interpreter mode changed",  # root's interpreter; here an ordinary user attacks
        "parent's memory file", "parent's environment", "device made", "parent traced", "parent's memory",
        "signal to the parent", "signal by the parent's descriptor", "parent's limits", "limit raised", "memory",
        "signal by a descriptor's owner",
    }  # fmt: skip
    code = """
import json, os, sys, tempfile
place = tempfile.mkdtemp()
hidden = place + "/hidden"
setup = {"parent": os.getppid(), "outside": place + "/outside", "hidden": hidden, "environment": {}, "forks": 1}
sys.argv = ["", json.dumps(setup)]
source = open(os.environ["PYTHONPATH"] + "/guardrails/sandbox/canaries.py").read().rpartition("attacks = ")[0]
names = {"__name__": "canaries"}
exec(compile(source, "canaries", "exec"), names)
through = []
os.dup2(0, 3); os.dup2(0, 9)
for name, attack in {**names["FILES"], **names["REACH"], **names["ALONE"]}.items():
    open(hidden, "w").close()
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0) if name != "group left" else None
        os._exit(0 if names["held"](attack) else 1)
    if os.waitpid(child, 0)[1] != 0 or name == "program":
        through.append(name)
print(json.dumps([through, sorted({**names["FILES"], **names["REACH"], **names["ALONE"]})]))
"""
    done = as_nobody("-c", code)
    assert done.returncode == 0, done.stderr
    through, every = json.loads(done.stdout)
    assert set(every) - set(through) <= harmless
    assert len(through) > 25


def test_the_environment_is_the_same_everywhere():
    assert ENVIRONMENT["PYTHONHASHSEED"] == "0"
    assert not any(name in ENVIRONMENT for name in os.environ if name.startswith(("PYTHONPATH", "PYTEST")))
