"""The documentation says what is there: its links lead somewhere, its commands exist, its reference is whole."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from docs import reference
from guardrails.__main__ import _parser as guardrails_parser
from guardrails.checks.codes import codes
from oomrl.cli.main import COMMANDS, oomrl
from oomrl.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
#: Pages whose commands are meant to be typed; decisions and fragments of changes tell of the past.
TYPED = [
    ROOT / name
    for name in ("README.md", "CONTRIBUTING.md", "strategy_repo/README.md", "ops/README.md", "docs/faults.md")
] + sorted(
    path for path in (ROOT / "docs").rglob("*.md") if not {"adr", "changes", "examples"}.intersection(path.parts)
)
TARGETS = set(re.findall(r"(?m)^([a-z][\w-]*(?: [a-z][\w-]*)*):", (ROOT / "Makefile").read_text()))
NAMES = {name for line in TARGETS for name in line.split()}
EXTRAS = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"])
#: What else a block may begin a line with.
ELSEWHERE = {"export", "uv", "git", "dask"}


def lines(page: Path) -> Iterator[str]:
    """Yield each command of a page's shell blocks; `;` separates, `#` ends, a backslash goes on."""
    for block in re.findall(r"(?ms)^ *```sh\n(.*?)^ *```", page.read_text("utf-8")):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            part: list[str] = []
            for word in [*words, ";"]:
                if word == ";" and part:
                    yield shlex.join(part)
                    part = []
                elif word != ";":
                    part.append(word)


TYPED_LINES = sorted({(str(page.relative_to(ROOT)), line) for page in TYPED for line in lines(page)})


def command_of(words: list[str]) -> tuple[click.Command, click.Context, list[str]]:
    """Follow the names of a command line down to the command; return it with the words that are left."""
    command: click.Command = oomrl
    context = click.Context(oomrl, info_name="oomrl")
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        inner = command.get_command(context, words[0])
        assert inner is not None, f"there is no command {words[0]!r}"
        command, context, words = inner, click.Context(inner, info_name=words[0], parent=context), words[1:]
    return command, context, words


def check(words: list[str]) -> None:
    """Say that a line of `oomrl` could be run: the command, its options, its choices, what it requires."""
    command, context, left = command_of(words)
    if isinstance(command, click.Group):
        assert left in (["--help"], ["--version"]), f"{words} names no command"
        return
    values, rest, _ = command.make_parser(context).parse_args(list(left))
    assert rest == [], f"{rest} is too much"
    for parameter in command.params:
        given = values.get(parameter.name or "")
        known = isinstance(given, str) and not isinstance(parameter, click.Argument)
        if known and isinstance(parameter.type, click.Choice):
            assert given in parameter.type.choices, f"{given!r} is none of {parameter.type.choices}"
        if parameter.required and not getattr(parameter, "prompt", None):
            assert given not in (None, ()) and not _unset(given), f"{parameter.name} is required"


def _unset(given: object) -> bool:
    return type(given).__name__ == "Sentinel"


@pytest.mark.parametrize(("page", "line"), TYPED_LINES)
def test_every_command_of_the_pages_exists(page: str, line: str) -> None:
    words = shlex.split(line)
    match words:
        case ["oomrl", *rest]:
            check(rest)
        case ["make", *rest]:
            assert {word for word in rest if "=" not in word} <= NAMES, f"{page}: {line}"
        case ["python", "-c", program]:
            compile(program, page, "exec")  # run by tests/integration/exchange/test_mcp_client.py
        case ["python", "-m", "guardrails", *rest]:
            guardrails_parser().parse_args(rest)
        case ["pip", "install", what]:
            assert set(re.findall(r"\[(.*)\]", what)) <= EXTRAS
            assert what.startswith("oomrl")
        case [first, *_]:
            assert first in ELSEWHERE, f"{page}: nobody checks {line!r}"


def test_the_check_of_commands_refuses_what_does_not_exist() -> None:
    check(["review", "approve", "P-1", "--reason", "x"])
    wrong = (
        ["simulat"],
        ["simulate", "--modell", "offline"],
        ["simulate", "--model", "gpt"],
        ["review", "approve", "--reason", "x"],
        ["halt"],
        ["halt", "now", "--reason", "x"],
    )
    for words in wrong:
        with pytest.raises((AssertionError, click.ClickException)):
            check(words)


def test_every_command_and_every_option_says_what_it_is_for() -> None:
    silent = [name for name, command in reference.all_commands() if not (command.help or "").strip()]
    for name, command in reference.all_commands():
        options = [one for one in command.params if isinstance(one, click.Option)]
        silent += [f"{name} {one.opts[0]}" for one in options if not (one.help or one.prompt)]
    assert silent == []


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site") / "docs"
    reference.stage(folder)
    return folder


def test_every_link_leads_somewhere(site: Path) -> None:
    wrong = []
    for page in sorted(site.rglob("*.md")):
        text = re.sub(r"(?ms)^ *```.*?^ *```|^    .*?$|`[^`\n]*`", "", page.read_text("utf-8"))
        for target, anchor in re.findall(r"\]\(([^)#\s]*)(#[^)\s]*)?\)", text):
            if target.startswith(("http", "mailto:")):
                continue
            found = (page.parent / target).resolve() if target else page
            if not found.is_file() or (anchor and anchor[1:] not in _anchors(found)):
                wrong.append(f"{page.relative_to(site)}: {target}{anchor}")
    assert wrong == []


def _anchors(page: Path) -> set[str]:
    heads = re.findall(r"(?m)^#+ (.*)$", page.read_text("utf-8"))
    return {re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", head).strip().lower()) for head in heads}


def test_every_page_is_in_the_navigation_and_every_entry_is_a_page(site: Path) -> None:
    named = set(re.findall(r"(?m)^ +- .*: (\S+\.md)$", (ROOT / "mkdocs.yml").read_text("utf-8")))
    pages = {path.relative_to(site).as_posix() for path in site.rglob("*.md")}
    assert named <= pages
    assert {page for page in pages - named if not page.startswith("adr/")} == set()


def test_the_reference_names_every_command_setting_code_and_metric(site: Path) -> None:
    commands = (site / "reference/commands.md").read_text()
    assert {name for name in COMMANDS if f"## oomrl {name}" not in commands} == set()
    settings = (site / "reference/settings.md").read_text()
    defaults = {name: section for name, section in Settings().model_dump().items() if name != "accounts"}
    for name, section in defaults.items():
        body = settings.split(f"## [{name}]\n")[1].split("\n## ")[0]
        assert {key for key in section if f"| `{key}` |" not in body} == set()
    findings = (site / "reference/findings.md").read_text()
    assert {code for code in codes() if f"## {code}: " not in findings} == set()
    metrics = (site / "reference/metrics.md").read_text()
    alarmed = set(re.findall(r"\boomrl_\w+", (ROOT / "ops/prometheus/alerts.yml").read_text()))
    bare = {re.sub(r"_(total|bucket|sum|count)$", "", name) for name in alarmed}
    assert {name for name in bare if name not in metrics} == set()
    assert "/api/v1/" in (site / "reference/api.md").read_text()
    assert (site / "reference/schemas.md").read_text().count("```json") == len(reference.SCHEMAS)


def test_the_readme_shows_a_small_picture_that_is_there() -> None:
    pictures = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", (ROOT / "README.md").read_text("utf-8"))
    assert pictures
    for name in pictures:
        assert (ROOT / name).read_bytes().startswith(b"\x89PNG")
        assert (ROOT / name).stat().st_size < 100_000
