"""Patches are read strictly, applied exactly, and shown as one canonical diff."""

from __future__ import annotations

import difflib
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guardrails.patch import apply_patch, canonical_diff, judge_patch, parse_patch
from guardrails.policy import Limits
from guardrails.tree import Tree, TreeError
from tests.unit.guardrails import small

EDIT = b"""--- a/src/strategy/signal.py
+++ b/src/strategy/signal.py
@@ -6,3 +6,3 @@ def change(first, last):
 def change(first, last):
     \"\"\"Return the change.\"\"\"
-    return last - first
+    return last - 2.0 * first
"""
WIDE = Limits(patch_bytes=1 << 30, files=1 << 20, hunks=1 << 20, changed_lines=1 << 30)


def verdict(data: bytes, phase: str = "logic") -> list[str]:
    return [item.code for item in judge_patch(small.tree(), data, phase, small.policy()).findings]


def test_an_edit_changes_one_file_and_leaves_the_tree_alone() -> None:
    base = small.tree()
    patch = judge_patch(base, EDIT, "logic", small.policy())
    assert patch.findings == () and patch.result is not None and patch.repairs == ()
    assert b"2.0 * first" in patch.result["src/strategy/signal.py"]
    assert dict(base) == dict(small.tree())
    assert {path for path in base if base[path] != patch.result[path]} == {"src/strategy/signal.py"}


@pytest.mark.parametrize(
    ("spoilt", "said"),
    [
        (EDIT.replace(b"\n", b"\r\n"), "line endings"),
        (EDIT.rstrip(b"\n"), "final newline"),
        (b"```diff\n" + EDIT + b"```\n", "fences"),
        (EDIT.replace(b"-6,3 +6,3", b"-60,9 +1,2"), "hunk counts"),
        (EDIT.replace(b"@@ -6,3 +6,3 @@ def change(first, last):", b"@@ @@"), "hunk counts"),
    ],
)
def test_the_envelope_is_repaired_and_it_is_said(spoilt: bytes, said: str) -> None:
    patch = judge_patch(small.tree(), spoilt, "logic", small.policy())
    straight = judge_patch(small.tree(), EDIT, "logic", small.policy())
    assert patch.findings == () and patch.canonical == straight.canonical
    assert len(patch.repairs) == 1 and said in patch.repairs[0]


def test_wrong_line_numbers_alone_do_not_move_a_hunk() -> None:
    moved = judge_patch(small.tree(), EDIT.replace(b"-6,3 +6,3", b"-600,3 +1,3"), "logic", small.policy())
    assert moved.canonical == judge_patch(small.tree(), EDIT, "logic", small.policy()).canonical


def test_the_mismatch_is_shown_exactly() -> None:
    [item] = judge_patch(
        small.tree(), EDIT.replace(b"-    return last", b"-    return lost"), "logic", small.policy()
    ).findings
    assert item.code == "GR112"
    assert "'    return lost - first\\n' at line 8, was '    return last - first\\n'" in item.reason


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/etc/passwd", "GR106"),
        ("../outside.py", "GR106"),
        (".git/hooks/pre-commit", "GR106"),
        ("src/.GIT/config", "GR106"),
        ("src/git~1/config", "GR106"),
        ("src/strategy/__pycache__/x.py", "GR106"),
        ("src/strategy/.Venv/x.py", "GR106"),
        ("src//strategy/x.py", "GR106"),
        ("src/strategy/./x.py", "GR106"),
        ("src/strategy/x.py.", "GR106"),
        ("src/strategy/aux.py", "GR106"),
        ("src/strategy/caf\u00e9.py", "GR106"),
        ("src\\strategy\\x.py", "GR106"),
        ("conftest.py", "GR110"),
        ("src/strategy/conftest.py", "GR110"),
        ("src/strategy/sub/sitecustomize.py", "GR110"),
        ("src/strategy/pytest.ini", "GR110"),
        ("src/strategy/.coveragerc", "GR110"),
        ("src/numpy.py", "GR110"),
        ("tests/generated/test_new.py", "GR110"),
        ("baseline/cases.json", "GR110"),
        ("policy.toml", "GR110"),
        ("src/strategy/evil.pth", "GR110"),
        ("src/strategy/signal/deep.py", "GR108"),
        ("src/strategy/SIGNAL.PY", "GR110"),
        ("src/strategy/Returns.py", "GR108"),
        ("src/strategy.py", "GR110"),
    ],
)
def test_a_new_file_stays_where_the_policy_lets_it(path: str, code: str) -> None:
    assert verdict(f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+LIMIT = 2\n".encode()) == [code]


def test_each_phase_writes_its_own_files_only() -> None:
    tests = b"--- /dev/null\n+++ b/tests/generated/test_new.py\n@@ -0,0 +1 @@\n+LIMIT = 2\n"
    assert verdict(tests, "tests") == [] and verdict(EDIT, "tests") == ["GR109"]


@pytest.mark.parametrize(
    "letter", ["\u202e", "\u200b", "\u2066", "\ufeff", "\u00a0", "\u0430", "\x0c", "\x1b", "\u2028"]
)
def test_no_letter_means_something_else_than_it_shows(letter: str) -> None:
    assert verdict(EDIT.replace(b"2.0 * first", b"2.0 * first  # " + letter.encode())) in (
        ["GR117"],
        ["GR116"],
    )


def test_text_may_be_other_than_ascii_where_the_policy_says_so() -> None:
    allowing = small.policy(b"").__class__
    policy = small.policy()
    from dataclasses import replace

    policy = replace(policy, code=replace(policy.code, non_ascii="text"))
    commented = EDIT.replace(b"2.0 * first", b"2.0 * first  # caf\xc3\xa9")
    named = EDIT.replace(b"2.0 * first", b"2.0 * f\xd1\x96rst")
    assert isinstance(policy, allowing)
    assert judge_patch(small.tree(), commented, "logic", policy).findings == ()
    assert [item.code for item in judge_patch(small.tree(), named, "logic", policy).findings] == ["GR117"]


def test_an_empty_new_file_is_a_file() -> None:
    name = b"src/strategy/sub/__init__.py"
    data = b"diff --git a/%b b/%b\nnew file mode 100644\nindex 0000000..e69de29\n" % (name, name)
    patch = judge_patch(small.tree(), data, "logic", small.policy())
    assert patch.findings == () and patch.result is not None
    assert patch.result["src/strategy/sub/__init__.py"] == b""


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n\n",
        b"hello",
        b"```\n```",
        b"@@ -1 +1 @@\n-a\n+b\n",
        b"--- a/x\n",
        b"\x00",
        b"\xff\xfe",
        b"diff --git a/x b/x\n",
    ],
)
def test_what_is_no_patch_is_refused(data: bytes) -> None:
    assert verdict(data)


