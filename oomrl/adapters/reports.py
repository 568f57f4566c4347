"""Draw a finished run: its equity beside others, the comparison with the incumbent, each loss, friction by name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from oomrl.adapters import pictures
from oomrl.adapters.database import Store
from oomrl.adapters.outcome import Curve, Outcome
from oomrl.domain.attribution import PARTS
from oomrl.domain.performance import Estimate
from oomrl.domain.records import DeploymentKind, StoredDiagnostic, StoredFill

NOTE = "simulated: no evidence of live performance"
FIGURES = {"arithmetic return a year": "annualised_return", "Sharpe ratio": "sharpe", "max drawdown": "max_drawdown"}
PERCENT = ("arithmetic return a year", "max drawdown")


def draw_run(found: Outcome, store: Store, run: str, folder: Path) -> list[Path]:
    """Write the pictures of a run and return their paths, the equity curves first."""
    with store.read() as view:
        losses = view.losses.all(run)
        diagnostics = view.losses.diagnostics(run)
        deployments = [made for made in view.deployments.all(run) if made.kind is not DeploymentKind.START]
        fills = view.orders.fills(run)
    own, incumbent = _line(found, "run"), _line(found, "incumbent")
    drawn = {
        "equity": pictures.equity(
            [own, incumbent, *(_line(found, name) for name in found.curves if name not in ("run", "incumbent"))],
            [pictures.LossMark(loss.day, loss.level != "loss") for loss in losses],
            [pictures.DeploymentMark(d.day, d.revision[:7], d.kind is DeploymentKind.ROLLBACK) for d in deployments],
            title="Equity beside the untouched incumbent and the controls",
            note=NOTE,
        )
    }
    figures = {label: pair for label, name in FIGURES.items() if (pair := _figures(found.result, name)) is not None}
    if figures:
        drawn["comparison"] = pictures.comparison(
            own, incumbent, figures, percent=PERCENT, title="The run against the untouched incumbent", note=NOTE
        )
    costs = _friction(fills)
    if costs:
        drawn["friction"] = pictures.friction_by_name(costs, note=NOTE)
    for number, diagnostic in enumerate(diagnostics, start=1):
        drawn[f"loss-{number}"] = _waterfall(diagnostic)
    folder.mkdir(parents=True, exist_ok=True)
    places = []
    for name, data in drawn.items():
        places.append(folder / f"{name}.png")
        places[-1].write_bytes(data)
    return places


def _line(found: Outcome, name: str) -> pictures.Curve:
    curve: Curve = found.curves[name]
    label = {"run": "this run", "incumbent": "incumbent, untouched"}.get(name, f"control: {name}")
    return pictures.Curve(label, curve.days, curve.equity)


def _figures(result: Mapping[str, Any], name: str) -> tuple[Estimate, Estimate] | None:
    pair = []
    for figures in (result, result["incumbent"]):
        value, bounds = figures[name], figures.get(f"{name}_ci")
        if value is None or bounds is None or None in bounds:
            return None
        pair.append(Estimate(value, *bounds, method="stationary bootstrap"))
    return pair[0], pair[1]


def _friction(fills: list[StoredFill]) -> dict[str, dict[str, float]]:
    """Sum up what spread, impact and fees took by name, in dollars paid."""
    costs: dict[str, dict[str, float]] = {}
    for fill in fills:
        mine = costs.setdefault(fill.symbol, {"spread": 0.0, "impact": 0.0, "fees": 0.0})
        shares = float(fill.shares)
        mine["spread"] += shares * (fill.spread or 0.0)
        mine["impact"] += shares * (fill.impact or 0.0)
        mine["fees"] += float(fill.commission + fill.regulatory)
    return costs


def _waterfall(diagnostic: StoredDiagnostic) -> bytes:
    stored: Mapping[str, float] = diagnostic.payload["decomposition"]  # type: ignore[assignment]
    parts = {name: stored[name] for name in PARTS}
    window: Mapping[str, str] = diagnostic.payload["window"]  # type: ignore[assignment]
    title = f"Where the money went, {window['first']} to {window['last']}"
    return pictures.waterfall(parts, title=title, note=NOTE)
