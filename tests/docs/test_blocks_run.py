"""Every shell block of the README, the tutorial and the how-tos is run as a reader would run it, a page a story.

What a page leaves to its reader (a patch, a reply, a proposal's id, keys) the story fills in; an account at Alpaca is
played by the emulator, a mail address by a socket of our own. What another test runs is named in ELSEWHERE.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cache
from pathlib import Path

import pytest
import requests

from guardrails.policy import parse_policy
from oomrl.calendar import Calendar
from oomrl.domain.trading import ALPACA_PAPER
from oomrl.exchange.emulator.faults import load_faults
from oomrl.exchange.emulator.server import Running, Settings, running
from oomrl.exchange.emulator.venue import Terms
from oomrl.exchange.tape import Tape
from oomrl.settings import load
from oomrl.testing import calendar_tapes, postgres
from tests.integration.adapters import endpoint

pytestmark = pytest.mark.sqlite("a page is told as a newcomer has it; the one on PostgreSQL starts servers of its own")

ROOT = Path(__file__).resolve().parents[2]
SYMBOLS = ("AAPL", "IBM", "MSFT")
#: Lines that other tests run, and which.
ELSEWHERE = {
    "make demo": ".ci/run runs the targets; tests/acceptance/test_simulate.py the demo's command",
    "make test": ".ci/run",
    "pip install": "tests/acceptance/test_wheel.py; test_documentation.py holds the names of the extras",
    "oomrl setup": "tests/acceptance/test_wheel.py: it installs from an index",
    'python -c "from alpaca_mcp_server': "tests/integration/exchange/test_mcp_client.py starts it",
    "uv pip compile": "it needs an index; tests/acceptance/test_own_strategy.py holds what its locks are for",
}
#: Commands that serve until they are told to end.
SERVING = ("oomrl run", "oomrl page", "oomrl exchange serve", "oomrl mcp")


class Story:
    """A shell in a folder of its own, with `oomrl` and `python` on its path."""

    def __init__(self, folder: Path, **env: str) -> None:
        self.folder = folder
        programs = folder / ".bin"
        programs.mkdir(parents=True)
        for name, words in {"oomrl": f"{sys.executable} -m oomrl", "python": sys.executable}.items():
            (programs / name).write_text(f'#!/bin/sh\nexec {words} "$@"\n', "utf-8")
            (programs / name).chmod(0o755)
        path = f"{programs}{os.pathsep}{os.environ['PATH']}"
        self.env = {
            **os.environ,
            "PATH": path,
            "PYTHONPATH": str(ROOT),
            "HOME": str(folder),
            "USER": "reader",
            "LOGNAME": "reader",
            **env,
        }
        self.served: list[str] = []

    def tell(self, page: str, *, begin: int = 0, end: int | None = None, **reader: str | Callable[[], str]) -> None:
        """Run a page's blocks from one to another; `reader` fills in what the page leaves open."""
        for block in blocks(ROOT / page)[begin:end]:
            for line in block:
                self.run(line, reader)

    def run(self, line: str, reader: Mapping[str, str | Callable[[], str]] | None = None, refused: bool = False) -> str:
        """Run a line. What judges (a gate, a doctor) may also end with 1; `refused`: a refusal will do."""
        if any(line.startswith(words) for words in ELSEWHERE):
            return ""
        codes = {0, 1, 2} if refused else {0}
        for word, value in (reader or {}).items():
            if word in line:
                line = line.replace(word, value if isinstance(value, str) else value())
        if line.startswith("export "):
            for word in shlex.split(line)[1:]:
                name, _, value = word.partition("=")
                self.env[name] = self.env.get(name, value)
            return ""
        if line.startswith(SERVING):
            return self.serve(line)
        if line.startswith(("oomrl gate", "python -m guardrails check", "oomrl qualify", "oomrl doctor")):
            codes |= {1}
        done = subprocess.run(
            ["bash", "-c", line],
            cwd=self.folder,
            env=self.env,
            capture_output=True,
            text=True,
            input="\n" * 9,  # what is asked has a default
            timeout=600,
            check=False,
        )
        assert done.returncode in codes, f"{line}\n{done.stdout[-2_000:]}\n{done.stderr[-2_000:]}"
        assert "Traceback" not in done.stdout + done.stderr, line
        return done.stdout

    def serve(self, line: str) -> str:
        """Start what serves, see that it answers, and let it end in peace."""
        port = free_port()
        env = {**self.env, "OOMRL_SERVICE__LISTEN": f"127.0.0.1:{port}", "OOMRL_WEB__PORT": str(free_port())}
        process = subprocess.Popen(
            ["bash", "-c", f"exec {line}"],
            cwd=self.folder,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        addresses = {
            "oomrl run": f"http://127.0.0.1:{port}/healthz",
            "oomrl page": f"http://127.0.0.1:{env['OOMRL_WEB__PORT']}/login",
            "oomrl exchange serve": "http://127.0.0.1:8765/admin/clock",
        }
        wanted = [url for words, url in addresses.items() if line.startswith(words)]
        wanted += [addresses["oomrl page"]] if "--serve" in line else []
        try:
            for url in wanted:
                wait(lambda url=url: answers(url) or process.poll() is not None)
            if wanted:
                assert process.poll() is None, process.communicate()[0][-2_000:]
            else:  # it reads standard input, which has ended
                process.wait(120)
        finally:
            process.terminate()
            told, _ = process.communicate(timeout=120)
        assert process.returncode in (0, -signal.SIGTERM) and "Traceback" not in told, f"{line}\n{told[-2_000:]}"
        self.served.append(line)
        return told


def blocks(page: Path) -> list[list[str]]:
    """Return the commands of each shell block: `;` between blanks separates, a backslash goes on, `#` ends."""
    found = []
    for block in re.findall(r"(?ms)^ *```sh\n(.*?)^ *```", page.read_text("utf-8")):
        lines = [re.sub(r"\s+#.*$", "", line).strip() for line in block.replace("\\\n", " ").splitlines()]
        found.append([part for line in lines for part in line.split(" ; ") if part])
    return found


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def answers(url: str) -> bool:
    """Say whether something answers there, be it that there is nothing to show yet."""
    try:
        with requests.Session() as session:
            session.trust_env = False
            return session.get(url, timeout=5).status_code in (200, 404, 503)
    except requests.RequestException:
        return False


def wait(done: Callable[[], bool], seconds: float = 120) -> None:
    until = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < until, "it never answered"
        time.sleep(0.2)


def market() -> Tape:
    """Return a made-up market from 2018 on, some weeks beyond today, under the names that the pages use."""
    today = datetime.now(UTC).date()
    calendar = Calendar("XNYS", date(2017, 12, 1), today + timedelta(days=40))
    days = [hours.day for hours in calendar.between(date(2018, 1, 2), today + timedelta(days=30))]
    made = calendar_tapes.market(days, names=len(SYMBOLS))
    return Tape(made.name, SYMBOLS, made.days, made.columns)


@pytest.fixture(scope="module")
def tape() -> Tape:
    return market()


@pytest.fixture
def alpaca(tape: Tape) -> Iterator[Running]:
    """An account at the emulator whose clock is the real one."""
    calendar = Calendar("XNYS", date(2017, 12, 1), tape.days[-1] + timedelta(days=1))
    now = datetime.now(UTC)
    coming = next(hours.day for hours in calendar.hours if hours.closes > now)
    terms = Terms(cash=Decimal(100_000), rules=ALPACA_PAPER)
    with running(tape, Settings(start=coming, speed="real", terms=terms)) as exchange:
        with requests.Session() as session:
            session.trust_env = False
            to = {"to": datetime.now(UTC).isoformat()}
            session.post(f"{exchange.url}/admin/clock", json=to, timeout=30).raise_for_status()
        yield exchange


@pytest.fixture
def patch(tmp_path: Path) -> Path:
    """A patch of one parameter of the shipped strategy, as a reader would write one."""
    old = (ROOT / "strategy_repo" / "strategy.toml").read_text("utf-8").split("\n")
    at = next(number for number, line in enumerate(old) if line.startswith("no_trade_band"))
    before, after = old[at - 1 : at], old[at + 1 : at + 2]
    text = ["--- a/strategy.toml", "+++ b/strategy.toml", f"@@ -{at},3 +{at},3 @@", *(f" {line}" for line in before)]
    text += [f"-{old[at]}", "+no_trade_band = 0.3", *(f" {line}" for line in after)]
    file = tmp_path / "patch.diff"
    file.write_text("\n".join(text) + "\n", "utf-8")
    return file


@pytest.mark.timeout(900)
def test_the_readme_from_keys_to_a_halt(tmp_path: Path, alpaca: Running) -> None:
    places = {"BASE_URL": alpaca.url, "DATA_URL": alpaca.url, "STREAM_URL": alpaca.stream_url}
    story = Story(tmp_path / "shell", **{f"OOMRL_BROKER__{name}": url for name, url in places.items()})
    (story.folder / "symbols.txt").write_text("\n".join(SYMBOLS), "utf-8")
    story.env |= {"APCA_API_KEY_ID": "key", "APCA_API_SECRET_KEY": "secret"}
    story.tell("README.md", begin=1, end=2)
    assert story.served == ["oomrl run --serve --state service"]
    assert "I want to look" in (story.folder / "service" / "HALT").read_text("utf-8")
    story.run("oomrl resume --reason looked --state service")
    assert not (story.folder / "service" / "HALT").exists()
    # The how-to says the same in steps, on a state of its own.
    page = blocks(ROOT / "docs/how-to/paper-account.md")
    assert [line for block in page[1:3] for line in block][0].startswith("oomrl data download market.parquet")
    for block in page[1:]:
        for line in block:
            story.run(line.replace("--state service", "--state other"))


@pytest.mark.timeout(900)
def test_the_readme_and_the_how_to_on_an_own_strategy(tmp_path: Path) -> None:
    story = Story(tmp_path / "shell")
    story.tell("README.md", begin=2, end=3)
    story.folder = tmp_path / "shell" / "again"
    story.folder.mkdir()
    story.tell("docs/how-to/strategy.md", **{"path/to/code": "mine"})


@pytest.mark.timeout(1_800)
def test_the_tutorial_and_the_rest_of_the_readme(tmp_path: Path, patch: Path) -> None:
    story = Story(tmp_path / "shell")
    (story.folder / "answer.md").write_text("ESCALATE: no change of code mends this one.\n", "utf-8")

    @cache
    def proposal() -> str:
        rows = json.loads(story.run("oomrl review list --json --state mine"))
        return str(next(row["id"] for row in rows if row["status"] in ("passed", "approved")))

    def prompt(state: str = "prompts") -> str:
        return str(json.loads(story.run(f"oomrl prompts --json --state {state}"))[0]["id"])

    for line in [line for block in blocks(ROOT / "docs/tutorial.md") for line in block]:
        # Of the three answers to a proposal one can be given: the page gives the approval first.
        taken = re.search(" (request-changes|reject) ", line)
        story.run(line, {"PROPOSAL": proposal, "PROMPT": prompt, "PATCH": str(patch)}, refused=taken is not None)
    assert story.served == ["oomrl page --state mine"]

    repo = str(ROOT / "strategy_repo")
    reader = {"--policy FILE": f"--policy {repo}/policy.toml", "--patch FILE": f"--patch {patch}", "DIR": repo}
    reader |= {"PATCH": str(patch), "WHY": "'a drill'"}
    reader |= {"PROMPT FILE": lambda: f"{prompt('state')} answer.md", "PROPOSAL": proposal}
    for line in blocks(ROOT / "README.md")[3]:
        if line.startswith(("oomrl exchange", "oomrl qualify")):  # told in the how-tos
            continue
        on_mine = line.startswith(("oomrl rollback", "oomrl review"))
        # Changes were asked for above, so that nothing is deployed and there is nothing to roll back.
        story.run(f"{line} --state mine" if on_mine else line, reader, refused=line.startswith("oomrl rollback"))


@pytest.mark.timeout(900)
def test_the_how_tos_of_a_service(tmp_path: Path, tape: Tape, patch: Path) -> None:
    """Reviewers, alerts, disaster, models and checks, on a service with the embedded exchange."""
    story, elsewhere = Story(tmp_path / "shell"), tmp_path / "elsewhere"
    closed = Calendar().last_closed(datetime.now(UTC))
    assert closed is not None
    calendar_tapes.write(tape, story.folder / "market.parquet", closed.day)
    story.run("oomrl init --tape market.parquet --endowment 100000 --model manual --state service")
    story.run("oomrl once judge --state service")
    for line in [line for block in blocks(ROOT / "docs/how-to/reviewers.md") for line in block]:
        # `cy` was invited by nobody here, and programs get their tokens from people whose links were used.
        story.run(line, refused=line.startswith(("oomrl people confirm", "oomrl people token")))
    with endpoint.serving([endpoint.Step()]) as sink:
        story.tell("docs/how-to/alerts.md", **{"mailto://user:password@example.org": sink.url.replace("http", "json")})
        assert sink.requests
    story.env.pop("OOMRL_NOTIFY_URLS")

    def backup() -> str:
        return next(elsewhere.iterdir()).name

    head: list[str] = []

    def known_head() -> str:
        if not head:
            told = re.search(r"(\d+:[0-9a-f]{64})", story.run("oomrl audit head --state service"))
            assert told is not None
            head.append(told[1])
        return head[0]

    elsewhere.mkdir()
    reader = {"/mnt/elsewhere": str(elsewhere), "BACKUP": backup, "N:SHA256": known_head}
    lines = [line for block in blocks(ROOT / "docs/how-to/disaster.md") for line in block]
    for line in lines:
        if line.startswith("oomrl restore") and "--check" not in line:  # the disaster
            known_head()
            (story.folder / "service").rename(story.folder / "lost")
        if line.startswith("oomrl rollback"):  # nothing was deployed that could be rolled back
            story.run(line, reader, refused=True)
            continue
        story.run(line, reader)
    assert story.served == ["oomrl run --state service"]

    span = "--start phase1 --from 2006-08-01 --to 2007-06-29"
    story.run(f"oomrl simulate --model manual --reviewer person {span} --state st")
    (story.folder / "reply.md").write_text('{"root_cause": "a", "mandate": "b", "confidence": "low"}', "utf-8")
    with endpoint.serving([endpoint.chat("no")]) as model:
        story.env["OPENAI_API_KEY"] = "sk-0123456789abcdef"
        story.tell("docs/how-to/model.md", **{
            "--state STATE": "--state st", "--as NAME": "--as ada", "http://127.0.0.1:8000/v1": model.url,
            "PROMPT FILE": lambda: f"{json.loads(story.run('oomrl prompts --json --state st'))[0]['id']} reply.md",
        })  # fmt: skip
    story.run("oomrl strategy new mine")
    story.tell("docs/how-to/checks.md", PATCH=str(patch))


@pytest.mark.timeout(600)
def test_the_how_to_on_postgresql(tmp_path: Path, tape: Tape) -> None:
    if missing := postgres.missing():
        pytest.skip(f"SKIPPED: {missing}")
    story = Story(tmp_path / "shell")
    closed = Calendar().last_closed(datetime.now(UTC))
    assert closed is not None
    calendar_tapes.write(tape, story.folder / "market.parquet", closed.day)
    story.run("oomrl init --tape market.parquet --endowment 100000 --model manual --state service")
    story.run("oomrl once judge --state service")
    story.run("oomrl backup --to backups --state service")
    page = blocks(ROOT / "docs/how-to/postgresql.md")
    reader = {"BACKUP": lambda: next((story.folder / "backups").iterdir()).name}
    story.run(page[1][0])  # moving begins before the URL is set
    with postgres.server() as server:
        reader["postgresql+psycopg://oomrl:password@db.example.org/oomrl"] = lambda: server.url
        for line in [page[0][1], *page[1][1:]]:
            story.run(line, reader)
        assert str(closed.day.year) in story.run("oomrl status --state service-on-postgresql")
    shutil.rmtree(story.folder / "service")
    story.env.pop("OOMRL_DATABASE__URL")
    with postgres.server() as server:
        reader["postgresql+psycopg://oomrl:password@db.example.org/oomrl"] = lambda: server.url
        story.run("oomrl init --tape market.parquet --endowment 100000 --model manual --state service")
        for line in page[0]:
            story.run(line, reader)


TOML = [
    (str(page.relative_to(ROOT)), block)
    for page in sorted([*(ROOT / "docs" / "how-to").glob("*.md"), ROOT / "docs" / "faults.md"])
    for block in re.findall(r"(?ms)^ *```toml\n(.*?)^ *```", page.read_text("utf-8"))
]


@pytest.mark.parametrize(("page", "block"), TOML)
def test_every_block_of_settings_can_be_read(page: str, block: str, tmp_path: Path) -> None:
    file = tmp_path / "block.toml"
    if page.endswith("faults.md"):
        file.write_text(block, "utf-8")
        load_faults(file)
    elif "[code" in block:
        text = (ROOT / "strategy_repo" / "policy.toml").read_text("utf-8")
        more = block.replace("[code]\n", "").split("\n[code.imports]\n")
        for section, lines in zip(("[code]", "[code.imports]"), more, strict=True):
            assert text.count(f"\n{section}") == 1
            head, line, rest = text.partition(next(x for x in text.splitlines() if x.startswith(section)))
            text = f"{head}{line}\n{lines}\n{rest}"
        policy = parse_policy(text.encode())
        assert policy.code.imports["pandas"] == ("DataFrame", "Series") and "rolling" in policy.code.attributes
    else:
        file.write_text(block, "utf-8")
        load(file)


def test_no_page_is_left_out() -> None:
    """Each page with shell blocks has its story here; those of the repository's own upkeep are no reader's."""
    source = Path(__file__).read_text("utf-8")
    upkeep = {"docs/operations.md", "docs/how-to/dask.md"}  # the operator's; tests/acceptance/test_cluster.py runs Dask
    pages = ["README.md", *(f"docs/{p.relative_to(ROOT / 'docs')}" for p in (ROOT / "docs").rglob("*.md"))]
    told = {page for page in pages if "adr/" not in page and "changes/" not in page and blocks(ROOT / page)}
    assert {page for page in told - upkeep if f'"{page}"' not in source} == set(), "no story tells them"
