"""Any change of the log is found; a cut end is found against a head kept elsewhere."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from guardrails.attestation import AttestationError, Head, Log, Signer, seal, statement, unseal

SUBJECT = {"tree": "a" * 64}


def log_of(folder: Path, entries: int = 3) -> Log:
    log = Log(folder / "log.jsonl", Signer.open(folder / "key"))
    for number in range(entries):
        log.append(statement(SUBJECT, "urn:test", {"number": number}))
    return log


def test_a_log_holds_what_was_appended(tmp_path: Path) -> None:
    log = log_of(tmp_path)
    assert log.verify(log.head()).entries == 3
    assert [body["predicate"]["number"] for body in log.statements()] == [0, 1, 2]
    assert Head.parse(log.head().text()) == log.head()


def test_an_empty_log_is_whole(tmp_path: Path) -> None:
    log = Log(tmp_path / "none.jsonl", Signer.open(tmp_path / "key"))
    assert log.verify() == log.head() == log.verify(log.head())


def test_a_key_is_made_once_and_kept_from_others(tmp_path: Path) -> None:
    path = tmp_path / "state" / "key"
    first = Signer.open(path)
    assert path.stat().st_mode & 0o777 == 0o600 and Signer.open(path).public == first.public
    path.chmod(0o644)
    with pytest.raises(AttestationError, match="0600"):
        Signer.open(path)
    with pytest.raises(AttestationError, match="key"):
        Signer.open(tmp_path / "absent", create=False)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_changed_byte_is_found(tmp_path: Path, data: st.DataObject) -> None:
    path = tmp_path / "log.jsonl"
    if not path.exists():
        log_of(tmp_path)
        (tmp_path / "whole").write_bytes(path.read_bytes())
    whole = (tmp_path / "whole").read_bytes()
    at = data.draw(st.integers(0, len(whole) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda value: value != whole[at]))
    path.write_bytes(whole[:at] + bytes([byte]) + whole[at + 1 :])
    with pytest.raises(AttestationError):
        Log(path, Signer.open(tmp_path / "key")).verify()


def test_lines_can_not_be_swapped_dropped_doubled_or_made_by_another_key(tmp_path: Path) -> None:
    log = log_of(tmp_path)
    lines = log.path.read_bytes().splitlines(keepends=True)
    (tmp_path / "other").mkdir()
    foreign = log_of(tmp_path / "other").path.read_bytes()
    for wrong in ([lines[1], lines[0], lines[2]], [lines[0], lines[2]], [*lines, lines[2]], [foreign]):
        log.path.write_bytes(b"".join(wrong))
        with pytest.raises(AttestationError):
            log.verify()


@pytest.mark.parametrize("end", [b"\r\n", b"\r", b"\x0b\n", b"\x85\n"])
def test_lines_end_in_one_way(tmp_path: Path, end: bytes) -> None:
    log = log_of(tmp_path)
    log.path.write_bytes(log.path.read_bytes().replace(b"\n", end))
    with pytest.raises(AttestationError):
        log.verify()


def test_a_cut_end_is_found_against_the_anchor_only(tmp_path: Path) -> None:
    log = log_of(tmp_path)
    head = log.head()
    lines = log.path.read_bytes().splitlines(keepends=True)
    log.path.write_bytes(b"".join(lines[:2]))
    assert log.verify().entries == 2
    with pytest.raises(AttestationError, match="cut"):
        log.verify(head)


def test_growth_after_the_anchor_is_no_fault(tmp_path: Path) -> None:
    log = log_of(tmp_path)
    head = log.head()
    log.append(statement(SUBJECT, "urn:test", {"number": 4}))
    assert log.verify(head).entries == 4


def test_an_envelope_is_signed_over_type_and_payload(tmp_path: Path) -> None:
    signer = Signer.open(tmp_path / "key")
    body = statement(SUBJECT, "urn:test", {})
    envelope = seal(body, signer)
    assert unseal(envelope, [signer.public]) == json.loads(json.dumps(body))
    for change in ({"payloadType": "text/plain"}, {"payload": "e30="}, {"signatures": []}):
        with pytest.raises(AttestationError):
            unseal({**envelope, **change}, [signer.public])
    with pytest.raises(AttestationError):
        unseal(envelope, [])


def test_a_key_that_was_being_made_when_its_maker_died_is_made_anew(tmp_path: Path) -> None:
    """The crash campaign found a key of no bytes: nothing under the key's name may ever be half a key."""
    place = tmp_path / "keys" / "audit.key"
    killed = "import os; os.fsync = lambda number: os.kill(os.getpid(), 9)\n"
    made = f"from pathlib import Path; from guardrails.attestation import Signer; Signer.open(Path({str(place)!r}))"
    assert subprocess.run([sys.executable, "-c", killed + made], check=False).returncode == -9
    assert not place.exists()
    signed = Signer.open(place).sign(b"x")
    assert Signer.open(place).sign(b"x") == signed and place.stat().st_mode & 0o777 == 0o600
