"""The manual model on the page: a prompt of any role is read and answered there, once, and by name."""

from __future__ import annotations

import pytest

from oomrl.adapters.manual_model import ManualModel
from oomrl.domain.records import Prompt
from oomrl.ports import Context
from tests.integration.web.conftest import Page
from tests.integration.web.test_hostile import HOSTILE, inert
from tests.states import AT, RUN

CONTEXT = Context({}, "", {}, {}, ())


def ask(page: Page, role: str, text: str = "Mend it.") -> str:
    prompt = Prompt(f"{role.replace('_', '-')}-1-abc", RUN, "diag-1", role, 1, text, AT, f"{role}/1")
    with page.made.store.begin() as work:
        work.prompts.ask(prompt)
    ManualModel(page.made.state).answer(prompt.id, role, text, CONTEXT)
    return prompt.id


@pytest.mark.parametrize("role", ["analyst", "test_author", "coder", "critic"])
def test_a_prompt_of_any_role_is_answered_on_the_page(page: Page, role: str) -> None:
    name = ask(page, role, f"What {HOSTILE} wants")
    browser = page.as_("ann")
    assert f"/prompts/{name}" in browser.get("/").text
    shown = browser.get(f"/prompts/{name}").text
    inert(shown)
    assert "What &lt;script" in shown and "<textarea" in shown
    assert browser.act(f"/prompts/{name}/reply", text=f"A diff\r\nof {HOSTILE}").status_code == 303
    answered = ManualModel(page.made.state).answer(name, role, f"What {HOSTILE} wants", CONTEXT)
    assert answered is not None and (answered.text, answered.model) == (f"A diff\nof {HOSTILE}", "manual <ann>")
    assert "<textarea" not in browser.get(f"/prompts/{name}").text
    assert browser.act(f"/prompts/{name}/reply", text="Another one.").status_code == 422
    with page.made.store.read() as view:
        assert ("ann", "reply", name) in [(done.who, done.act, done.subject) for done in view.people.acts()]


def test_what_is_no_answer_or_no_prompt_of_the_manual_model_is_refused(page: Page) -> None:
    name = ask(page, "coder")
    browser = page.as_("ann")
    for text in ("", "  \n ", "x\0y"):
        assert browser.act(f"/prompts/{name}/reply", text=text).status_code == 422
    assert browser.act("/prompts/coder-9-none/reply", text="x").status_code == 404
    assert browser.act("/prompts/..%2Fkeys/reply", text="x").status_code == 404
    assert page.as_("vic").get(f"/prompts/{name}").status_code == 200
    assert "<textarea" not in page.as_("vic").get(f"/prompts/{name}").text
    with page.made.store.begin() as work:
        work.prompts.ask(Prompt("coder-2-abc", RUN, "diag-1", "coder", 2, "For a model.", AT, "coder/1"))
    assert "<textarea" not in browser.get("/prompts/coder-2-abc").text
    assert browser.act("/prompts/coder-2-abc/reply", text="x").status_code == 404
