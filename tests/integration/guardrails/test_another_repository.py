"""The gate on a repository that is none of ours: docs/examples/durations, by the command that its README names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from guardrails import __main__ as cli
from oomrl.adapters import environments

ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = ROOT / "docs" / "examples" / "durations"
EXPECTED = {
    "repair": ("logic", 0, set()),
    "special_case": ("logic", 1, {"GR512"}),
    "forged": ("logic", 1, {"GR203", "GR210", "GR231"}),
    "more_tests": ("tests", 0, set()),
    "vacuous_tests": ("tests", 1, {"GR402"}),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", EXPECTED)
def test_a_patch_of_another_repository_is_judged(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    phase, exit_code, codes = EXPECTED[name]
    patch = EXAMPLE.with_name("durations-patches") / f"{name}.diff"
    options = ["--repo", str(EXAMPLE), "--policy", str(EXAMPLE / "policy.toml"), "--patch", str(patch)]
    done = cli.main(["check", *options, "--phase", phase, "--python", str(environments.find().gate), "--json"])
    verdict = json.loads(capsys.readouterr().out)
    assert (done, {item["code"] for item in verdict["findings"]}) == (exit_code, codes)
    if name in ("repair", "more_tests"):
        assert verdict["mutation"]["killed"] > 0


def test_the_readme_names_every_patch() -> None:
    text = (EXAMPLE / "README.md").read_text()
    assert all(f"`{name}.diff` | {phase}" in text for name, (phase, *_) in EXPECTED.items())
    assert {path.stem for path in EXAMPLE.with_name("durations-patches").iterdir()} == set(EXPECTED)
