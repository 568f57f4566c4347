"""Each combination of user (this one, an ordinary one) and profile holds the same."""

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

CANARIES = ROOT / "guardrails" / "sandbox" / "canaries.py"
NOBODY = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--"]
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


def as_nobody(*command: str) -> subprocess.CompletedProcess[str]:
    python = interpreter_of_nobody()
    if os.geteuid() != 0:
        pytest.skip("the tests run as an ordinary user already")
    if python is None:
        pytest.skip("no interpreter of 3.11 or later that an ordinary user may start, or no setpriv")
    with tempfile.TemporaryDirectory() as place:  # a copy: the checkout may lie in a folder of root
        Path(place).chmod(0o755)
        ignore = shutil.ignore_patterns("__pycache__", "attacks")
        shutil.copytree(ROOT / "guardrails", Path(place, "guardrails"), ignore=ignore)
        there = Path(place, "tests", "integration", "guardrails")
        there.mkdir(parents=True)
        shutil.copy(ROOT / "tests" / "integration" / "guardrails" / "scenarios.py", there)
        subprocess.run(["chmod", "-R", "a+rX", place], check=True)
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": place, "PYTHONDONTWRITEBYTECODE": "1"}
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
source = open(CANARIES).read().rpartition("attacks = ")[0]
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
""".replace("CANARIES", repr(str(CANARIES)))
    done = as_nobody("-c", code)
    assert done.returncode == 0, done.stderr
    through, every = json.loads(done.stdout)
    assert set(every) - set(through) <= harmless
    assert len(through) > 25


def test_the_environment_is_the_same_everywhere():
    assert ENVIRONMENT["PYTHONHASHSEED"] == "0"
    assert not any(name in ENVIRONMENT for name in os.environ if name.startswith(("PYTHONPATH", "PYTEST")))
