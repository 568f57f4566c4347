"""`oomrl exchange`: the paper exchange that speaks Alpaca's protocols, as a process of its own."""

from __future__ import annotations

import contextlib
import json
from datetime import date, datetime
from pathlib import Path

import click

from oomrl.cli.options import PATH, WORDS, dollars
from oomrl.domain.trading import ALPACA_PAPER, AccountRules
from oomrl.errors import Mistake
from oomrl.exchange.friction import Friction
from oomrl.exchange.tape_files import load_tape


@click.group()
def exchange() -> None:
    """A simulated exchange on loopback, for anything that speaks to Alpaca."""


@exchange.command()
@click.option("--tape", required=True, type=WORDS, help="A built-in name, a Parquet file or a folder of CSVs.")
@click.option("--faults", type=PATH, help="A TOML file of faults; see docs/faults.md.")
@click.option("--port", type=click.IntRange(0, 65535), default=8765, show_default=True, help="0: any free one.")
@click.option(
    "--speed", default="step", show_default=True, help="step, fast, real, or virtual seconds a second (a number)."
)
@click.option("--from", "start", type=click.DateTime(["%Y-%m-%d"]), help="The first session still to come.")
@click.option("--cash", default="1000000", show_default=True, help="Opening cash in dollars.")
@click.option(
    "--rules",
    type=click.Choice(["funded", "paper"]),
    default="funded",
    show_default=True,
    help="Dividends, splits and fees, or none, as at Alpaca.",
)
@click.option("--multiplier", type=click.IntRange(1, 2), default=1, show_default=True, help="2: margin account.")
@click.option(
    "--cash-rule",
    type=click.Choice(["refuse", "wait"]),
    default="refuse",
    show_default=True,
    help="Of a buy that cash does not cover yet.",
)
@click.option("--rate-limit", type=click.IntRange(0), default=200, show_default=True, help="A minute; 0: none.")
@click.option("--no-friction", is_flag=True, help="Fill at reference prices, whole, without fees.")
@click.option("--fractional-limits", is_flag=True, help="Allow fractional limit and stop orders.")
@click.option("--json", "as_json", is_flag=True, help="Print where it listens as one line of JSON.")
def serve(
    tape: str,
    faults: Path | None,
    port: int,
    speed: str,
    start: datetime | None,
    cash: str,
    rules: str,
    multiplier: int,
    cash_rule: str,
    rate_limit: int,
    no_friction: bool,
    fractional_limits: bool,
    as_json: bool,
) -> None:
    """Serve a paper exchange on 127.0.0.1 until it is interrupted. All of its results are simulated.

    `--rules funded` pays dividends, applies splits and charges fees; `paper` does none of it, as Alpaca's paper
    accounts. `--cash-rule wait` lets buys beyond the buying power wait for cash instead of refusing them.
    """
    from oomrl.exchange.emulator.faults import Faults, load_faults
    from oomrl.exchange.emulator.server import Running, Settings
    from oomrl.exchange.emulator.server import serve as run
    from oomrl.exchange.emulator.terms import Terms

    opening = dollars(cash)
    if opening < 0:
        raise Mistake(f"Expected opening cash of zero or more, was {cash}.")
    market = load_tape(tape)
    first = start.date() if start else None
    market.require(first, None)
    terms = Terms(
        cash=opening,
        friction=Friction.none() if no_friction else Friction(),
        rules=ALPACA_PAPER if rules == "paper" else AccountRules(),
        multiplier=multiplier,
        cash_rule=cash_rule,
        fractional_limits=fractional_limits,
    )
    trouble = load_faults(faults) if faults else Faults()
    settings = Settings(start=first, speed=speed, port=port, rate_limit=rate_limit, terms=terms, faults=trouble)

    def announce(where: Running) -> None:
        facts = {"url": where.url, "stream_url": where.stream_url, "admin_url": f"{where.url}/admin"}
        if as_json:
            click.echo(json.dumps(facts))
            return
        click.echo(f"Simulated exchange on {where.url} (trading, data and /admin), stream {where.stream_url}")
        click.echo(
            f"Tape {market.name}, {_span(first or market.days[0], market.days[-1])}, speed {speed}. Ctrl-C ends."
        )

    with contextlib.suppress(KeyboardInterrupt):
        run(market, settings, announce)


def _span(first: date, last: date) -> str:
    return f"{first} to {last}"
