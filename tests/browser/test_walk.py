"""Walk the whole way in Chromium: from the set-up link to a deployment by two people, and back.

The proposal is a real one: the loop traded, lost, and the gate passed its repair. The manual model's answers are given
by command, as a person would.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from oomrl.web.serving import serving
from tests import databases
from tests.states import RUN, made_up

ROOT = Path(__file__).resolve().parents[2]
SHOTS = ROOT / "build" / "screenshots"
PASSWORD = "correct horse battery"
SPAN = ("--start", "phase1", "--seed", "7", "--from", "2006-03-01", "--to", "2006-03-31")
DEMO = ("--settings", str(ROOT / "docs" / "examples" / "demo.toml"))
WEB = {"web": {"port": 0, "requests_a_minute": 100_000}}


def command(*arguments: str | Path, **env: str) -> str:
    given = list(map(str, arguments))
    done = subprocess.run(
        [sys.executable, "-m", "oomrl", *given],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), **databases.of_command(given), **env},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@contextmanager
def served(state: Path) -> Iterator[tuple[str, str]]:
    """Serve a state directory and give its address and the set-up link (empty once there is an account)."""
    said: list[str] = []
    with serving(state, databases.settings(state, WEB), RUN, say=said.append) as url:
        link = next((line.rpartition(": ")[2] for line in said if "/welcome/" in line), "")
        yield url, link


def new_page(chromium: Browser) -> Page:
    page = chromium.new_context(viewport={"width": 1280, "height": 900}).new_page()
    page.set_default_timeout(60_000)
    page.trouble = []  # type: ignore[attr-defined]
    page.on("pageerror", lambda error: page.trouble.append(str(error)))  # type: ignore[attr-defined]
    page.on("console", lambda m: page.trouble.append(m.text) if m.type == "error" else None)  # type: ignore[attr-defined]
    return page


def sound(page: Page) -> None:
    """Fail on serious violations that axe-core finds, and on anything that the browser complained of."""
    found = Axe().run(page).response["violations"]
    serious = [(one["id"], one["nodes"][0]["html"][:160]) for one in found if one["impact"] in ("serious", "critical")]
    assert serious == [], page.url
    assert page.trouble == [], page.url  # type: ignore[attr-defined]


def set_password(page: Page, link: str, name: str = "") -> None:
    page.goto(link)
    if name:
        page.get_by_label("Name").fill(name)
    page.get_by_label("Password, at least 12 characters").fill(PASSWORD)
    page.get_by_label("The same again").fill(PASSWORD)
    page.get_by_role("button", name="Set it and log in").click()
    expect(page.get_by_role("heading", name="What waits for you")).to_be_visible()


@pytest.fixture(scope="module")
def repair(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a patch that passes the gate for the first loss: the offline repairer's, which waits for a person."""
    state = tmp_path_factory.mktemp("offline") / "state"
    waiting = json.loads(command("simulate", *SPAN, *DEMO, "--reviewer", "person", "--json", "--state", state))
    shown = json.loads(command("review", "show", waiting["subject"], "--state", state, "--json"))
    patch: str = shown["proposal"]["logic_patch"]
    return patch


