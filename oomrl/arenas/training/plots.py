"""Plot a training log: loss, and every reward by its source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def reward_series(log: Sequence[Mapping[str, Any]]) -> dict[str, list[tuple[int, float]]]:
    """Return loss and the mean of each reward by step, entries without a figure left out."""
    series: dict[str, list[tuple[int, float]]] = {}
    for entry in log:
        step = int(entry.get("step", 0))
        for key, value in entry.items():
            wanted = key in ("loss", "reward") or (key.startswith("rewards/") and key.endswith("/mean"))
            if wanted and isinstance(value, int | float):
                name = key.removeprefix("rewards/").removesuffix("/mean")
                series.setdefault(name, []).append((step, float(value)))
    return series


def plot(log: Sequence[Mapping[str, Any]], title: str, path: Path) -> None:
    """Write one picture with a panel for the loss and one for the rewards."""
    from matplotlib.figure import Figure  # plots are for training alone

    series = reward_series(log)
    figure = Figure(figsize=(8, 6), layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True)
    for name, points in series.items():
        axis = upper if name == "loss" else lower
        axis.plot([step for step, _ in points], [value for _, value in points], marker=".", label=name)
    upper.set_title(title)
    upper.set_ylabel("loss")
    lower.set_ylabel("mean reward")
    lower.set_xlabel("step")
    for axis in (upper, lower):
        if axis.lines:
            axis.legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
