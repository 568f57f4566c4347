"""Charts as inline SVG: small, without script, coloured by the page's own classes (dark mode needs no second set).

Each has a title and a description for those who hear the page; the page puts a table with the numbers behind it. No
chart tells by colour alone: marks differ in shape, lines in dash. Charts over days and sums are drawn twice, for a
screen and for a phone, and the style sheet shows one of them: scaled down, nobody could read the words.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import wraps
from typing import ParamSpec

from markupsafe import Markup, escape

WIDTH, HEIGHT = 860, 300
#: The units across a phone.
NARROW = 400
LEFT, RIGHT, TOP, BOTTOM = 62, 14, 14, 26
MOST_POINTS = 700

P = ParamSpec("P")


@dataclass(frozen=True, slots=True)
class Line:
    """One line: its name, its class (a, b, c: dashes differ), its values by place on the shared axis of days."""

    name: str
    kind: str
    values: Sequence[float]


@dataclass(frozen=True, slots=True)
class Mark:
    """One marked day: loss, shared, deploy or rollback, and where it leads."""

    day: date
    kind: str
    label: str
    link: str = ""


def _twice(draw: Callable[P, Markup]) -> Callable[P, Markup]:
    """Draw for a screen and for a phone."""

    @wraps(draw)
    def drawn(*args: P.args, **more: P.kwargs) -> Markup:
        screen = draw(*args, **more)
        if not screen.startswith("<svg"):
            return screen
        more["wide"] = NARROW
        return Markup('<div class="wide">{}</div><div class="narrow">{}</div>').format(screen, draw(*args, **more))

    return drawn


@_twice
def lines(
    days: Sequence[date],
    drawn: Sequence[Line],
    *,
    title: str,
    about: str,
    marks: Sequence[Mark] = (),
    spans: Sequence[tuple[date, date, str]] = (),
    band: tuple[Sequence[float], Sequence[float]] | None = None,
    money: bool = True,
    height: int = HEIGHT,
    area: bool = False,
    wide: int = WIDTH,
) -> Markup:
    """Draw lines over days, with shaded spans, a band, and marks on the first line."""
    if len(days) < 2:
        return Markup('<p class="quiet">No chart yet: it needs two sessions.</p>')
    most = MOST_POINTS * wide // WIDTH
    keep = _thinned(len(days), most, [place for mark in marks if (place := _place(days, mark.day)) < len(days)])
    everything = [value for line in drawn for value in line.values]
    if band is not None:
        everything += [*band[0], *band[1]]
    low, high = _range(everything, area)
    plot = _Plot(len(days), low, high, min(height, wide * 3 // 4), wide)
    out = [plot.open(title, about)]
    for first, last, label in spans:
        begin, end = (_place(days, first), _place(days, last))
        x1, x2 = plot.x(begin), plot.x(max(end, begin + 1) if end < len(days) else len(days) - 1)
        out.append(
            f'<rect class="span" x="{x1:.1f}" y="{TOP}" width="{max(x2 - x1, 1):.1f}" height="{plot.tall:.1f}"/>'
        )
        late = x1 > wide - 90
        at = f'x="{x1 - 3:.1f}" text-anchor="end"' if late else f'x="{x1 + 3:.1f}"'
        out.append(f'<text class="tick" {at} y="{TOP + 11}">{escape(label)}</text>')
    out += plot.levels(money)
    out += plot.days(days)
    if band is not None:
        up = " ".join(f"{plot.x(i):.1f},{plot.y(band[1][i]):.1f}" for i in keep)
        down = " ".join(f"{plot.x(i):.1f},{plot.y(band[0][i]):.1f}" for i in reversed(keep))
        out.append(f'<polygon class="band" points="{up} {down}"/>')
    for line in reversed(drawn):
        points = " ".join(f"{plot.x(i):.1f},{plot.y(line.values[i]):.1f}" for i in keep)
        if area:
            zero = plot.y(0.0)
            out.append(
                f'<polygon class="fill {line.kind}" points="{plot.x(keep[0]):.1f},{zero:.1f} {points} '
                f'{plot.x(keep[-1]):.1f},{zero:.1f}"/>'
            )
        out.append(f'<polyline class="line {line.kind}" points="{points}"/>')
    if marks and drawn:
        out += plot.marks(days, drawn[0].values, marks)
    out.append("</svg>")
    return Markup("".join(out))  # numbers, classes of this module, and escaped labels


@_twice
def waterfall(parts: Mapping[str, float], *, title: str, about: str, wide: int = WIDTH) -> Markup:
    """Draw how parts add up to a result, one bar a part."""
    shown = [(name, value) for name, value in parts.items() if abs(value) >= 0.005]
    total = sum(parts.values())
    rows = [*shown, ("result", total)]
    begins, at = [], 0.0
    for _, value in shown:
        begins.append(at)
        at += value
    begins.append(0.0)
    edges = [0.0, *(b for b in begins), *(b + v for b, (_, v) in zip(begins, rows, strict=True))]
    low, high = min(edges), max(edges)
    span = (high - low) or 1.0
    left, right, row_tall = (150, 110, 22) if wide == WIDTH else (124, 74, 22)
    across, tall = wide - left - right, row_tall * len(rows) + 10

    def x(value: float) -> float:
        return left + (value - low) / span * across

    out = [_svg(wide, tall, title, about)]
    out.append(f'<line class="zero" x1="{x(0):.1f}" x2="{x(0):.1f}" y1="2" y2="{tall - 4}"/>')
    for number, (begin, (name, value)) in enumerate(zip(begins, rows, strict=True)):
        y = 4 + number * row_tall
        kind = "total" if number == len(rows) - 1 else "gain" if value >= 0 else "loss"
        x1, x2 = sorted((x(begin), x(begin + value)))
        out.append(f'<text class="label" x="{left - 8}" y="{y + 14}" text-anchor="end">{escape(_words(name))}</text>')
        out.append(f'<rect class="bar {kind}" x="{x1:.1f}" y="{y + 2}" width="{max(x2 - x1, 1.5):.1f}" height="15"/>')
        if number < len(rows) - 1:
            foot = x(begin + value)
            out.append(f'<line class="step" x1="{foot:.1f}" x2="{foot:.1f}" y1="{y + 17}" y2="{y + 26}"/>')
        out.append(f'<text class="value" x="{x2 + 6:.1f}" y="{y + 14}">{escape(dollars(value))}</text>')
    out.append("</svg>")
    return Markup("".join(out))  # numbers and escaped names


@_twice
def bars(
    values: Sequence[tuple[str, float]], *, title: str, about: str, marked: Sequence[bool] = (), wide: int = WIDTH
) -> Markup:
    """Draw one bar a session; `marked` ones are outlined by class."""
    if not values:
        return Markup("")
    tall, left, right = 150, LEFT, RIGHT
    low, high = min(0.0, *(v for _, v in values)), max(0.0, *(v for _, v in values))
    span = (high - low) or 1.0
    step = (wide - left - right) / len(values)
    labels = max(2, wide // 86)

    def y(value: float) -> float:
        return 12 + (high - value) / span * (tall - 40)

    out = [_svg(wide, tall, title, about)]
    out.append(f'<line class="zero" x1="{left}" x2="{wide - right}" y1="{y(0):.1f}" y2="{y(0):.1f}"/>')
    for level in (low, high):
        if level:
            out.append(
                f'<text class="tick" x="{left - 6}" y="{y(level) + 4:.1f}" text-anchor="end">{dollars(level)}</text>'
            )
    for number, (label, value) in enumerate(values):
        x = left + number * step
        top, foot = sorted((y(value), y(0)))
        kind = "gain" if value >= 0 else "loss"
        kind += " marked" if number < len(marked) and marked[number] else ""
        across = min(max(step * 0.72, 1.2), 46)
        out.append(
            f'<rect class="bar {kind}" x="{x + (step - across) / 2:.1f}" y="{top:.1f}" width="{across:.1f}" '
            f'height="{max(foot - top, 1):.1f}"><title>{escape(label)}: {escape(dollars(value))}</title></rect>'
        )
        if len(values) <= min(12, labels) or number % math.ceil(len(values) / labels) == 0:
            out.append(
                f'<text class="tick" x="{x + step / 2:.1f}" y="{tall - 6}" text-anchor="middle">{escape(label)}</text>'
            )
    out.append("</svg>")
    return Markup("".join(out))  # numbers and escaped labels


def interval(one: Sequence[float | None], other: Sequence[float | None], percent: bool, title: str) -> Markup:
    """Draw two estimates with their intervals on one small axis: the candidate above, the incumbent below."""
    numbers = [value for value in (*one, *other) if value is not None]
    if not numbers:
        return Markup("")
    low, high = min(0.0, *numbers), max(0.0, *numbers)
    span = (high - low) or 1.0
    wide, tall = 260, 40

    def x(value: float) -> float:
        return 8 + (value - low) / span * (wide - 16)

    out = [_svg(wide, tall, title, "")]
    out.append(f'<line class="zero" x1="{x(0):.1f}" x2="{x(0):.1f}" y1="2" y2="{tall - 2}"/>')
    for y, kind, estimate in ((12, "a", one), (28, "b", other)):
        if estimate[0] is None:
            continue
        if len(estimate) == 3 and estimate[1] is not None and estimate[2] is not None:
            out.append(
                f'<line class="line {kind}" x1="{x(estimate[1]):.1f}" x2="{x(estimate[2]):.1f}" y1="{y}" y2="{y}"/>'
            )
        if kind == "a":
            out.append(f'<circle class="dot {kind}" cx="{x(estimate[0]):.1f}" cy="{y}" r="4"/>')
        else:
            out.append(f'<rect class="dot {kind}" x="{x(estimate[0]) - 3.5:.1f}" y="{y - 3.5}" width="7" height="7"/>')
    out.append("</svg>")
    return Markup("".join(out))  # numbers only


def dollars(value: float) -> str:
    """Return dollars as a person writes them beside a chart."""
    size, sign = abs(value), "−" if value < 0 else ""
    for limit, unit in ((1e9, "bn"), (1e6, "M"), (1e4, "k")):
        if size >= limit:
            return f"{sign}${size / (1e3 if unit == 'k' else limit):,.4g}{unit}"
    return f"{sign}${size:,.0f}" if size >= 10 else f"{sign}${size:,.2f}"


class _Plot:
    """The frame of a chart over days."""

    def __init__(self, count: int, low: float, high: float, height: int, wide: int) -> None:
        self.count, self.low, self.high, self.height, self.wide = count, low, high, height, wide
        self.tall = height - TOP - BOTTOM

    def x(self, place: int) -> float:
        return LEFT + place / max(self.count - 1, 1) * (self.wide - LEFT - RIGHT)

    def y(self, value: float) -> float:
        return TOP + (self.high - value) / ((self.high - self.low) or 1.0) * self.tall

    def open(self, title: str, about: str) -> str:
        return _svg(self.wide, self.height, title, about)

    def levels(self, money: bool) -> list[str]:
        out, ticks = [], list(_ticks(self.low, self.high))
        # As many digits of a per cent as it takes to tell one level from the next.
        step = 100 * (ticks[1] - ticks[0] if len(ticks) > 1 else 1.0)
        digits = next((n for n in range(7) if math.isclose(round(step, n), step, rel_tol=1e-6)), 7)
        for level in ticks:
            y = self.y(level)
            label = dollars(level) if money else f"{level + 0.0:.{digits}%}".replace("-", "−")
            out.append(f'<line class="grid" x1="{LEFT}" x2="{self.wide - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
            out.append(f'<text class="tick" x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{label}</text>')
        return out

    def days(self, days: Sequence[date]) -> list[str]:
        count = min(6 if self.wide == WIDTH else 3, len(days))
        places = sorted({round(step * (len(days) - 1) / max(count - 1, 1)) for step in range(count)})
        long = (days[-1] - days[0]).days > 500
        out = []
        for place in places:
            anchor = "start" if place == 0 else "end" if place == len(days) - 1 else "middle"
            label = days[place].strftime("%b %Y" if long else "%-d %b %Y")
            x, y = self.x(place), self.height - 8
            out.append(f'<text class="tick" x="{x:.1f}" y="{y}" text-anchor="{anchor}">{label}</text>')
        return out

    def marks(self, days: Sequence[date], values: Sequence[float], marks: Sequence[Mark]) -> list[str]:
        out = []
        drawn: set[tuple[str, int]] = set()
        for mark in marks:
            place = _place(days, mark.day)
            if place >= len(days):
                continue
            x, y = self.x(place), self.y(values[place])
            # Of marks in one place the first is drawn: nobody can see or touch more. The table has them all.
            if (mark.kind, round(x)) in drawn:
                continue
            drawn.add((mark.kind, round(x)))
            if mark.kind in ("deploy", "rollback"):
                shape = (
                    f'<line class="mark {mark.kind}" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{TOP + self.tall:.1f}"/>'
                )
                shape += f'<circle class="mark {mark.kind}" cx="{x:.1f}" cy="{TOP + 4}" r="4"/>'
            else:
                shape = (
                    f'<path class="mark {mark.kind}" d="M{x - 5:.1f} {y - 13:.1f}h10l-5 9z"/>'
                    f'<line class="stem" x1="{x:.1f}" x2="{x:.1f}" y1="{y - 4:.1f}" y2="{y:.1f}"/>'
                )
            shape += f"<title>{escape(mark.label)}</title>"
            out.append(
                f'<a href="{escape(mark.link)}" aria-label="{escape(mark.label)}">{shape}</a>'
                if mark.link
                else f"<g>{shape}</g>"
            )
        return out


def _svg(wide: float, tall: float, title: str, about: str) -> str:
    described = f"<desc>{escape(about)}</desc>" if about else ""
    return (
        f'<svg class="chart" viewBox="0 0 {wide:.0f} {tall:.0f}" role="group" aria-label="{escape(title)}">'
        f"<title>{escape(title)}</title>{described}"
    )


def _place(days: Sequence[date], day: date) -> int:
    return bisect_left(days, day)


def _thinned(count: int, most: int, needed: Sequence[int]) -> list[int]:
    """Return the places that are drawn: all of few, an even choice of many, and those that carry marks."""
    if count <= most:
        return list(range(count))
    step = (count - 1) / (most - 1)
    return sorted({round(number * step) for number in range(most)} | set(needed))


def _range(values: Sequence[float], area: bool) -> tuple[float, float]:
    low, high = min(values), max(values)
    if area:
        low, high = min(low, 0.0), max(high, 0.0)
        return (low, high) if high > low else (-0.01, 0.0)
    room = (high - low) * 0.06 or abs(high) * 0.01 or 1.0
    return low - room, high + room


def _ticks(low: float, high: float) -> list[float]:
    rough = (high - low) / 5
    size = 10 ** math.floor(math.log10(rough)) if rough > 0 else 1.0
    step = next((size * factor for factor in (1, 2, 2.5, 5, 10) if size * factor >= rough), size * 10)
    first = math.ceil(low / step) * step
    return [first + step * number for number in range(9) if first + step * number <= high + step * 1e-9]


def _words(name: str) -> str:
    return name.replace("_", " ")
