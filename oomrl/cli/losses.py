"""`oomrl diagnose`, `mandate`: why money was lost, and what is asked of its repair."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import click

from oomrl.adapters.database.store import Work
from oomrl.adapters.opinions import of_analyst
from oomrl.adapters.prompting import compute_of
from oomrl.agents.spent import diagnose_compute
from oomrl.cli.desk import desk
from oomrl.cli.options import PATH, json_option, only_run, open_state, person_options, plain, say, state_option
from oomrl.domain.diagnostic import Diagnostic, one_screen
from oomrl.domain.records import StoredDiagnostic
from oomrl.errors import Mistake


@click.command()
@click.argument("loss", required=False)
@state_option
@json_option
def diagnose(loss: str | None, state: Path, as_json: bool) -> None:
    """Show the diagnostic of a loss, by either's id; by default the newest. `compute` is that of the models' costs."""
    with open_state(state) as store, store.read() as view:
        run = only_run(store)
        if loss == "compute":
            spent = diagnose_compute(compute_of(view, run, _given(view, run)), view.prompts.all(run))
            say(spent.model_dump(mode="json"), as_json, plain(spent.told()))
            return
        found = view.losses.diagnostics(run)
        drafts = {one.id: of_analyst(view, run, one.id) for one in found}
    chosen = [one for one in found if loss in (None, one.id, one.loss)]
    if not chosen:
        named = ", ".join(one.id for one in found) or "none"
        raise Mistake(f"Expected a loss or a diagnostic of this run ({named}), was {loss or 'no loss yet'}.")
    last = chosen[-1]
    text = one_screen(Diagnostic.model_validate(last.payload))
    state_of = "confirmed" if last.confirmed else "not confirmed"
    said = drafts[last.id]
    if said is not None and said.draft is not None:
        reason = said.draft.escalate or f"{said.draft.root_cause} (confidence: {said.draft.confidence})"
        text += f"\n\nAnalyst ({plain(said.model)}): {plain(reason)}"
    asked = f"{last.id}: {last.status}; mandate by {plain(last.mandate_by)}, {state_of}: {plain(last.mandate)}"
    say(dict(last.payload), as_json, f"{text}\n\n{asked}")


def _given(view: Work, run: str) -> Decimal:
    """Return the compute endowment that a run was started with."""
    known = view.runs.get(run)
    assert known is not None
    return Decimal(known.settings["settings"]["account"]["compute_endowment"])  # type: ignore[index,call-overload]


@click.command()
@click.argument("diagnostic")
@click.option("--file", type=PATH, help="A file with other words than the drafted ones.")
@state_option
@person_options
def mandate(diagnostic: str, file: Path | None, state: Path, person: str, reason: str) -> None:
    """Confirm the mandate of an open diagnostic, in its drafted words or in those of a file."""
    with desk(state, person) as (opened, who):
        with opened.store.read() as view:
            found = view.losses.diagnostic(opened.run, diagnostic)
        words = _words(found, diagnostic, file)
        opened.set_mandate(who, diagnostic, words, reason)
    click.echo(f"Confirmed by {who.name}: {words}")


def _words(found: StoredDiagnostic | None, diagnostic: str, file: Path | None) -> str:
    if found is None:
        raise Mistake(f"Expected the id of a diagnostic, was {diagnostic!r}: `oomrl diagnose` names the newest.")
    if file is None:
        return found.mandate
    try:
        words = file.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise Mistake(f"Expected a text file at {file}: {error}") from error
    if not words or len(words) > 4_000:
        raise Mistake(f"Expected a mandate of 1 to 4,000 characters, was {len(words)}.")
    return words
