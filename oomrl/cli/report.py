"""`oomrl report`: how each deployed revision did, with intervals, and the phases against one another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from rich.table import Table

from oomrl.cli.console import console
from oomrl.cli.options import WORDS, json_option, only_run, open_state, say, state_option

ROWS = {
    "annualised return, arithmetic": ("annualised_return", "{:+.1%}"),
    "Sharpe ratio": ("sharpe", "{:+.2f}"),
    "max drawdown": ("max_drawdown", "{:.1%}"),
    "information ratio": ("information_ratio", "{:+.2f}"),
    "beta": ("beta", "{:.2f}"),
    "alpha": ("alpha", "{:+.1%}"),
}


@click.command()
@click.option("--tape", type=WORDS, help="The tape of the run, for its size, momentum and volatility styles.")
@state_option
@json_option
def report(tape: str | None, state: Path, as_json: bool) -> None:
    """Compare the phases of a run: one for each deployed revision. Draws phases.png beside the other pictures."""
    from oomrl.adapters import phases, pictures
    from oomrl.errors import Mistake
    from oomrl.exchange.tape_files import load_tape

    with open_state(state) as store, store.read() as view:
        run = only_run(store)
        marks, deployments = view.sessions.marks(run), view.deployments.all(run)
        losses, known = view.losses.all(run), view.runs.get(run)
        endowed = view.capital.state(run).endowed
        opening = next((e.amount for e in view.ledger.entries(run) if e.key == "endowment"), endowed)
    if not marks or known is None:
        raise Mistake(f"Expected a run with at least one session in {state}, was none.")
    settings: Any = known.settings.get("settings")
    found = phases.report(
        marks,
        deployments,
        opening,
        settings["account"]["riskless_rate"],
        known.seed,
        None if tape is None else load_tape(tape).until(marks[-1].day),
    )
    folder = state / "reports"
    folder.mkdir(parents=True, exist_ok=True)
    drawn = pictures.equity(
        [pictures.Curve("the account", found.curve.days, found.curve.equity)],
        [pictures.LossMark(loss.day, loss.level != "loss") for loss in losses],
        phases=[pictures.Span(first, last, name) for name, first, last in found.phases],
        title="Phases of the account",
        note="simulated: no evidence of live performance",
    )
    (folder / "phases.png").write_bytes(drawn)
    if as_json:
        say(found.values, True, "")
        return
    console.print(_table(found.values))
    for fall in found.values["drawdowns"][:3]:
        recovered = fall["recovery"] or "not yet"
        console.print(f"Drawdown {fall['depth']:.1%}: {fall['peak']} to {fall['trough']}, recovered {recovered}")
    rolling = found.values["rolling_information_ratio"]
    if rolling:
        console.print(
            f"Information ratio over {rolling['window']} sessions: last {rolling['last']:+.2f}, "
            f"{rolling['lowest']:+.2f} to {rolling['highest']:+.2f}"
        )
    console.print(f"Picture: {folder / 'phases.png'}")


def _table(values: dict[str, Any]) -> Table:
    """Return phases side by side, each figure with its interval."""
    table = Table(title="Phases (simulated)", title_style="bold")
    table.add_column("")
    columns = [*values["phases"], *([values["total"] | {"name": "all"}] if "total" in values else [])]
    for phase in columns:
        table.add_column(phase["name"], justify="right")
    for label, (key, form) in ROWS.items():
        table.add_row(label, *(_cell(phase.get(key), form) for phase in columns))
    return table


def _cell(estimate: dict[str, Any] | None, form: str) -> str:
    if estimate is None or estimate["value"] is None:
        return "-"
    if estimate["low"] is None or estimate["high"] is None:
        return form.format(estimate["value"])
    return f"{form.format(estimate['value'])}\n[{form.format(estimate['low'])}, {form.format(estimate['high'])}]"
