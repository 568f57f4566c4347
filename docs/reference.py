"""Lay out the documentation for its generator: docs/ as it is, and a reference that is made from the code.

python -m docs.reference build/docs
"""

from __future__ import annotations

import inspect
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
from fastapi import FastAPI
from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from guardrails.checks.codes import codes
from oomrl.cli.main import COMMANDS, oomrl
from oomrl.daemon.metrics import Metrics
from oomrl.settings import Settings
from oomrl.web import api

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
SCHEMAS = {
    "Diagnostic": DOCS / "schemas" / "diagnostic.schema.json",
    "Verdict": ROOT / "guardrails" / "schemas" / "verdict.schema.json",
    "Worker frames": ROOT / "guardrails" / "schemas" / "worker_frames.schema.json",
}
#: Pages that live beside what they describe, and where the site shows them.
BESIDE = {
    "guardrails/README.md": "explanation/gate.md",
    "strategy_repo/README.md": "reference/strategy.md",
    "ops/README.md": "operations.md",
}
MADE = "This page is made from the code.\n\n"


def all_commands() -> Iterator[tuple[str, click.Command]]:
    """Yield each command that does something, by its full name."""

    def walk(name: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
        if isinstance(command, click.Group):
            context = click.Context(command)
            for inner in command.list_commands(context):
                found = command.get_command(context, inner)
                assert found is not None
                yield from walk(f"{name} {inner}", found)
        else:
            yield name, command

    yield from walk("oomrl", oomrl)


def commands() -> str:
    """Return the page of all commands."""
    parts = [
        f"# Commands\n\n{MADE}Exit code 0: done or allowed. 1: refused. 2: could not, with one line that says why.\n"
    ]
    for name, command in all_commands():
        usage = [name, *(_usage(parameter) for parameter in command.params)]
        parts.append(f"\n## {name}\n\n{inspect.cleandoc(command.help or '')}\n\n    {' '.join(usage)}\n")
        rows = [_option(option) for option in command.params if isinstance(option, click.Option)]
        if rows:
            parts.append("\n| option | meaning | default |\n|---|---|---|\n" + "\n".join(rows) + "\n")
    return "".join(parts)


def _usage(parameter: click.Parameter) -> str:
    if isinstance(parameter, click.Argument):
        name = (parameter.name or "").upper()
        return name if parameter.required else f"[{name}]"
    flag = isinstance(parameter, click.Option) and parameter.is_flag
    text = parameter.opts[0] if flag else f"{parameter.opts[0]} {parameter.type.name.upper()}"
    return text if parameter.required else f"[{text}]"


def _option(option: click.Option) -> str:
    names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    chosen = f" One of {', '.join(map(str, option.type.choices))}." if isinstance(option.type, click.Choice) else ""
    default = option.default
    shown = "" if option.is_flag or not isinstance(default, (str, int, float, Path)) else f"`{default}`"
    if option.required:
        shown = "required"
    about = option.help or (option.prompt if isinstance(option.prompt, str) else "")
    return f"| {names} | {_cell(about + chosen)} | {shown} |"


def settings() -> str:
    """Return the page of all settings."""
    parts = [
        f"# Settings\n\n{MADE}A TOML file (`--settings`, else `oomrl.toml` in the state directory); the environment "
        "wins over it as `OOMRL_SECTION__NAME`. Secrets belong into the environment alone.\n"
    ]
    for name, found in Settings.model_fields.items():
        section = found.annotation
        if inspect.isclass(section) and issubclass(section, BaseModel):
            parts.append(_section(name, section))
    account = Settings.model_fields["accounts"].annotation.__args__[1]  # type: ignore[union-attr]
    parts.append(_section("accounts.NAME", account))
    return "".join(parts)


def _section(name: str, section: type[BaseModel]) -> str:
    rows = []
    for key, found in section.model_fields.items():
        limits = ", ".join(_limit(item) for item in found.metadata if _limit(item))
        default = (
            "required"
            if found.default is PydanticUndefined and not found.default_factory
            else found.get_default(call_default_factory=True)
        )
        rows.append(f"| `{key}` | {_cell(_kind(found.annotation))} | {_cell(limits)} | `{_shown(default)}` |")
    about = inspect.cleandoc(section.__doc__ or "")
    table = "| name | kind | bounds | default |\n|---|---|---|---|\n" + "\n".join(rows)
    return f"\n## [{name}]\n\n{about}\n\n{table}\n"


def _kind(annotation: Any) -> str:
    text = (
        annotation.__name__ if inspect.isclass(annotation) and not hasattr(annotation, "__args__") else str(annotation)
    )
    return re.sub(r"(typing|decimal|pathlib\.\w+|pathlib|datetime|pydantic\.types|oomrl\.settings)\.", "", text)


def _limit(item: Any) -> str:
    signs = {"gt": ">", "ge": ">=", "lt": "<", "le": "<="}
    return ", ".join(f"{sign} {getattr(item, name)}" for name, sign in signs.items() if hasattr(item, name))


def _shown(value: Any) -> str:
    if isinstance(value, (tuple, list)):
        return "[" + ", ".join(map(_shown, value)) + "]"
    return json.dumps(value) if isinstance(value, (str, bool, dict)) else str(value)


def findings() -> str:
    """Return the page of all finding codes."""
    parts = [f"# Finding codes\n\n{MADE}`python -m guardrails explain CODE` says the same in a terminal.\n"]
    for code, row in codes().items():
        samples = [
            f"{kind}:\n\n{_block(text)}" for kind, text in (("Accepted", row.accepted), ("Refused", row.refused))
        ]
        parts.append(
            f"\n## {code}: {row.title}\n\nLayer: {row.layer}.\n\nWhy: {row.why}\n\nWay out: {row.fix}\n\n"
            + "\n\n".join(samples)
            + "\n"
        )
    return "".join(parts)


def _block(text: str) -> str:
    return "\n".join(f"    {line}".rstrip() for line in text.strip("\n").split("\n"))


def schemas() -> str:
    """Return the page of the published JSON Schemas."""
    parts = [f"# JSON Schemas\n\n{MADE}"]
    for name, path in SCHEMAS.items():
        found = json.loads(path.read_text("utf-8"))
        rows = [
            f"| `{key}` | {_cell(value.get('type', value.get('$ref', '')))} | {_cell(value.get('description', ''))} |"
            for key, value in found.get("properties", {}).items()
        ]
        table = "| key | kind | meaning |\n|---|---|---|\n" + "\n".join(rows) + "\n" if rows else ""
        text = json.dumps(found, indent=2)
        where = path.relative_to(ROOT).as_posix()
        parts.append(f"## {name}\n\n`{where}`\n\n{table}\n```json\n{text}\n```\n\n")
    return "".join(parts)


def interface() -> str:
    """Return the page of the HTTP API."""
    app = FastAPI(title="oomrl")
    app.include_router(api.router)
    parts = [
        f"# HTTP API\n\n{MADE}Served by `oomrl page` beside the review page; a token (`oomrl people token`) goes into "
        "`Authorization: Bearer ...`. The OpenAPI document is at `/api/v1/openapi.json`.\n\n"
        "| method | path | what |\n|---|---|---|\n"
    ]
    for path, methods in app.openapi()["paths"].items():
        for method, found in methods.items():
            about = (found.get("description") or found.get("summary") or "").split("\n\n")[0]
            parts.append(f"| {method.upper()} | `{path}` | {_cell(about)} |\n")
    return "".join(parts)


def metrics() -> str:
    """Return the page of the Prometheus metrics, as an empty service exposes them."""
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(Metrics(Path(folder), Settings, lambda: datetime.now(UTC), lambda: True)) as empty,
    ):
        text = empty.text().decode()
    kinds = dict(re.findall(r"(?m)^# TYPE (\S+) (\S+)$", text))
    rows = [
        f"| `{name}` | {kinds.get(name, '')} | {_cell(about)} |"
        for name, about in re.findall(r"(?m)^# HELP (\S+) (.*)$", text)
        if not name.endswith("_created")
    ]
    table = "| metric | kind | meaning |\n|---|---|---|\n" + "\n".join(sorted(rows)) + "\n"
    return f"# Metrics\n\n{MADE}Served by `oomrl run` at `service.listen`, path `/metrics`.\n\n{table}"


