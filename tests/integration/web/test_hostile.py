"""What comes from strategies, models, brokers and people is shown inert, and what hides or reorders is flagged."""

from __future__ import annotations

import re
from decimal import Decimal
from html.parser import HTMLParser

import pytest

from oomrl.domain.ledger import Book, Entry, Kind
from oomrl.domain.people import RIGHTS, Person, Role
from oomrl.domain.records import Mark, SessionRecord
from tests.integration.web.conftest import Page
from tests.states import FIRST, RUN, MadeUp

SCRIPT = "<script>alert(1)</script>"
HOSTILE = f"{SCRIPT}\"'><img src=x onerror=alert(2)><a href='javascript:alert(3)'>x</a>{{{{7*7}}}}"
BIDI = "access = \u202e'resu'\u2066 # check\u2069"
ANN = Person("ann", RIGHTS[Role.REVIEWER])


class Seen(HTMLParser):
    """Collect what a browser would run or load."""

    def __init__(self) -> None:
        super().__init__()
        self.scripts: list[str] = []
        self.dangers: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "script":
            self.scripts.append(str(given.get("src")))
        if tag in ("img", "iframe", "object", "embed", "base", "style"):
            self.dangers.append(tag)
        for name, value in given.items():
            url = (value or "").strip().lower()
            if name.startswith("on") or name == "style" or url.startswith(("javascript:", "data:")):
                self.dangers.append(f"{tag} {name}={value}")


def inert(text: str) -> None:
    seen = Seen()
    seen.feed(text)
    assert seen.dangers == []
    assert all(source.startswith("/static/") for source in seen.scripts)


@pytest.fixture
def hostile(page: Page) -> Page:
    made: MadeUp = page.made
    made.loss(
        2,
        evidence=HOSTILE,
        diagnostics={
            "root_cause": HOSTILE,
            "causes": [{"code": HOSTILE, "share": 0.5, "evidence": HOSTILE, "module": HOSTILE, "function": HOSTILE}],
            "execution_log": [
                {"day": "2020-01-02", "symbol": HOSTILE, "side": "buy", "shares": 1.0, "price": 1.0, "cost": 1.0,
                 "note": HOSTILE}
            ],
            "exceptions": [f"Traceback: {HOSTILE} {BIDI}"],
        },
        names=[{"symbol": HOSTILE, "pnl": -1.0}],
    )  # fmt: skip
    source = made.tree["src/strategy/ranks.py"]
    changed = {"src/strategy/ranks.py": source + f'\n# {HOSTILE}\nX = "{BIDI}"\n'.encode()}
    page.proposal = made.proposal(  # type: ignore[attr-defined]
        "diag-2", changes=changed, explanation=HOSTILE + BIDI, reply=HOSTILE + BIDI, author="gpt <x@y>"
    )
    day = FIRST.replace(year=2021)
    line = Entry("hostile", day, Kind.BUY, Book.BOTH, Decimal("-1.00"), "<b>X</b>", note=HOSTILE)
    with made.store.begin() as work:
        mark = Mark(day, Decimal("1.00"), Decimal("1.00"), Decimal("1.00"), Decimal("0.00"), state="active")
        work.sessions.save(RUN, SessionRecord(mark=mark, entries=[line]))
    return page


def test_scripts_in_every_foreign_text_stay_text(hostile: Page) -> None:
    browser, proposal = hostile.as_("ann"), hostile.proposal  # type: ignore[attr-defined]
    hostile.site.desk.look(ANN, proposal.id)
    hostile.site.desk.comment(ANN, proposal.id, HOSTILE + BIDI, "src/strategy/ranks.py", 3)
    hostile.as_("olga").act("/halt", reason=HOSTILE)
    for path in (f"/proposals/{proposal.id}", "/diagnostics/diag-2", "/", "/proposals", "/account/ledger", "/account",
                 "/account/audit", f"/account/ledger?words={HOSTILE}", f"/account/ledger?symbol={HOSTILE}",
                 f"/proposals/{proposal.id}/say?path={HOSTILE}&line=3", "/account/losses"):  # fmt: skip
        answer = browser.get(path)
        assert answer.status_code == 200, path
        inert(answer.text)


def test_reordering_characters_are_marked_and_flagged_wherever_they_stand(hostile: Page) -> None:
    browser, proposal = hostile.as_("ann"), hostile.proposal  # type: ignore[attr-defined]
    hostile.site.desk.look(ANN, proposal.id)
    text = browser.get(f"/proposals/{proposal.id}").text
    assert not re.search("[\u202a-\u202e\u2066-\u2069]", text)
    assert 'title="RIGHT-TO-LEFT OVERRIDE">U+202E</span>' in text
    assert text.count('class="flag"') >= 3
    assert not re.search("[\u202a-\u202e\u2066-\u2069]", browser.get("/diagnostics/diag-2").text)


def test_a_diff_of_five_megabytes_is_answered_cut_and_flagged(page: Page) -> None:
    lines = "".join(f"+line {number} {'x' * 80}\n" for number in range(55_000))
    path = "src/strategy/big.py"
    head = f"diff --git a/{path} b/{path}\nnew file mode 100644\n--- /dev/null\n+++ b/{path}\n@@ -0,0 +1,55000 @@\n"
    patch = head + lines
    assert len(patch) > 5_000_000
    proposal = page.made.proposal(patch=patch, verdict="refuse")
    browser = page.as_("ann")
    browser.act(f"/proposals/{proposal.id}/look")
    answer = browser.get(f"/proposals/{proposal.id}")
    assert answer.status_code == 200 and len(answer.text) < 600_000
    assert "far beyond what a person reads" in answer.text or "does not apply" in answer.text
    assert len(browser.get(f"/proposals/{proposal.id}/patch").text) == len(patch)


def test_a_large_file_is_shown_without_marks_and_says_so() -> None:
    from oomrl.web.diff import file_diff

    before = b"x = 1\n" * 60_000
    shown = file_diff("src/strategy/big.py", before, before.replace(b"1", b"2", 5) + b"y = 2\n")
    assert any("large file" in flag for flag in shown.flags) and len(shown.rows) < 2_000


def test_a_patch_is_saved_as_a_file_that_no_browser_renders(hostile: Page) -> None:
    answer = hostile.as_("ann").get(f"/proposals/{hostile.proposal.id}/patch")  # type: ignore[attr-defined]
    assert answer.headers["content-type"].startswith("text/plain")
    assert answer.headers["content-disposition"].startswith("attachment")
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_a_csv_cell_is_no_formula(page: Page) -> None:
    with page.made.store.begin() as work:
        work.ledger.post(RUN, [Entry("=1+1", FIRST, Kind.BUY, Book.BOTH, Decimal("-1.00"), note="=cmd|' /C calc'!A0")])
    text = page.as_("ann").get("/export/ledger.csv").text
    assert "'=cmd|" in text and "\n=" not in text


def test_settings_hide_secrets(page: Page) -> None:
    from oomrl.web.tables import _hidden

    assert _hidden("database.url", "postgresql://me:word@host/db") == "postgresql://(hidden)@host/db"
    assert _hidden("x.api_key", "abc") == "(hidden)"
    assert _hidden("model.api_key_env", "OPENAI_API_KEY") == "OPENAI_API_KEY"


def test_a_refusal_quotes_without_running(page: Page) -> None:
    answer = page.as_("ann").get(f"/proposals/{SCRIPT}")
    assert answer.status_code == 404
    inert(answer.text)
