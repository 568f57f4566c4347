"""The command line: three exit codes, one clear line for a mistake, no traceback."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from guardrails import __main__ as cli
from guardrails.attestation import TRANSITION_PREDICATE, Log, Signer
from tests.unit.guardrails import small
from tests.unit.guardrails.test_gate import BASELINE, EDIT, FakeBench


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "repo"
    small.tree().replace(dict(BASELINE)).write(folder)
    (folder / "policy.toml").write_bytes(small.POLICY)
    (tmp_path / "good.diff").write_bytes(EDIT)
    (tmp_path / "bad.diff").write_bytes(EDIT.replace(b"2.0 * first", b"open(first)"))
    monkeypatch.setattr("guardrails.stages.open_bench", lambda environment, policy: FakeBench())
    return folder


def check(repo: Path, patch: str, *more: str) -> int:
    where = ["--repo", str(repo), "--policy", str(repo / "policy.toml"), "--phase", "logic"]
    return cli.main(["check", *where, "--patch", str(repo.parent / patch), *more])


def test_a_verdict_has_an_exit_code(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(repo, "good.diff") == 0
    assert check(repo, "bad.diff", "--json") == 1
    shown = capsys.readouterr().out
    verdict = json.loads(shown[shown.index("{") :])
    assert verdict["decision"] == "refuse" and verdict["findings"][0]["code"] == "GR202"


def test_a_mistake_is_one_line_and_exit_two(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(repo, "absent.diff") == 2
    (repo / "policy.toml").write_text("schema = 1\nlayuot = 2\n")
    assert check(repo, "good.diff") == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2 and "layuot" in lines[1]


def test_anchors_are_printed_and_compared(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = ["--repo", str(repo), "--policy", str(repo / "policy.toml")]
    assert cli.main(["lock", *where]) == 0
    (repo.parent / "anchors.json").write_text(capsys.readouterr().out)
    assert cli.main(["lock", *where, "--expect", str(repo.parent / "anchors.json")]) == 0
    (repo / "tests/generated/test_standing.py").write_text("")
    assert cli.main(["lock", *where, "--expect", str(repo.parent / "anchors.json")]) == 1
    assert "changed: tests" in capsys.readouterr().out


def test_a_verdict_is_attested_and_verified(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = repo.parent / "log.jsonl"
    assert check(repo, "good.diff", "--log", str(log)) == 0
    head = capsys.readouterr().err.split()[-1]
    assert cli.main(["verify", "--log", str(log), "--head", head]) == 0
    *steps, body = Log(log, Signer.open(log.with_suffix(".key"))).statements()
    assert [step["predicate"]["event"] for step in steps] == ["locked", "logic genesis", "accepted"]
    assert {step["predicateType"] for step in steps} == {TRANSITION_PREDICATE}
    assert steps[-1]["subject"][0]["digest"]["sha256"] == body["predicate"]["result_tree"]
    assert body["predicate"]["decision"] == "pass" and body["_type"].endswith("Statement/v1")
    log.write_bytes(log.read_bytes().replace(b'"index":0', b'"index":1'))
    assert cli.main(["verify", "--log", str(log)]) == 1
    assert cli.main(["verify", "--log", str(repo / "none")]) == 2
    assert cli.main(["verify", "--log", str(log), "--head", "rubbish"]) == 2


def test_codes_are_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["explain", "gr202"]) == 0 and cli.main(["explain"]) == 0
    assert cli.main(["explain", "GR000"]) == 2
    assert "GR202" in capsys.readouterr().out


def test_a_corpus_is_run(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, kind, patch in (("a1", "H", "bad.diff"), ("b1", "benign", "good.diff")):
        folder = repo.parent / "corpus" / name
        folder.mkdir(parents=True)
        (folder / "attack.toml").write_text(
            f'id = "{name}"\nclass = "{kind}"\nphase = "logic"\nsuccess = "reads a file"\n'
        )
        (folder / "patch.diff").write_bytes((repo.parent / patch).read_bytes())
    where = [
        "--repo",
        str(repo),
        "--policy",
        str(repo / "policy.toml"),
        "--corpus",
        str(repo.parent / "corpus"),
    ]
    where += ["--rows", str(repo.parent / "rows.jsonl")]
    assert cli.main(["attack", *where, "--ablate", "9", "--json", "--jobs", "1"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["attacks"], report["succeeded"], report["benign"], report["benign_refused"]) == (
        1,
        0,
        1,
        0,
    )
    alone = {"stopped_first": 1, "judged_without": 1, "through_without": 1, "classes": {"H": 1}}
    assert report["ablation"]["static"] == alone
    assert report["ablation"]["lock"]["stopped_first"] == 0 and report["corpora"]["corpus"]["wrong"] == 0
    assert report["succeeded_wilson_95"] == [0.0, 0.7935]
    judged = (repo.parent / "rows.jsonl").read_text()
    assert cli.main(["attack", *where, "--ablate", "9", "--table", str(repo.parent / "table.md"), "--jobs", "1"]) == 0
    assert (repo.parent / "rows.jsonl").read_text() == judged  # what was judged is not judged again
    page = (repo.parent / "table.md").read_text()
    assert "| static | 1 | 1 | 1 | H 1 |" in page and "| corpus | 1 | 0 | 0.0 to 79.3 % |" in page
    assert "Judged are\n2 of 2 in corpus" in page and "0 of the refused change tests that stand" in page
    capsys.readouterr()
    cli.main(["attack", *where, "--so-far", "--seed", "8", "--json"])
    assert json.loads(capsys.readouterr().out)["size"] == 0
    for empty in ("absent", "src"):  # no folder, and one without an attack: nothing was tried
        assert cli.main(["attack", *where[:4], "--corpus", str(repo / empty)]) == 2
