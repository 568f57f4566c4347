"""What a person watches while a run goes on, and reads when it is over."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import date
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from oomrl.adapters.outcome import LossTold
from oomrl.domain.account import SessionRecord
from oomrl.domain.capital import Capital
from oomrl.domain.loss import Loss
from oomrl.domain.records import Deployment, DeploymentKind, Proposal, StoredDiagnostic, StoredVerdict

#: Everything that is no result goes to standard error.
console = Console(stderr=True, highlight=False)


class Watching:
    """A progress bar with a line for each event. Implements `oomrl.stages.Watcher`."""

    def __init__(self, total: int, quiet: bool = False) -> None:
        self.quiet = quiet
        self.day: date | None = None
        self._year = 0
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.completed}/{task.total} sessions"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=console,
            disable=quiet or not sys.stderr.isatty(),
        )
        self._task = self._bar.add_task("simulate", total=total)

    def expect(self, total: int) -> None:
        """Say how many sessions there are in all."""
        self._bar.update(self._task, total=total)

    def __enter__(self) -> Watching:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def closed(self, record: SessionRecord, capital: Capital, loss: Loss | None) -> None:
        self.day = record.day
        self._bar.update(self._task, advance=1, description=f"{record.day} ${record.equity:,.0f}")
        if not sys.stderr.isatty() and record.day.year != self._year:
            self._year = record.day.year
            self._say(f"equity ${record.equity:,.2f}  {capital.state.value}")
        if loss is not None:
            self._say(f"loss      {loss.trigger.value}: {loss.evidence}")

    def diagnosed(self, loss: Loss, diagnostic: StoredDiagnostic) -> None:
        if diagnostic.status == "open":
            self._say(f"diagnosed {diagnostic.payload['diagnostics']['root_cause']}: {diagnostic.mandate}")  # type: ignore[index]
        elif diagnostic.status == "rolled_back":
            self._say("diagnosed the revision that lost it is rolled back: no patch is demanded")
        else:
            self._say("diagnosed the market fell and the strategy shared it: no patch is demanded")

    def proposed(self, proposal: Proposal) -> None:
        what = " ".join(proposal.explanation.split())
        self._say(f"proposed  attempt {proposal.attempt} by {proposal.author}: {what}"[:240])

    def judged(self, proposal: Proposal, verdict: StoredVerdict) -> None:
        told = verdict.payload.get("proposer_view") or []
        self._say(f"gate      {verdict.outcome}: {'; '.join(map(str, told))[:200]}")  # type: ignore[call-overload]

    def deployed(self, deployment: Deployment) -> None:
        if deployment.kind is not DeploymentKind.START:
            self._say(f"{deployment.kind.value:9} revision {deployment.revision[:12]}: {deployment.reason}")

    def _say(self, text: str) -> None:
        if not self.quiet:
            self._bar.console.print(Text(f"{self.day or ''} {text}"))


def losses_told(losses: Sequence[LossTold]) -> Text:
    """Say what was lost and why, what was proposed, what the gate said, and how it ended."""
    text = Text()
    for loss in losses:
        text.append(f"{loss.day}  {loss.cause.replace('_', ' ')}", "bold").append(f": {loss.evidence}\n")
        for answer in loss.answers:
            text.append(f"            {answer}\n")
        text.append(f"            {loss.end}\n")
    return text


def _dollars(value: float) -> str:
    return f"${value / 1e6:,.2f}M" if value >= 1e7 else f"${value:,.0f}"


def summary(result: dict[str, Any]) -> Table:
    """Return the closing table: the run, the untouched incumbent and the controls side by side."""
    return side_by_side({"run": result, "incumbent": result["incumbent"], **result["controls"]})


def side_by_side(rows: dict[str, dict[str, Any]]) -> Table:
    """Return a table of accounts' figures with their intervals, a column for each."""
    table = Table(title="Simulated results (no evidence of live performance)", title_style="bold")
    table.add_column("")
    for name in rows:
        table.add_column(name, justify="right")
    lines = (
        ("final equity", "final_equity", _dollars, None),
        ("annualised return, arithmetic", "annualised_return", "{:.1%}", "annualised_return_ci"),
        ("Sharpe ratio", "sharpe", "{:.2f}", "sharpe_ci"),
        ("max drawdown", "max_drawdown", "{:.1%}", "max_drawdown_ci"),
        ("turnover a year", "turnover", "{:.1f}x", None),
        ("friction, bps a side", "friction_bps", "{:.1f}", None),
        ("uplift of Sharpe since deployment", "uplift_sharpe", "{:+.2f}", "uplift_ci"),
    )
    for label, key, form, interval in lines:
        cells = []
        for figures in rows.values():
            value = figures.get(key)
            show = form if callable(form) else form.format
            cell = "-" if value is None else show(value)
            bounds = figures.get(interval) if interval else None
            if bounds and None not in bounds:
                cell += "\n[" + ", ".join(map(show, bounds)) + "]"
            cells.append(Text(cell))
        if any(cell.plain != "-" for cell in cells):
            table.add_row(label, *cells)
    return table


def say_sandbox(profile: str) -> None:
    """Say loudly where strategies run with less than the strongest sandbox."""
    if profile != "S3":
        console.print(
            f"SANDBOX {profile}: no bubblewrap or no user namespaces here. Strategies run under Landlock and seccomp "
            "alone, without namespaces of their own; every verdict says so. Install bubblewrap for S3.",
            style="bold yellow",
        )
