from __future__ import annotations

import time
from collections.abc import Mapping

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from guardrails.patch import PatchError, apply_patch, canonical_diff, parse_patch
from guardrails.policy import Limits
from guardrails.tree import Tree
from oomrl.agents.problem import Problem
from oomrl.agents.reply import Answer, Kind, read_reply
from tests.unit.agents.replies import CASES, TOML_DIFF, TREE, Case, fence


def strict(tree: Mapping[str, bytes], patch: str) -> str:
    """Apply as the gate does: exactly, or not at all."""
    try:
        files = parse_patch(patch.encode(), Limits(), [])
        return canonical_diff(Tree(tree), apply_patch(Tree(tree), files)).decode()
    except PatchError as error:
        raise ValueError(str(error)) from error


def applied(patch: str) -> dict[str, bytes]:
    return dict(apply_patch(Tree(TREE), parse_patch(patch.encode(), Limits(), [])))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_each_reply_is_handled_as_the_table_says(case: Case) -> None:
    answer = read_reply(case.text, TREE, case.finish, strict)
    assert (answer.kind, answer.problem) == (case.kind, case.problem), answer
    for words in case.repairs:
        assert any(words in repair for repair in answer.repairs), answer.repairs
    if case.kind is Kind.PATCH:
        expected = {**TREE, **{path: None if text is None else text.encode() for path, text in case.after.items()}}
        assert applied(answer.patch) == {path: data for path, data in expected.items() if data is not None}
        assert answer.paths == tuple(sorted(case.after))
    else:
        assert answer.patch == ""
        assert answer.message


def test_the_corpus_is_a_table_of_different_cases() -> None:
    assert len({case.name for case in CASES}) == len({(case.text, case.finish) for case in CASES}) == len(CASES)
    assert {case.problem for case in CASES} == set(Problem)


def test_a_clean_reply_needs_no_repair() -> None:
    answer = read_reply("Decide weekly.\n\n" + fence(TOML_DIFF) + "That is all.\n", TREE)
    assert answer.repairs == ()
    assert answer.patch == TOML_DIFF
    assert answer.explanation == "Decide weekly.\nThat is all."


def test_a_mismatch_says_what_was_expected_where() -> None:
    answer = read_reply(fence(TOML_DIFF.replace(" [strategy]", " [stratagem]")), TREE, apply=strict)
    assert answer.problem is Problem.MISMATCH and "stratagem" in answer.message


def holds(answer: Answer) -> None:
    """What is true of every answer whatever the reply was."""
    if answer.kind is Kind.PATCH:
        assert answer.paths and set(answer.paths) <= {
            path for path in answer.paths if ".." not in path and path[0] != "/"
        }
        again = read_reply(answer.patch, TREE, apply=strict)
        assert (again.kind, again.patch) == (Kind.PATCH, answer.patch)
        assert strict(TREE, answer.patch) == answer.patch
    else:
        assert answer.patch == "" and answer.message


_LINES = sorted({line for case in CASES for line in case.text[:2_000].split("\n")})


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.sampled_from(_LINES), max_size=40).map("\n".join))
@example("```diff\n```")
def test_any_shuffle_of_the_corpus_lines_is_answered(text: str) -> None:
    holds(read_reply(text, TREE, apply=strict))


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(CASES), st.data())
def test_any_mutation_of_a_case_is_answered(case: Case, data: st.DataObject) -> None:
    lines = case.text[:5_000].split("\n")
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(lines)))
        action = data.draw(st.sampled_from(["drop", "double", "insert", "cut"]))
        if action == "insert":
            lines.insert(at, data.draw(st.one_of(st.sampled_from(_LINES), st.text(max_size=20))))
        elif at < len(lines):
            if action == "drop":
                del lines[at]
            elif action == "double":
                lines.insert(at, lines[at])
            else:
                lines[at] = lines[at][: data.draw(st.integers(0, 20))]
    holds(read_reply("\n".join(lines), TREE, apply=strict))


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.text())
def test_any_text_is_answered(text: str) -> None:
    holds(read_reply(text, TREE, apply=strict))


@pytest.mark.parametrize("head", ["@@ -1,399000 +1,399001 @@", "@@"])
@pytest.mark.parametrize("closing", ["```", ""])
def test_a_reply_of_blank_lines_is_read_in_a_breath(head: str, closing: str) -> None:
    """Reading is linear in the reply: looking ahead from each blank line anew would take hours of the loop's time."""
    fence_ = "```diff\n" if closing else ""
    text = (
        f"{fence_}--- a/src/strategy/sizing.py\n+++ b/src/strategy/sizing.py\n{head}\n"
        + "\n" * 399_000
        + f"+x\n{closing}"
    )
    began = time.process_time()
    read_reply(text, TREE)
    assert time.process_time() - began < 30.0
