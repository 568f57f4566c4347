"""Draw a finished run: its equity beside the incumbent's and the controls', losses and deployments marked."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from oomrl.adapters.database import Store
from oomrl.adapters.outcome import Curve, Outcome
from oomrl.domain.records import DeploymentKind

#: Okabe and Ito's colours, which colour-blind people can tell apart.
COLOURS = {
    "run": "#0072B2",
    "incumbent": "#D55E00",
    "placebo": "#999999",
    "cadence": "#009E73",
    "inverse": "#CC79A7",
    "benchmark": "#000000",
}


def draw_run(found: Outcome, store: Store, run: str, folder: Path) -> Path:
    """Write equity.png and return its path."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with store.read() as view:
        losses = [loss.day for loss in view.losses.all(run) if loss.level == "loss"]
        deployments = [made for made in view.deployments.all(run) if made.kind is not DeploymentKind.START]
    figure = Figure(figsize=(11, 7.5), dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1])
    own = found.curves["run"]
    for name, curve in reversed(found.curves.items()):
        width = 2.2 if name == "run" else 1.2
        top.plot(curve.days, curve.equity / 1e6, color=COLOURS.get(name), linewidth=width, label=_label(name))
    top.plot(
        own.days, _benchmark(own, found), color=COLOURS["benchmark"], linewidth=0.9, linestyle=":", label="benchmark"
    )
    at = dict(zip(own.days, own.equity / 1e6, strict=True))
    marked = [day for day in losses if day in at]
    top.scatter(marked, [at[day] for day in marked], marker="v", s=36, color="#E69F00", zorder=5, label="loss")
    for number, made in enumerate(deployments):
        label = "deployment" if number == 0 else None
        for axes in (top, bottom):
            axes.axvline(made.day, color="#56B4E9", linewidth=1.2, linestyle="--", label=label if axes is top else None)
    top.set_ylabel("equity, million dollars")
    top.set_title("Simulated equity: the run, the untouched incumbent, and controls from the first deployment on")
    top.legend(loc="best", fontsize=8, frameon=False)
    for name in ("incumbent", "run"):
        curve = found.curves[name]
        bottom.fill_between(
            curve.days, _drawdown(curve) * 100, color=COLOURS[name], alpha=0.35, linewidth=0, label=_label(name)
        )
    bottom.set_ylabel("drawdown, %")
    bottom.legend(loc="lower left", fontsize=8, frameon=False)
    for axes in (top, bottom):
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    folder.mkdir(parents=True, exist_ok=True)
    place = folder / "equity.png"
    figure.savefig(place)
    return place


def _label(name: str) -> str:
    return {"run": "this run", "incumbent": "incumbent, untouched"}.get(name, f"control: {name}")


def _benchmark(curve: Curve, found: Outcome) -> np.ndarray:
    return np.cumprod(1 + curve.benchmark) * found.result["initial_equity"] / 1e6


def _drawdown(curve: Curve) -> np.ndarray:
    wealth = np.concatenate([[1.0], np.cumprod(1 + curve.returns)])
    return (wealth / np.maximum.accumulate(wealth) - 1)[1:]
