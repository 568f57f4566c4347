from __future__ import annotations

import pytest

from oomrl.agents.reply import Kind, read_tests


def test_a_test_author_may_say_that_no_test_is_wanted() -> None:
    answer = read_tests("  NO NEW TESTS: test_cap demands it\n", {})
    assert (answer.kind, answer.patch) == (Kind.PATCH, "")


@pytest.mark.parametrize("text", ["NO NEW TESTS: but then\n--- a/x", "none wanted", "", "no new tests: it may be"])
def test_anything_else_must_be_a_diff_or_an_escalation(text: str) -> None:
    assert read_tests(text, {}).kind is Kind.UNUSABLE