def decisions() -> str:
    """Return the list of decisions."""
    rows = []
    for path in sorted((DOCS / "adr").glob("[0-9]*.md")):
        title = path.read_text("utf-8").splitlines()[0].lstrip("# ")
        rows.append(f"- [{title}]({path.name})")
    return "# Decisions\n\nWhy things are as they are, one page each.\n\n" + "\n".join(rows) + "\n"


def changes() -> str:
    """Return all fragments of changes as one page, the newest first; without days where git is not at hand."""
    begun, parts = _begun(DOCS / "changes"), ["# Changes\n"]
    for path in sorted((DOCS / "changes").glob("*.md"), key=lambda path: (begun.get(path.name, "9"), path.name)):
        day = f" ({begun[path.name][:10]})" if path.name in begun else ""
        title = f"{path.stem.replace('-', ' ').capitalize()}{day}"
        parts.insert(1, f"\n## {title}\n\n{path.read_text('utf-8').strip()}\n")
    return "".join(parts)


def _begun(folder: Path) -> dict[str, str]:
    """Return when each file of a folder was first committed, ISO 8601 in UTC; what git does not know is left out."""
    form = ("--format=%x00%cd", "--date=format-local:%Y-%m-%dT%H:%M:%S")
    command = ["git", "log", "--diff-filter=A", "--name-only", *form, "--", "."]
    environment = {**os.environ, "TZ": "UTC"}
    try:
        ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return {}
    found = {}
    for entry in ran.stdout.split("\0")[1:]:
        at, *names = entry.split()
        found |= {Path(name).name: at for name in names}
    return found


PAGES = {
    "reference/commands.md": commands,
    "reference/settings.md": settings,
    "reference/findings.md": findings,
    "reference/schemas.md": schemas,
    "reference/api.md": interface,
    "reference/metrics.md": metrics,
    "adr/index.md": decisions,
    "changes/index.md": changes,
}


def _cell(text: str) -> str:
    return " ".join(str(text).split()).replace("|", "\\|")


def stage(target: Path) -> None:
    """Write the whole source of the site into a folder, anew."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(DOCS, target, ignore=shutil.ignore_patterns("examples", "*.py", "*.lock", "__pycache__", "schemas"))
    for path in target.glob("changes/*.md"):
        path.unlink()
    for source, place in BESIDE.items():
        (target / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / source, target / place)
    for place, made in PAGES.items():
        (target / place).parent.mkdir(parents=True, exist_ok=True)
        (target / place).write_text(made(), "utf-8")


if __name__ == "__main__":
    stage(Path(sys.argv[1]))
    print(f"{sum(1 for _ in all_commands())} commands of {len(COMMANDS)} groups, {len(codes())} codes")
