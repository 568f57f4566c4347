"""Build the wheel, check it, install it outside the checkout, and use it there as a person would.

Its dependencies are the locked ones, from an environment that has them: what is tried is our own package.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from urllib.request import urlopen

ROOT = Path(__file__).resolve().parents[1]
#: One file of each kind that must be in the wheel, beside the code.
NEEDED = (
    "oomrl/_data/migrations/env.py",
    "oomrl/_data/strategy_repo/policy.toml",
    "oomrl/_data/strategy_repo/requirements.lock",
    "oomrl/_data/strategy_repo/baseline/golden/capped.json",
    "oomrl/adapters/skeleton/policy.toml",
    "oomrl/adapters/strategy_advice.toml",
    "oomrl/agents/prompts/coder.md",
    "oomrl/testing/starts/phase1/start.patch",
    "oomrl/web/static/app.css",
    "oomrl/web/templates/",
    "guardrails/checks/codes.toml",
    "guardrails/schemas/verdict.schema.json",
)


def missing(wheel: Path) -> list[str]:
    """Return what the wheel should hold and does not."""
    with zipfile.ZipFile(wheel) as opened:
        names = opened.namelist()
    return [need for need in NEEDED if not any(name.startswith(need) for name in names)]


def build(target: Path) -> Path:
    """Build the wheel alone, from a checkout, with the build backend of this environment."""
    step = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(target)]
    run(step, ROOT)
    return next(target.glob("*.whl"))


def run(step: list[str], folder: Path, env: dict[str, str] | None = None) -> str:
    """Run a step in a folder, without the checkout in reach; end with what it said where it fails."""
    plain = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "OOMRL"))}
    done = subprocess.run(step, cwd=folder, env={**plain, **(env or {})}, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(step)} ended with {done.returncode}:\n{done.stdout[-1500:]}{done.stderr[-1500:]}")
    return done.stdout


def installed(wheel: Path, folder: Path) -> Path:
    """Make an environment with the wheel in it and the dependencies of this one beside it; return its interpreter."""
    run([sys.executable, "-m", "venv", "--without-pip", str(folder)], folder.parent)
    python = folder / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check"]
    run([*pip, "install", "--quiet", "--no-deps", "--no-index", str(wheel)], folder.parent)
    own = next(path for path in map(Path, sys.path) if (path / "click").is_dir())
    site = next((folder / "lib").glob("python*/site-packages"))
    # The path itself and not what its .pth files add: an editable checkout would come back by one.
    (site / "dependencies.pth").write_text(f"{own}\n")
    return python


def served(step: list[str], folder: Path, env: dict[str, str]) -> str:
    """Start the page, ask for its door and for a style sheet, and stop it."""
    plain = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "OOMRL"))}
    with subprocess.Popen(
        step, cwd=folder, env={**plain, **env, "PYTHONUNBUFFERED": "1"}, stdout=subprocess.PIPE, text=True
    ) as page:
        try:
            assert page.stdout is not None
            said = next((line for line in page.stdout if "http" in line), "")
            address = re.search(r"http://[\d.]+:\d+", said)
            if address is None:
                sys.exit("the page ended without saying where it is served")
            for path, sign in (("/login", b"<html"), ("/static/app.css", b"{")):
                with urlopen(address[0] + path, timeout=30) as answer:
                    if sign not in answer.read():
                        sys.exit(f"{path} is not what it should be")
        finally:
            page.terminate()
    return "page: served, styled, stopped"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--wheel", type=Path, required=True)
    parser.add_argument("--environments", type=Path, default=ROOT, help="where .venv-worker and .venv-gate are")
    options = parser.parse_args()
    if lacking := missing(options.wheel):
        sys.exit(f"the wheel lacks {', '.join(lacking)}")
    with tempfile.TemporaryDirectory(prefix="oomrl wheel é ") as place:
        folder = Path(place)
        python = installed(options.wheel.resolve(), folder / "environment")
        oomrl = [str(folder / "environment" / "bin" / "oomrl")]
        where = run([str(python), "-c", "import oomrl; print(oomrl.__file__)"], folder).strip()
        if not Path(where).is_relative_to(folder):
            sys.exit(f"expected the installed package, was {where}")
        env = {
            "OOMRL_WORKER_PYTHON": str(options.environments.resolve() / ".venv-worker/bin/python"),
            "OOMRL_GATE_PYTHON": str(options.environments.resolve() / ".venv-gate/bin/python"),
            "PYTHONWARNINGS": "ignore",
        }
        print(re.findall(r"(?m)^  simulate .*", run([*oomrl, "--help"], folder))[0].strip())
        print(run([*oomrl, "setup"], folder, env).strip())
        span = ["--from", "2006-08-01", "--to", "2006-09-29"]
        told = run([*oomrl, "replay", *span, "--json"], folder, env)
        print("replay:", re.search(r'"sharpe": \S+', told)[0])  # type: ignore[index]
        run([*oomrl, "simulate", *span, "--state", "state", "--json"], folder, env)
        print(run([*oomrl, "audit", "verify", "--state", "state"], folder, env).strip())
        run([*oomrl, "strategy", "new", "mine"], folder, env)
        print(run([*oomrl, "strategy", "check", "mine", "--static"], folder, env).strip())
        print(served([*oomrl, "page", "--state", "state", "--port", "0"], folder, env))
        print(run([str(python), "-m", "guardrails", "explain", "GR203"], folder).splitlines()[0])
    print("The wheel works outside the checkout.")


if __name__ == "__main__":
    main()
