from __future__ import annotations

import pytest

from oomrl.agents.drafts import Critique, Draft, read_critique, read_draft
from oomrl.agents.forms import FORMS
from oomrl.agents.problem import Problem, Unusable

DRAFT = '{"root_cause": "It trades daily.", "mandate": "Trade weekly.", "confidence": "high"}'


@pytest.mark.parametrize(
    "text",
    [DRAFT, f"```json\n{DRAFT}\n```", f"Here:\r\n\r\n```json\r\n{DRAFT}\r\n```\r\nDone.", f"```\n{DRAFT}\n```\n"],
)
def test_a_draft_is_found_in_its_wrapping(text: str) -> None:
    draft = read_draft(text)
    assert (draft.root_cause, draft.mandate, draft.confidence) == ("It trades daily.", "Trade weekly.", "high")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", Problem.EMPTY),
        ("I think it trades too often.", Problem.MALFORMED),
        ("{" * 3000, Problem.MALFORMED),
        (f"```json\n{DRAFT}\n```\n```json\n{DRAFT}\n```", Problem.AMBIGUOUS),
        ('{"root_cause": "x"}', Problem.MALFORMED),
        (DRAFT.replace("high", "certain"), Problem.MALFORMED),
        (DRAFT.replace("}", ', "approve": true}'), Problem.MALFORMED),
        ("[]", Problem.MALFORMED),
        ('{"root_cause": "", "mandate": "x"}', Problem.MALFORMED),
    ],
)
def test_what_is_no_draft_is_said(text: str, problem: Problem) -> None:
    with pytest.raises(Unusable) as caught:
        read_draft(text)
    assert caught.value.problem is problem and caught.value.message.startswith("Expected")


def test_an_analyst_may_escalate_in_words_or_in_its_form() -> None:
    for text in (
        "ESCALATE: no code could have seen this coming",
        '{"root_cause": "", "mandate": "", "confidence": "low", "escalate": "no code could have seen this coming"}',
    ):
        assert read_draft(text).escalate == "no code could have seen this coming"
    for text in ("ESCALATE:", DRAFT.replace("}", ', "escalate": "or not at all"}')):
        with pytest.raises(Unusable):
            read_draft(text)


@pytest.mark.parametrize(("role", "reader"), [("analyst", Draft), ("critic", Critique)])
def test_what_a_form_asks_for_is_what_is_read(role: str, reader: type[Draft] | type[Critique]) -> None:
    assert set(FORMS[role].schema["properties"]) == set(reader.model_fields)


def test_a_critique_may_be_empty_but_not_invented() -> None:
    assert read_critique('{"summary": "Nothing found.", "objections": []}').objections == ()
    with pytest.raises(Unusable, match="severity"):
        read_critique('{"objections": [{"severity": "awful", "text": "x"}]}')


def test_a_reply_of_nothing_but_fences_is_read_at_once() -> None:
    """Read in linear time: 400,000 characters took over a minute, and the page reads them again at each view."""
    for text in ("```json\n" * 50_000, "```\n" * 100_000, "```json\n" + "``` \n\n" * 60_000):
        with pytest.raises(Unusable):
            read_draft(text)
    fenced = "Here:\n```json \n" + '{"summary": "Nothing found."}' + "\n```\t\nThat is all.\n"
    assert read_critique(fenced).summary == "Nothing found."