class Loop:
    """The simulation of one state directory, with a person behind the manual model."""

    def __init__(self, state: Path, folder: Path) -> None:
        self.state, self.reply = state, folder / "reply.txt"

    def on(self, patch: str) -> dict[str, str]:
        """Go on to the next review or to the end, answering prompts on the way."""
        options = ("--model", "manual", "--reviewer", "person", "--json", "--state", self.state)
        while True:
            ended = json.loads(command("simulate", *SPAN, *DEMO, *options))
            if ended.get("waiting") != "prompt":
                return ended  # type: ignore[no-any-return]
            tests = ended["subject"].startswith("test-author")
            self.reply.write_text("NO NEW TESTS: test_an_order_is_capped" if tests or not patch else patch, "utf-8")
            command("reply", ended["subject"], self.reply, "--state", self.state, "--as", "paul", **self.token)

    token: dict[str, str] = {}  # noqa: RUF012


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_from_the_set_up_link_to_a_deployment_by_two_people_and_back(
    chromium: Browser, repair: str, tmp_path: Path
) -> None:
    loop = Loop(tmp_path / "state", tmp_path)
    first = loop.on(repair)["subject"]
    with served(loop.state) as (url, link):
        # The set-up link makes the administrator, who invites two reviewers and an operator.
        admin = new_page(chromium)
        set_password(admin, link, "Ada")
        admin.get_by_role("link", name="People").click()
        people = {}
        for name, role in (("Ann", "reviewer"), ("Bob", "reviewer"), ("Olga", "operator")):
            form = admin.locator("form", has=admin.get_by_role("heading", name="Invite"))
            form.get_by_label("Name").fill(name)
            form.get_by_label("Role").select_option(role)
            form.get_by_role("button", name="Invite").click()
            people[name] = new_page(chromium)
            set_password(people[name], admin.locator(".secret").inner_text())
        ann, bob, olga = people["Ann"], people["Bob"], people["Olga"]
        # Whom Ada let in counts as one person with her, until the host says that there are others behind the accounts.
        admin.goto(f"{url}/people")
        expect(admin.get_by_text("counts as one with them")).to_have_count(3)
        sound(admin)
        for name in ("Ann", "Bob"):
            command("people", "confirm", name, "--as", "root", "--state", loop.state)
        admin.reload()
        expect(admin.get_by_text("confirmed by root (host)")).to_have_count(2)
        loop.token = {"OOMRL_TOKEN": token_of(admin, url)}

        # Ann reads: the diff comes before an approval.
        ann.locator("[data-row] a").first.click()
        expect(ann.get_by_role("heading", name="What lost money")).to_be_visible()
        expect(ann.get_by_role("button", name="Approve")).to_be_disabled()
        sound(ann)
        ann.get_by_role("button", name="Open the diff").click()
        expect(ann.locator(".diff ins").first).to_be_visible()
        expect(ann.get_by_role("button", name="Approve")).to_be_enabled()
        ann.get_by_label("Lay out").select_option("unified")
        expect(ann.locator(".diff.unified").first).to_be_visible()
        ann.get_by_label("White space").select_option("hide")
        sound(ann)

        # A comment on a line stands in the way; a request for changes carries it into the next prompt.
        ann.locator("a[aria-label^='Comment on line']").first.click()
        say = ann.locator("tr.said form").first
        say.get_by_role("textbox").fill("Say in a comment why the plan's share is used.")
        say.get_by_role("button", name="Comment").click()
        expect(ann.get_by_role("button", name="Approve")).to_be_disabled()
        expect(ann.locator("article.remark.open").first).to_contain_text("why the plan's share")
        ann.get_by_label("Reason", exact=True).fill("Please answer the comment on liquidity.py")
        ann.get_by_role("button", name="Request changes").click()
        expect(ann.get_by_text("Closed: changes requested")).to_be_visible()

        # The new revision answers the comment (by Ada's token, so by Ada); the page says that there is something new.
        # It is the same patch with an answer in words: another patch would be a second try for the promotion rule,
        # which the evidence of these few sessions does not carry.
        second = loop.on(f"The plan's own share is meant to be used.\n\n```diff\n{repair}```\n")["subject"]
        assert second != first
        asked = json.loads(command("review", "show", second, "--state", loop.state, "--json", **loop.token))
        assert asked["reviews"] == [] and asked["proposal"]["author"] == "manual <Ada>"
        expect(ann.locator("#news")).to_be_visible()

        # Two people approve, each after the diff; Ann first looks at what changed since her request.
        for number, page in enumerate((ann, bob)):
            page.goto(f"{url}/proposals/{second}")
            page.get_by_role("button", name="Open the diff").click()
            expect(page.locator("#diff")).to_contain_text("Nothing differs from the revision that was sent back")
            page.get_by_label("Reason", exact=True).fill("Reads well; the replay agrees.")
            page.get_by_role("button", name="Approve").click()
            expect(page.locator(".facts-line")).to_contain_text(f"{number + 1} of 2 approvals")
        # Bob takes his back, thinks again, and gives it.
        bob.get_by_label("Why you take your approval back").fill("let me look once more")
        bob.get_by_role("button", name="Withdraw my approval").click()
        expect(bob.locator(".facts-line")).to_contain_text("1 of 2 approvals")
        bob.get_by_label("Reason", exact=True).fill("Looked once more.")
        bob.get_by_role("button", name="Approve").click()
        expect(bob.locator(".facts-line")).to_contain_text("2 of 2 approvals")
        loop.on("")

        # Deployed; the operator takes it back, and the lineage shows all three.
        bob.goto(f"{url}/proposals/{second}")
        expect(bob.locator(".facts-line")).to_contain_text("deployed")
        expect(bob.locator(".facts-line")).to_contain_text("2 of 2 approvals")
        expect(bob.locator("#decide")).not_to_contain_text("void")
        olga.goto(f"{url}/revisions")
        expect(olga.locator(".tree > li")).to_have_count(2)
        sound(olga)
        olga.get_by_text("Roll back", exact=True).first.click()
        olga.get_by_label("Reason").fill("a drill")
        olga.get_by_role("button", name="Roll back").click()
        expect(olga.locator(".chain > li")).to_have_count(3)
        command("audit", "verify", "--state", loop.state)
        for page in (admin, ann, bob, olga):
            assert page.trouble == []  # type: ignore[attr-defined]
            page.context.close()


