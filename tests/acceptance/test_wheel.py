"""The package as others get it: what the wheel holds, and that it works outside. `make wheel` does more."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from bench import wheel


@pytest.mark.slow
def test_the_wheel_holds_all_it_needs_and_works_outside_the_checkout(tmp_path: Path) -> None:
    built = wheel.build(tmp_path / "dist")
    assert wheel.missing(built) == []
    python = wheel.installed(built, tmp_path / "an environment é")
    where = wheel.run([str(python), "-c", "import oomrl; print(oomrl.__file__)"], tmp_path).strip()
    assert Path(where).is_relative_to(tmp_path)
    oomrl = str(python.with_name("oomrl"))
    assert "Begin a strategy repository" in wheel.run([oomrl, "--help"], tmp_path)
    wheel.run([oomrl, "strategy", "new", "mine"], tmp_path)
    assert "Ready" in wheel.run([oomrl, "strategy", "check", "mine", "--static"], tmp_path)


def test_what_is_missing_from_a_wheel_is_named(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "hollow.whl", "w") as hollow:
        for name in wheel.NEEDED[1:]:
            hollow.writestr(name + "x" * name.endswith("/"), "")
    assert wheel.missing(tmp_path / "hollow.whl") == [wheel.NEEDED[0]]
