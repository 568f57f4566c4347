"""Plot a training log: the loss, every reward by its source, and every part of each arena's score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Series = dict[str, list[tuple[int, float]]]


def series_of(log: Sequence[Mapping[str, Any]]) -> dict[str, Series]:
    """Return the panels of a plot, each with its series by step: loss, rewards, and the parts of each arena's score.

    Entries without a figure are left out.
    """
    panels: dict[str, Series] = {}
    for entry in log:
        step = int(entry.get("step", 0))
        for key, value in entry.items():
            panel, name = _panel(key)
            if panel and isinstance(value, int | float):
                panels.setdefault(panel, {}).setdefault(name, []).append((step, float(value)))
    return panels


def _panel(key: str) -> tuple[str, str]:
    if key == "loss":
        return "loss", "loss"
    if key == "reward":
        return "reward", "all, weighted"
    if key.startswith("rewards/") and key.endswith("/mean"):
        return "reward", key.removeprefix("rewards/").removesuffix("/mean")
    if key.startswith("part/"):
        _, arena, part = key.split("/", 2)
        return f"parts of the {arena} score", part
    return "", ""


def plot(log: Sequence[Mapping[str, Any]], title: str, path: Path) -> None:
    """Write one picture with a panel for the loss, one for the rewards, and one for the parts of each arena's score."""
    from matplotlib.figure import Figure  # plots are for training alone

    panels = series_of(log)
    figure = Figure(figsize=(9, 2.6 * max(1, len(panels)) + 0.6), layout="constrained")
    figure.suptitle(title)
    axes = figure.subplots(max(1, len(panels)), 1, sharex=True, squeeze=False)[:, 0]
    for axis, (panel, series) in zip(axes, panels.items(), strict=False):
        for name, points in series.items():
            axis.plot([step for step, _ in points], [value for _, value in points], marker=".", label=name)
        axis.set_title(panel, fontsize="medium", loc="left")
        axis.grid(alpha=0.3)
        if len(series) > 1:
            axis.legend(fontsize="small", loc="center left", bbox_to_anchor=(1.0, 0.5))
    axes[-1].set_xlabel("step")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
