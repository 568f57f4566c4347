"""Pictures that a person would rather look at than figures: PNG or SVG bytes from plain values.

Light, few colours, all of the set of Okabe and Ito that colour-blind people tell apart, and never colour alone: marks
differ in shape, lines in dash. No pyplot and no global state; the same values give the same bytes.

Long by nature: one picture after another.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Literal

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, date2num
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from oomrl.domain.market import Floats
from oomrl.domain.performance import Estimate

Format = Literal["png", "svg"]

BLUE, ORANGE, GREEN, RED = "#0072B2", "#E69F00", "#009E73", "#D55E00"
PURPLE, SKY, INK, SOFT, FAINT = "#CC79A7", "#56B4E9", "#222222", "#6B6B6B", "#E6E6E6"
#: Dashes by place, so that lines stay apart without colour.
DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)), (0, (3, 1.5)))
COLOURS = (BLUE, SOFT, ORANGE, PURPLE, SKY)

_STYLE: dict[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.edgecolor": SOFT,
    "axes.labelcolor": SOFT,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10.5,
    "axes.titlelocation": "left",
    "axes.titlecolor": INK,
    "axes.titleweight": "bold",
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.color": FAINT,
    "grid.linewidth": 0.7,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "legend.labelcolor": INK,
    "svg.hashsalt": "oomrl",
    "svg.fonttype": "path",
    "path.simplify": True,
}


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """Hold one line: its name, its days, and dollars of shape (days,)."""

    name: str
    days: Sequence[date]
    values: Floats


@dataclass(frozen=True, slots=True)
class LossMark:
    """Mark one loss; `shared` ones demand no patch."""

    day: date
    shared: bool = False


@dataclass(frozen=True, slots=True)
class DeploymentMark:
    """Mark one deployment; `rolled_back` where it was undone."""

    day: date
    label: str
    rolled_back: bool = False


@dataclass(frozen=True, slots=True)
class Span:
    """Name a stretch of time, such as a phase."""

    first: date
    last: date
    label: str


def equity(
    curves: Sequence[Curve],
    losses: Sequence[LossMark] = (),
    deployments: Sequence[DeploymentMark] = (),
    phases: Sequence[Span] = (),
    *,
    title: str = "Equity",
    note: str = "",
    form: Format = "png",
) -> bytes:
    """Draw the account (first curve) against others, with losses, deployments and phases marked.

    Below it stands the drawdown of the first two curves. `note` (such as "simulated") is shown under the title.
    """
    if not curves or any(len(curve.days) != len(curve.values) or not len(curve.days) for curve in curves):
        raise ValueError("Expected at least one curve with as many days as values, was another")
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(9.6, 5.4), layout="constrained")
        top, low = figure.subplots(2, 1, sharex=True, height_ratios=[3.2, 1.0])
        _phases(top, phases)
        for place, curve in enumerate(curves):
            _line(top, curve, place)
        _deployments(top, low, deployments)
        _losses(top, curves[0], losses)
        top.yaxis.set_major_formatter(FuncFormatter(_dollars))
        top.yaxis.set_major_locator(MaxNLocator(6))
        _heading(top, title, note)
        _legend(figure, top)
        for place, curve in enumerate(curves[:2]):
            wealth = np.asarray(curve.values, dtype=np.float64)
            fall = wealth / np.maximum.accumulate(wealth) - 1.0
            _draw(low, curve.days, fall, place)
            if place == 0:
                low.fill_between(_numbers(curve.days), fall, 0.0, color=BLUE, alpha=0.12, linewidth=0)
        _percent_axis(low, "drawdown")
        _dates(low)
        return _bytes(figure, form)


def drawdown(curves: Sequence[Curve], *, title: str = "Drawdown", note: str = "", form: Format = "png") -> bytes:
    """Draw how far each curve stands below its high-water mark; the deepest point of the first is named."""
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(9.6, 3.2), layout="constrained")
        axes = figure.subplots()
        for place, curve in enumerate(curves):
            wealth = np.asarray(curve.values, dtype=np.float64)
            fall = wealth / np.maximum.accumulate(wealth) - 1.0
            _draw(axes, curve.days, fall, place, curve.name)
            if place == 0:
                axes.fill_between(_numbers(curve.days), fall, 0.0, color=BLUE, alpha=0.12, linewidth=0)
                deepest = int(np.argmin(fall))
                axes.plot(date2num(curve.days[deepest]), fall[deepest], "v", color=RED, markersize=6)
                axes.annotate(
                    f"{fall[deepest]:.1%}",
                    (float(date2num(curve.days[deepest])), float(fall[deepest])),
                    xytext=(8, -2),
                    textcoords="offset points",
                    color=RED,
                )
        _percent_axis(axes, "below the high-water mark")
        _heading(axes, title, note)
        _legend(figure, axes)
        _dates(axes)
        return _bytes(figure, form)


def waterfall(
    parts: Mapping[str, float],
    *,
    title: str = "Where the money went",
    note: str = "",
    total: str = "profit or loss",
    form: Format = "png",
) -> bytes:
    """Draw the parts of a profit or loss (dollars by name, in order) as steps that end at their sum.

    Parts below half a cent are left out. Losses go left in vermilion, gains right in green, each with its number.
    """
    shown = [(name, value) for name, value in parts.items() if abs(value) >= 0.005]
    names = [name.replace("_", " ") for name, _ in shown] + [total]
    steps = np.array([value for _, value in shown] + [sum(value for _, value in shown)])
    begins = np.concatenate([[0.0], np.cumsum(steps[:-1])])
    begins[-1] = 0.0
    with mpl.rc_context({**_STYLE, "axes.grid.axis": "x"}):
        figure = Figure(figsize=(8.4, 1.3 + 0.36 * len(names)), layout="constrained")
        axes = figure.subplots()
        rows = np.arange(len(names))
        for row, (begin, step) in enumerate(zip(begins, steps, strict=True)):
            last = row == len(names) - 1
            colour = BLUE if last else (RED if step < 0 else GREEN)
            axes.barh(row, step, left=begin, height=0.62, color=colour, alpha=0.9, linewidth=0)
        for row in rows[:-1]:
            reached = begins[row] + steps[row]
            axes.plot([reached, reached], [row, row + 1], color=SOFT, linewidth=0.6)
        edges = np.concatenate([begins, begins + steps, [0.0]])
        span = float(edges.max() - edges.min()) or 1.0
        axes.set_xlim(float(edges.min()) - 0.16 * span, float(edges.max()) + 0.16 * span)
        for row, (begin, step) in enumerate(zip(begins, steps, strict=True)):
            right = step >= 0
            end = max(begin, begin + step) if right else min(begin, begin + step)
            axes.annotate(
                _money(step),
                (float(end), row),
                xytext=(5 if right else -5, 0),
                textcoords="offset points",
                va="center",
                ha="left" if right else "right",
                color=INK,
                fontsize=8.5,
            )
        axes.axvline(0.0, color=SOFT, linewidth=0.8)
        axes.set_yticks(rows, names, color=INK)
        axes.tick_params(axis="y", length=0)
        axes.invert_yaxis()
        axes.xaxis.set_major_formatter(FuncFormatter(_dollars))
        axes.xaxis.set_major_locator(MaxNLocator(6))
        axes.spines["left"].set_visible(False)
        _heading(axes, title, note)
        return _bytes(figure, form)


def comparison(
    candidate: Curve,
    incumbent: Curve,
    figures: Mapping[str, tuple[Estimate, Estimate]],
    *,
    percent: Sequence[str] = (),
    band: tuple[Floats, Floats] | None = None,
    title: str = "Candidate against incumbent",
    note: str = "",
    form: Format = "png",
) -> bytes:
    """Draw both curves, and each figure of both with its interval.

    `figures` maps a name to (candidate, incumbent); those named in `percent` are fractions. `band` holds the low and
    high dollars of placebo candidates (days,) behind the curves.
    """
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(9.6, 3.6 + 0.62 * len(figures)), layout="constrained")
        rows = figure.subplots(1 + len(figures), 1, height_ratios=[4.4] + [1.0] * len(figures), squeeze=False)[:, 0]
        top = rows[0]
        if band is not None:
            top.fill_between(
                _numbers(candidate.days), band[0], band[1], color=FAINT, linewidth=0, label="placebo patches"
            )
        _line(top, candidate, 0)
        _line(top, incumbent, 2)
        top.yaxis.set_major_formatter(FuncFormatter(_dollars))
        top.yaxis.set_major_locator(MaxNLocator(5))
        _dates(top)
        _heading(top, title, note)
        _legend(figure, top)
        for axes, (name, pair) in zip(rows[1:], figures.items(), strict=True):
            _intervals(axes, name, pair, name in percent)
        return _bytes(figure, form)


def friction_by_name(
    costs: Mapping[str, Mapping[str, float]],
    *,
    most: int = 15,
    title: str = "Friction by name",
    note: str = "",
    form: Format = "png",
) -> bytes:
    """Draw what spread, impact and fees (dollars paid, by symbol and part) took in the costliest names."""
    kinds = ("spread", "impact", "fees")
    ranked = sorted(costs, key=lambda s: (-sum(costs[s].get(kind, 0.0) for kind in kinds), s))[:most]
    with mpl.rc_context({**_STYLE, "axes.grid.axis": "x"}):
        figure = Figure(figsize=(8.4, 1.5 + 0.27 * max(len(ranked), 1)), layout="constrained")
        axes = figure.subplots()
        left = np.zeros(len(ranked))
        for kind, colour, hatch in zip(kinds, (BLUE, ORANGE, SKY), ("", "////", "...."), strict=True):
            values = np.array([max(costs[symbol].get(kind, 0.0), 0.0) for symbol in ranked])
            axes.barh(
                np.arange(len(ranked)),
                values,
                left=left,
                height=0.62,
                color=colour,
                hatch=hatch,
                edgecolor="white",
                linewidth=0,
                label=kind,
            )
            left += values
        for row, value in enumerate(left):
            axes.annotate(
                _money(value),
                (float(value), row),
                xytext=(5, 0),
                textcoords="offset points",
                va="center",
                color=INK,
                fontsize=8.5,
            )
        axes.set_xlim(0.0, float(left.max(initial=1.0)) * 1.18)
        axes.set_yticks(np.arange(len(ranked)), [_safe(symbol) for symbol in ranked], color=INK)
        axes.tick_params(axis="y", length=0)
        axes.invert_yaxis()
        axes.xaxis.set_major_formatter(FuncFormatter(_dollars))
        axes.xaxis.set_major_locator(MaxNLocator(6))
        axes.spines["left"].set_visible(False)
        _heading(axes, title, note)
        _legend(figure, axes)
        return _bytes(figure, form)


def _numbers(days: Sequence[date]) -> Floats:
    return np.asarray(date2num(list(days)), dtype=np.float64)


def _draw(axes: Axes, days: Sequence[date], values: Floats, place: int, label: str | None = None) -> None:
    axes.plot(
        _numbers(days),
        values,
        color=COLOURS[place % len(COLOURS)],
        linestyle=DASHES[place % len(DASHES)],
        linewidth=1.8 if place == 0 else 1.3,
        label=None if label is None else _safe(label),
        zorder=4 if place == 0 else 3,
    )


def _line(axes: Axes, curve: Curve, place: int) -> None:
    _draw(axes, curve.days, curve.values, place, curve.name)


def _losses(axes: Axes, curve: Curve, losses: Sequence[LossMark]) -> None:
    numbers = _numbers(curve.days)
    for shared, face, label in ((False, RED, "loss"), (True, "white", "fall shared with the market")):
        at = _numbers([mark.day for mark in losses if mark.shared is shared])
        if len(at):
            height = np.interp(at, numbers, curve.values)
            axes.scatter(
                at, height, marker="v", s=38, facecolor=face, edgecolor=RED, linewidth=1.1, label=label, zorder=6
            )


def _deployments(top: Axes, low: Axes, deployments: Sequence[DeploymentMark]) -> None:
    """Draw a line a deployment and name it at the foot, on rows that keep neighbours apart."""
    seen: set[bool] = set()
    begin, end = top.get_xlim()
    taken: list[float] = []
    for mark in sorted(deployments, key=lambda one: one.day):
        at = float(_numbers([mark.day])[0])
        colour, dash = (PURPLE, (0, (2, 2))) if mark.rolled_back else (GREEN, "-")
        label = "rolled back" if mark.rolled_back else "deployment"
        for axes in (top, low):
            axes.axvline(
                at,
                color=colour,
                linestyle=dash,
                linewidth=1.1,
                zorder=2,
                label=label if axes is top and mark.rolled_back not in seen else None,
            )
        seen.add(mark.rolled_back)
        width = (end - begin) * 0.0125 * max(len(mark.label), 4)
        row = next((row for row, until in enumerate(taken) if at >= until), len(taken))
        taken[row : row + 1] = [at + width]
        leftward = at + width > end
        top.annotate(
            _safe(mark.label),
            (at, 0.0),
            xycoords=("data", "axes fraction"),
            xytext=(-3 if leftward else 3, 4 + 11 * row),
            textcoords="offset points",
            ha="right" if leftward else "left",
            color=colour,
            fontsize=8,
        )


def _phases(axes: Axes, phases: Sequence[Span]) -> None:
    for place, span in enumerate(phases):
        first, last = _numbers([span.first, span.last])
        if place % 2 == 0:
            axes.axvspan(first, last, color="#F4F6F8", linewidth=0, zorder=0)
        axes.annotate(
            _safe(span.label),
            ((first + last) / 2, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(0, -11),
            textcoords="offset points",
            ha="center",
            color=SOFT,
            fontsize=8.5,
        )


def _intervals(axes: Axes, name: str, pair: tuple[Estimate, Estimate], percent: bool) -> None:
    """Draw two points with their intervals on one small axis, the numbers beside them."""
    edges = []
    for row, (estimate, colour, marker) in enumerate(zip(pair, (BLUE, ORANGE), ("o", "s"), strict=True)):
        if not np.isfinite([estimate.value, estimate.low, estimate.high]).all():
            continue
        axes.plot([estimate.low, estimate.high], [row, row], color=colour, linewidth=2.2, solid_capstyle="butt")
        axes.plot(estimate.value, row, marker, color=colour, markersize=6)
        text = " to ".join(_figure(value, percent) for value in (estimate.low, estimate.high))
        axes.annotate(
            f"{_figure(estimate.value, percent)}  ({text})",
            (1.0, row),
            xycoords=("axes fraction", "data"),
            xytext=(8, 0),
            textcoords="offset points",
            va="center",
            color=INK,
            fontsize=8.5,
        )
        edges += [estimate.low, estimate.high]
    if edges and min(edges) <= 0.0 <= max(edges):
        axes.axvline(0.0, color=SOFT, linewidth=0.8, zorder=1)
    axes.set_ylim(1.6, -0.6)
    axes.set_yticks([])
    axes.grid(visible=False)
    axes.spines["left"].set_visible(False)
    axes.xaxis.set_major_locator(MaxNLocator(6))
    axes.tick_params(axis="x", labelsize=7.5, length=2, pad=1)
    if percent:
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0%}"))
    axes.set_ylabel(_safe(name), rotation=0, ha="right", va="center", color=INK)


def _percent_axis(axes: Axes, label: str) -> None:
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0%}"))
    axes.yaxis.set_major_locator(MaxNLocator(4))
    axes.set_ylim(top=0.0)
    axes.set_ylabel(label)


def _dates(axes: Axes) -> None:
    locator = AutoDateLocator(minticks=4, maxticks=9)
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator, show_offset=False))
    axes.margins(x=0.01)


def _heading(axes: Axes, title: str, note: str) -> None:
    axes.set_title(_safe(title) + ("\n" if note else ""), pad=8)
    if note:
        axes.annotate(
            _safe(note),
            (0.0, 1.0),
            xycoords="axes fraction",
            xytext=(0, 8),
            textcoords="offset points",
            color=SOFT,
            fontsize=8.5,
        )


def _legend(figure: Figure, axes: Axes) -> None:
    """Put the legend below the picture, where it covers nothing."""
    handles, labels = axes.get_legend_handles_labels()
    if handles:
        figure.legend(handles, labels, loc="outside lower left", ncols=4, handlelength=2.6, columnspacing=1.8)


def _dollars(value: float, _: Any = None) -> str:
    size = abs(value)
    sign = "-" if value < 0 else ""
    for limit, unit in ((1e9, "bn"), (1e6, "M"), (1e3, "k")):
        if size >= limit:
            return f"{sign}${size / limit:.3g}{unit}"
    return f"{sign}${size:.3g}"


def _money(value: float) -> str:
    return f"{'-' if value < 0 else ''}${abs(value):,.{0 if abs(value) >= 10 else 2}f}"


def _figure(value: float, percent: bool) -> str:
    return f"{value:+.1%}" if percent else f"{value:+.2f}"


def _safe(text: str) -> str:
    """Show foreign text as it stands: no mathematics, no control characters, at most 60 characters."""
    shown = "".join(c if c.isprintable() else "?" for c in text[:60])
    return shown.replace("\\", "\\\\").replace("$", r"\$")


def _bytes(figure: Figure, form: Format) -> bytes:
    FigureCanvasAgg(figure)
    out = io.BytesIO()
    metadata = {"Date": None, "Creator": None} if form == "svg" else {"Software": None}
    figure.savefig(out, format=form, dpi=144, facecolor="white", metadata=metadata)
    return out.getvalue()
