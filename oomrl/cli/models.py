"""`oomrl prompts`, `reply`: answer for the manual model."""

from __future__ import annotations

from pathlib import Path

import click

from oomrl.adapters.manual_model import text_of
from oomrl.cli.desk import desk
from oomrl.cli.options import PATH, as_option, json_option, only_run, open_state, say, state_option


@click.command()
@state_option
@json_option
def prompts(state: Path, as_json: bool) -> None:
    """List the prompts that wait for a reply, and where they are."""
    with open_state(state) as store:
        run = only_run(store)
        with store.read() as view:
            waiting = view.prompts.pending(run)
    rows = [
        {"id": p.id, "role": p.role, "attempt": p.attempt, "file": str(state / "prompts" / f"{p.id}.md")}
        for p in waiting
    ]
    text = "\n".join(f"{r['id']}  {r['role']} attempt {r['attempt']}: {r['file']}" for r in rows)
    say(rows, as_json, text or "No prompt waits.")


@click.command()
@click.argument("prompt")
@click.argument("file", type=PATH)
@as_option("who", "answers")
@state_option
def reply(prompt: str, file: Path, who: str, state: Path) -> None:
    """Answer a prompt with the text of a file: a unified diff, or a line that begins with ESCALATE:."""
    with desk(state, who) as (opened, person_):
        fresh = opened.reply(person_, prompt, text_of(file))
    click.echo(f"{'Taken' if fresh else 'Known already'}: the reply to {prompt}. Run the same simulation to go on.")
