"""What a backup's archive may hold: plain files below its folder, on every version of Python."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from oomrl.daemon import backup
from oomrl.errors import Halt


def archive(path: Path, *members: tarfile.TarInfo) -> Path:
    with tarfile.open(path, "w:gz") as packed:
        for member in members:
            member.size = 4 if member.isfile() else 0
            packed.addfile(member, io.BytesIO(b"evil") if member.isfile() else None)
    return path


def linked(name: str, kind: bytes, target: str) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, target
    return member


@pytest.mark.parametrize(
    "members",
    [
        [tarfile.TarInfo("../evil")],
        [tarfile.TarInfo("deep/../../evil")],
        [linked("out", tarfile.SYMTYPE, ".."), tarfile.TarInfo("out/evil")],
        [linked("hard", tarfile.LNKTYPE, "/etc/passwd")],
        [linked("pipe", tarfile.FIFOTYPE, "")],
    ],
)
def test_an_archive_with_anything_but_plain_files_inside_is_refused(
    members: list[tarfile.TarInfo], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "place"
    place.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(place))
    with pytest.raises(Halt, match="no plain file inside it"):
        backup.verify(archive(tmp_path / "a.tar.gz", *members))
    assert list(tmp_path.rglob("evil")) == []
