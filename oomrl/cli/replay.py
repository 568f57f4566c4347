"""`oomrl replay`: one strategy revision over a tape, without the loop."""

from __future__ import annotations

import json
import time
from datetime import date
from pathlib import Path

import click
from rich.table import Table

from oomrl import bootstrap
from oomrl.adapters.outcome import curve_of_replay, figures
from oomrl.cli.console import console, side_by_side
from oomrl.cli.options import PATH, START_HELP, WORDS, settings_option
from oomrl.cli.simulate import Day
from oomrl.errors import Mistake
from oomrl.settings import load


@click.command()
@click.option(
    "--tape",
    default="builtin",
    show_default=True,
    type=WORDS,
    help="A built-in name, Parquet file or folder of CSVs.",
)
@click.option("--from", "from_day", type=Day(), help="First day of trading; everything before is shown, not traded.")
@click.option("--to", "to_day", type=Day(), help="Last day.")
@click.option("--start", default="shipped", show_default=True, type=WORDS, help=START_HELP)
@click.option("--revision", help="A revision of the deployment repository in --state, instead of --start.")
@click.option("--state", type=PATH, default=Path("state"), show_default=True, help="Where --revision is.")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0), help="Of all randomness.")
@settings_option
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def replay(
    tape: str,
    from_day: date | None,
    to_day: date | None,
    start: str,
    revision: str | None,
    state: Path,
    seed: int,
    settings_file: Path | None,
    as_json: bool,
) -> None:
    """Run one strategy revision over a tape. Results are simulated."""
    begun = time.monotonic()
    settings = load(settings_file)
    with console.status("replaying") if not as_json else _Quiet():
        result = bootstrap.replayed(settings, tape, from_day, to_day, start, revision, state, seed)
    if result.failure is not None:
        raise Mistake(f"the strategy failed: {result.failure}")
    curve = curve_of_replay(result)
    seconds = time.monotonic() - begun
    shown = {
        "simulated": True,
        **figures(curve, settings.account.riskless_rate, seed),
        "revisions": 1,
        "losses": 0,
        "proposals": 0,
        "verdicts": {"pass": 0, "refuse": 0},
        "deployments": 0,
        "initial_equity": float(settings.account.endowment),
        "orders": int(result.orders.sum()),
        "fills": int(result.fills.sum()),
        "model_cost": 0.0,
        "parts": {name: float(value) for name, value in result.totals.items()},
        "wall_seconds": round(seconds, 2),
        "sessions_per_second": round(len(curve.days) / seconds, 1),
    }
    if as_json:
        click.echo(json.dumps(shown, indent=2))
        return
    console.print(side_by_side({start if revision is None else revision[:12]: shown}))
    counted = Table(title="Where it came from, in dollars (the parts sum to the profit or loss)", title_style="bold")
    counted.add_column("")
    counted.add_column("sum", justify="right")
    for name, value in result.totals.items():
        counted.add_row(name.replace("_", " "), f"{value:,.2f}")
    console.print(counted)
    console.print(
        f"{shown['orders']} orders, {shown['fills']} fills in {shown['sessions']} sessions, {seconds:.2f} s.",
        highlight=False,
    )


class _Quiet:
    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        return None
