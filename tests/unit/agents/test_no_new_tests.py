from __future__ import annotations

import pytest

from oomrl.agents.problem import Problem
from oomrl.agents.reply import Kind, read_tests


def test_a_test_author_may_say_that_no_test_is_wanted() -> None:
    answer = read_tests("  NO NEW TESTS: test_cap demands it\n", {})
    assert (answer.kind, answer.patch) == (Kind.PATCH, "")


@pytest.mark.parametrize("text", ["NO NEW TESTS: but then\n--- a/x", "none wanted", "", "no new tests: it may be"])
def test_anything_else_must_be_a_diff_or_an_escalation(text: str) -> None:
    assert read_tests(text, {}).kind is Kind.UNUSABLE


@pytest.mark.parametrize("end", ["\u2028", "\x0b", "\x0c", "\x85", "\r", " "])
def test_what_hides_behind_that_answer_is_words_and_no_patch(end: str) -> None:
    hidden = end.join(("--- a/tests/test_a.py", "+++ b/tests/test_a.py", "@@ -1 +0,0 @@", "-def test_a(): assert f()"))
    answer = read_tests(f"NO NEW TESTS: test_a{end}{hidden}", {"tests/test_a.py": b"def test_a(): assert f()\n"})
    assert (answer.kind, answer.patch, answer.paths) == (Kind.PATCH, "", ())


def test_an_escalation_beside_a_diff_is_neither() -> None:
    diff = "```diff\n--- a/tests/test_a.py\n+++ b/tests/test_a.py\n@@ -1 +1 @@\n-a\n+b\n```\n"
    for text in (f"ESCALATE: the mandate cannot be met\n{diff}", f"{diff}ESCALATE: the mandate cannot be met"):
        assert read_tests(text, {"tests/test_a.py": b"a\n"}).problem is Problem.AMBIGUOUS