def token_of(page: Page, url: str) -> str:
    """Make a token with every right and return it."""
    page.goto(f"{url}/me")
    page.get_by_label("What it is for").fill("commands")
    for box in page.locator("[name=scopes]").all():
        box.check()
    page.get_by_role("button", name="Make it").click()
    return page.locator(".secret").inner_text()


PATHS = (
    "/", "/proposals", "/account", "/account/positions", "/account/orders", "/account/fills", "/account/shortfall",
    "/account/ledger", "/account/bills", "/account/losses", "/revisions", "/account/arenas", "/account/audit",
    "/account/settings", "/people", "/me", "/diagnostics/diag-1",
)  # fmt: skip


def test_every_page_is_accessible_fits_a_phone_and_is_kept_as_a_picture(chromium: Browser, tmp_path: Path) -> None:
    made = made_up(tmp_path / "state", sessions=60)
    made.loss()
    proposal = made.proposal(
        changes={"strategy.toml": made.tree["strategy.toml"].replace(b"exposure = 0.98", b"exposure = 0.9")}
    )
    made.store.close()
    SHOTS.mkdir(parents=True, exist_ok=True)
    with served(made.state) as (url, link):
        page = new_page(chromium)
        page.goto(link)
        sound(page)
        page.screenshot(path=SHOTS / "welcome.png")
        set_password(page, link, "Ada")
        page.goto(f"{url}/proposals/{proposal.id}")
        page.get_by_role("button", name="Open the diff").click()
        for path in (*PATHS, f"/proposals/{proposal.id}", f"/revisions/{made.revision}"):
            name = path.strip("/").replace("/", "-").partition("-" + made.revision[:8])[0] or "queue"
            for scheme in ("light", "dark"):
                page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
                for device, size in (("desktop", (1280, 900)), ("phone", (390, 844))):
                    page.set_viewport_size({"width": size[0], "height": size[1]})
                    page.goto(url + path)
                    wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
                    assert wide <= 0, (path, device, wide)
                    page.screenshot(path=SHOTS / f"{name}-{scheme}-{device}.png", full_page=True)
                sound(page)
        page.context.close()


def test_the_page_works_by_keyboard_alone(chromium: Browser, tmp_path: Path) -> None:
    made = made_up(tmp_path / "state")
    made.loss()
    proposal = made.proposal()
    made.store.close()
    with served(made.state) as (url, link):
        page = new_page(chromium)
        set_password(page, link, "Ada")
        page.wait_for_load_state("load")  # the keys' script runs once the page is parsed
        page.keyboard.press("Tab")
        expect(page.get_by_text("Skip to content")).to_be_focused()
        page.keyboard.press("j")
        page.keyboard.press("o")
        page.wait_for_url(f"**/proposals/{proposal.id}")
        page.keyboard.press("d")
        page.keyboard.press("Enter")
        expect(page.locator(".diff").first).to_be_visible()
        page.keyboard.press("r")
        page.keyboard.type("Read with care.")
        expect(page.get_by_label("Reason", exact=True)).to_have_value("Read with care.")
        page.keyboard.press("Tab")
        expect(page.get_by_role("button", name="Approve")).to_be_focused()
        ring = page.evaluate("getComputedStyle(document.activeElement).outlineWidth")
        assert float(ring.removesuffix("px")) >= 2
        page.keyboard.press("Enter")
        expect(page.locator(".facts-line")).to_contain_text("approved")
        page.keyboard.press("?")
        expect(page.get_by_role("dialog")).to_be_visible()
        assert page.trouble == []  # type: ignore[attr-defined]
        page.context.close()