LINES = st.lists(
    st.sampled_from([b"a\n", b"b\n", b"\n", b"  c\n", b"-- x\n", b"++ y\n", b"@@\n", b"\\ d\n"]), max_size=25
)


@settings(max_examples=300, deadline=None)
@given(LINES, LINES, st.booleans(), st.booleans())
def test_the_canonical_diff_leads_exactly_to_the_result(
    old: list[bytes], new: list[bytes], cut: bool, torn: bool
) -> None:
    before = b"".join(old).rstrip(b"\n") if torn else b"".join(old)
    after = b"".join(new).rstrip(b"\n") if cut else b"".join(new)
    base, result = Tree({"src/x.py": before, "y": b"1\n"}), Tree({"src/x.py": after, "y": b"1\n"})
    diff = canonical_diff(base, result)
    assert (diff == b"") == (before == after)
    if diff:
        repairs: list[str] = []
        files = parse_patch(diff, WIDE, repairs)
        assert repairs == [] and dict(apply_patch(base, files)) == dict(result)
        assert canonical_diff(base, apply_patch(base, files)) == diff


def test_git_applies_the_canonical_diff_to_the_same_tree(tmp_path: Path) -> None:
    base = small.tree()
    result = base.replace({"src/strategy/signal.py": base["src/strategy/signal.py"].replace(b"first", b"early")})
    result = result.replace(
        {"src/strategy/new.py": b"LIMIT = 2", "src/strategy/table.py": None, "src/strategy/no.py": b""}
    )
    base.write(tmp_path)
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    subprocess.run(["git", "apply", "-"], input=canonical_diff(base, result), cwd=tmp_path, check=True)
    assert dict(Tree.read(tmp_path)) == dict(result)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_a_diff_made_by_another_program_is_read_the_same(data: st.DataObject) -> None:
    lines = [f"line {at}\n" for at in range(30)]
    changed = list(lines)
    for at in sorted(data.draw(st.sets(st.integers(0, 29), min_size=1, max_size=6)), reverse=True):
        changed[at : at + 1] = data.draw(st.sampled_from([[], [f"new {at}\n"], [lines[at], "more\n"], ["x\n", "y\n"]]))
    text = "".join(difflib.unified_diff(lines, changed, "a/f", "b/f"))
    base = Tree({"f": "".join(lines).encode()})
    if text:
        assert apply_patch(base, parse_patch(text.encode(), WIDE, []))["f"] == "".join(changed).encode()


def test_a_link_among_the_files_stops_the_judge(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"1")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(TreeError):
        Tree.read(tmp_path)


def test_a_digest_tells_trees_apart() -> None:
    trees = [{}, {"a": b""}, {"a": b"b"}, {"ab": b""}, {"a": b"", "b": b""}, {"a": b"1\n", "b": b""}]
    assert len({Tree(files).digest() for files in trees}) == len(trees)
