"""The diagnostic: a loss as structured JSON, with the paper's keys at the paper's places in a versioned superset.

`event`, `metrics` {daily_pnl, slippage_leakage}, `diagnostics` {module, root_cause, execution_log} and `mandate` are
the paper's; everything else is ours. Sentences written here name no symbol, no date and no amount of dollars: those
stand in fields of their own, so that `masked` can rename, shift and rescale them. Floats are rounded before they are
digested, so that the same loss has the same id on every machine.

Over 400 lines, because the schema and all that walks its fields (digest, mask, screen) change together.
"""

from __future__ import annotations

import hashlib
import json
import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from oomrl.domain import causes
from oomrl.domain.attribution import PARTS
from oomrl.domain.causes import CauseCode, NameRecord, RankedCause, References, StrategyFacts
from oomrl.domain.loss import FRICTION, DayRecord, Loss, Trigger

SCHEMA_VERSION: Literal[1] = 1

#: How many rows of each table a diagnostic carries.
WORST_SESSIONS = 10
WORST_NAMES = 10
LOG_LINES = 40

Dollars = Annotated[float, Field(description="dollars")]
Fraction = Annotated[float, Field(description="a fraction: 0.01 is one percent")]


class Part(BaseModel):
    """A part of a diagnostic: no unknown keys, never changed."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Window(Part):
    """The sessions that the loss spans; it was found after the close of `last`."""

    first: date
    last: date
    sessions: int = Field(ge=1)


class Metrics(Part):
    """What the loss measured. `slippage_leakage` is what delay, spread and impact took over the window."""

    daily_pnl: Dollars
    slippage_leakage: Dollars
    daily_return: Fraction
    window_pnl: Dollars
    window_return: Fraction
    benchmark_return: Fraction
    equity: Dollars
    principal_loss: Fraction
    drawdown: Fraction
    friction: Dollars
    friction_bps: float = Field(description="basis points of the value traded, one side")
    assumed_friction_bps: float
    turnover: float = Field(description="traded value / 2 / average equity, a year")


class Shortfall(Part):
    """Implementation shortfall of the window's orders (Perold 1988): dollars, costs positive.

    Against the decision's close it is delay, path, spread, impact, fees and opportunity (what stayed unfilled); beside
    it what the fills paid against the open (arrival) and against the close of their session.
    """

    orders: int
    notional: Dollars
    delay: Dollars
    path: Dollars
    spread: Dollars
    impact: Dollars
    fees: Dollars
    opportunity: Dollars
    total: Dollars
    bps: float = Field(description="total in basis points of what was ordered")
    against_arrival: Dollars
    against_close: Dollars


class LogLine(Part):
    """One order of the window that cost much, or one event of the account."""

    day: date
    symbol: str
    side: Literal["buy", "sell", ""] = ""
    shares: float = 0.0
    price: Dollars = 0.0
    cost: Dollars = 0.0
    participation: Fraction = 0.0
    unfilled: float = Field(0.0, description="shares left open")
    note: str = ""


class Cause(Part):
    """One ranked cause. `share` is of all that parts with a loss lost; `systematic` dollars would recur."""

    code: CauseCode
    share: Fraction
    dollars: Dollars
    systematic: Dollars
    evidence: str
    module: str
    function: str


class Findings(Part):
    """The paper's block: the suspected module, the root cause, and the execution log; beside them our ranking."""

    module: str
    function: str
    root_cause: str
    execution_log: tuple[LogLine, ...]
    causes: tuple[Cause, ...]
    exceptions: tuple[str, ...] = ()


class SessionLine(Part):
    """One session that carries the loss."""

    day: date
    pnl: Dollars
    market: Dollars
    friction: Dollars


class NameLine(Part):
    """One name that carries the loss."""

    symbol: str
    pnl: Dollars
    friction: Dollars
    traded: Dollars
    weight: Fraction
    participation: Fraction


class Decomposition(Part):
    """The twelve parts of the window's profit or loss."""

    market: Dollars
    selection: Dollars
    limits: Dollars
    cash_drag: Dollars
    delay: Dollars
    spread: Dollars
    impact: Dollars
    fees: Dollars
    unfilled: Dollars
    corporate_actions: Dollars
    model_bills: Dollars
    rounding: Dollars


class Scenario(Part):
    """The slice of tape that reproduces the loss: replay the revision over it with this capital."""

    tape: str = Field(description="digest of the tape")
    first: date
    last: date
    symbols: tuple[str, ...]
    capital: Dollars


class StrategyState(Part):
    """The revision that lost, and its settings."""

    revision: str
    cadence: str
    parameters: dict[str, float | int | str | bool]


class Labels(Part):
    """How to read the figures: simulated money, masked names and dates, a fall that the market explains."""

    simulated: bool
    masked: bool = False
    shared_market: bool = False
    demands_patch: bool = True


class Diagnostic(Part):
    """A loss, explained. Make it with `diagnose`; `id` names its facts, whatever mandate or mask it carries."""

    schema_version: Literal[1] = SCHEMA_VERSION
    id: str
    event: Literal["FINANCIAL_DEGRADATION_DETECTED"] = "FINANCIAL_DEGRADATION_DETECTED"
    loss: str
    trigger: Trigger
    also: tuple[Trigger, ...]
    evidence: str
    labels: Labels
    window: Window
    metrics: Metrics
    diagnostics: Findings
    decomposition: Decomposition
    shortfall: Shortfall | None = None
    sessions: tuple[SessionLine, ...]
    names: tuple[NameLine, ...]
    limits_hit: tuple[str, ...]
    quarantined: tuple[str, ...]
    strategy: StrategyState
    scenario: Scenario
    forbidden: tuple[str, ...]
    mandate: str
    mandate_by: str = Field("rules", description="who wrote the mandate: rules, a model's name, or a person")


#: What no repair may do, whatever the cause.
FORBIDDEN = (
    "hold cash: average exposure must stay close to what it is",
    "stop trading, or trade once for show",
    "borrow, sell short, or hold more than equity",
    "look at dates, symbols or prices of the past by heart",
    "change protected financial mathematics, tests that exist, or the policy",
)

_MANDATES: Mapping[CauseCode, str] = {
    CauseCode.STRATEGY_FAILURE: "Make the decision survive the input that broke it and answer as before elsewhere.",
    CauseCode.CHURN: "Cut turnover to what the signal earns: decide less often, or leave small changes of weight "
    "untraded. Keep the signal and the exposure.",
    CauseCode.BLIND_TO_LIQUIDITY: "Size orders and positions by the volume that the names trade; spread large orders "
    "over sessions. Keep the signal and the exposure.",
    CauseCode.EXECUTION_DECAY: "Bring the cost of trading back to what is assumed: less urgency, limit prices, or "
    "names that cost less to trade.",
    CauseCode.CONCENTRATION: "Hold more names: no single weight may decide the result.",
    CauseCode.WRONG_SIGN: "Find where the direction of the signal is turned round, and turn it back.",
    CauseCode.STALE_SIGNAL: "Use the latest closed session in every input of the decision.",
    CauseCode.WRONG_SIGNAL: "Find which input of the ranking loses, and weaken or mend it; the evidence is weak where "
    "few sessions carry it.",
    CauseCode.LATE_EXECUTION: "Decide such that the next open still serves: less weight on what reverses overnight.",
    CauseCode.MISSED_ORDERS: "Make orders reachable: wider limit prices or more sessions to work them.",
    CauseCode.CORPORATE_ACTIONS: "Account for splits and dividends in every quantity that crosses them.",
    CauseCode.LIMITS: "Ask for what the service's limits and whole shares allow.",
    CauseCode.IDLE_CASH: "Order the trades such that sales fund the buys, and keep the cash at work.",
    CauseCode.MODEL_BILLS: "No code is at fault: use a cheaper model or fewer attempts.",
    CauseCode.SHARED_MARKET: "No change is demanded: the market fell and the account with it.",
}


def diagnose(
    loss: Loss,
    records: Sequence[DayRecord],
    names: Sequence[NameRecord],
    facts: StrategyFacts,
    *,
    tape: str,
    capital: float,
    principal_loss: float,
    drawdown: float,
    simulated: bool,
    log: Sequence[LogLine] = (),
    exceptions: Sequence[str] = (),
    scenario_from: date | None = None,
    shortfall: Shortfall | None = None,
    references: References | None = None,
) -> Diagnostic:
    """Explain a loss from its records; the same arguments give the same diagnostic, byte for byte.

    `records` are the sessions up to the loss (window and history), `names` the table of the window, `tape` the digest
    of the tape, `capital` the equity in dollars at the start of the scenario, which begins at `scenario_from` (default:
    the window's first session). `log` holds orders, of which the costliest are kept; `exceptions` texts of failures.
    """
    window = [record for record in records if loss.first <= record.day <= loss.last]
    ranked = causes.rank(loss, records, names, facts, references)
    top = ranked[0] if ranked else None
    by_code = _MANDATES[top.code] if top else "Nothing points to a cause: escalate to a person."
    content: dict[str, Any] = {
        "loss": loss.id,
        "trigger": loss.trigger,
        "also": tuple(trigger for trigger in loss.statistics if trigger is not loss.trigger),
        "evidence": _plain(loss.evidence),
        "labels": Labels(simulated=simulated, shared_market=loss.shared_market, demands_patch=loss.demands_patch),
        "window": Window(first=loss.first, last=loss.last, sessions=loss.sessions),
        "metrics": _metrics(loss, window, facts, principal_loss, drawdown),
        "diagnostics": Findings(
            module=top.module if top else "",
            function=top.function if top else "",
            root_cause=top.code.value if top else "unknown",
            execution_log=tuple(_log_line(line) for line in _costliest(log)),
            causes=tuple(_cause(cause) for cause in ranked),
            exceptions=tuple(_plain(text) for text in exceptions),
        ),
        "decomposition": Decomposition(**{name: round(loss.parts[name], 2) for name in PARTS}),
        "shortfall": shortfall,
        "sessions": _worst_sessions(window),
        "names": _worst_names(names, window),
        "limits_hit": tuple(sorted({name for record in window for name in record.limits_hit})),
        "quarantined": tuple(sorted({symbol for record in window for symbol in record.quarantined})),
        "strategy": StrategyState(
            revision=facts.revision, cadence=facts.cadence, parameters=dict(sorted(facts.parameters.items()))
        ),
        "scenario": Scenario(
            tape=tape,
            first=scenario_from or loss.first,
            last=loss.last,
            symbols=tuple(sorted(name.symbol for name in names)),
            capital=round(capital, 2),
        ),
        "forbidden": FORBIDDEN,
        "mandate": by_code,
    }
    draft = Diagnostic(id="", **content)
    return draft.model_copy(update={"id": _identify(draft)})


def to_json(diagnostic: Diagnostic) -> str:
    """Write a diagnostic as indented JSON that ends in a newline."""
    return json.dumps(diagnostic.model_dump(mode="json"), indent=2, ensure_ascii=False) + "\n"


def schema() -> str:
    """Return the JSON Schema as it is published in docs/schemas/diagnostic.schema.json."""
    body = {"$schema": "https://json-schema.org/draft/2020-12/schema", **Diagnostic.model_json_schema()}
    return json.dumps(body, indent=2, sort_keys=True) + "\n"


@dataclass(frozen=True, slots=True)
class Mask:
    """Say how names, dates and dollars are hidden from a model.

    `symbols` maps every symbol to its mask, `days` shifts dates (whole weeks keep weekdays), `scale` multiplies prices
    and dollars. `price_parameters` are the strategy's parameters that are dollars and scale with them.
    """

    symbols: Mapping[str, str]
    days: int = 0
    scale: float = 1.0
    price_parameters: frozenset[str] = field(default_factory=frozenset)

    def __post_init__(self) -> None:
        if self.days % 7 or not self.scale > 0:
            raise ValueError(f"Expected whole weeks and a scale above 0, was {self.days} days and {self.scale}")

    def symbol(self, name: str) -> str:
        if name and name not in self.symbols:
            raise ValueError("Expected a mask for every symbol of the diagnostic, was one without. Number all symbols.")
        return self.symbols[name] if name else name

    def day(self, day: date) -> date:
        return day + timedelta(days=self.days)

    def text(self, text: str) -> str:
        """Rename symbols and shift ISO dates in a text that others wrote."""
        if self.symbols:
            longest = sorted(self.symbols, key=len, reverse=True)
            pattern = r"(?<![\w.])(" + "|".join(map(re.escape, longest)) + r")(?!\w)"
            text = re.sub(pattern, lambda match: self.symbols[match[1]], text)
        return re.sub(r"\b(\d{4})-(\d\d)-(\d\d)\b", self._shift, text)

    def _shift(self, match: re.Match[str]) -> str:
        try:
            return self.day(date(int(match[1]), int(match[2]), int(match[3]))).isoformat()
        except (ValueError, OverflowError):
            return "0000-00-00"


def numbered(symbols: Sequence[str]) -> dict[str, str]:
    """Map symbols to N001, N002, ... in the order given: shuffle them first, with a seed of the run."""
    width = max(3, len(str(len(symbols))))
    return {symbol: f"N{number:0{width}d}" for number, symbol in enumerate(symbols, start=1)}


def masked(diagnostic: Diagnostic, mask: Mask) -> Diagnostic:
    """Rename symbols, shift dates and rescale dollars, everywhere. Rates, shares of volume and the id stay."""
    if diagnostic.labels.masked:
        raise ValueError("Expected an unmasked diagnostic, was a masked one")
    money = frozenset(
        f"{model.__name__}.{name}"
        for model in (Metrics, Shortfall, LogLine, Cause, SessionLine, NameLine, Decomposition, Scenario)
        for name, described in model.model_fields.items()
        if described.description == "dollars"
    )
    hidden = _mask(diagnostic, mask, money)
    assert isinstance(hidden, Diagnostic)
    parameters = {
        name: value * mask.scale if name in mask.price_parameters and isinstance(value, (int, float)) else value
        for name, value in diagnostic.strategy.parameters.items()
    }
    return hidden.model_copy(
        update={
            "labels": diagnostic.labels.model_copy(update={"masked": True}),
            "scenario": hidden.scenario.model_copy(update={"tape": "masked"}),
            "strategy": diagnostic.strategy.model_copy(update={"parameters": parameters}),
        }
    )


#: Fields that hold symbols, and fields whose text others wrote.
_SYMBOLS = frozenset({"symbol", "symbols", "quarantined"})
_TEXTS = frozenset({"note", "exceptions", "evidence", "mandate"})


def _mask(value: Any, mask: Mask, money: frozenset[str], name: str = "", owner: str = "") -> Any:
    """Walk a model and mask each leaf by what its field holds."""
    if isinstance(value, Part):
        kind = type(value).__name__
        changed = {key: _mask(getattr(value, key), mask, money, key, kind) for key in type(value).model_fields}
        return value.model_copy(update=changed)
    if isinstance(value, tuple):
        return tuple(_mask(item, mask, money, name, owner) for item in value)
    if isinstance(value, date):
        return mask.day(value)
    if isinstance(value, str) and name in _SYMBOLS:
        return mask.symbol(value)
    if isinstance(value, str) and name in _TEXTS:
        return mask.text(value)
    if isinstance(value, float) and f"{owner}.{name}" in money:
        return round(value * mask.scale, 4)
    return value


def one_screen(diagnostic: Diagnostic, width: int = 100) -> str:
    """Lay a diagnostic out for a person: at most 40 lines of `width` columns, without control characters."""
    d, m = diagnostic, diagnostic.metrics
    labels = ", ".join(name for name, on in (("simulated", d.labels.simulated), ("masked", d.labels.masked)) if on)
    verdict = "demands a patch" if d.labels.demands_patch else "shared with the market, demands no patch"
    lines = [
        f"{d.trigger.value.replace('_', ' ').upper()}: {_money(abs(m.window_pnl))} "
        f"{'lost' if m.window_pnl < 0 else 'gained all the same'} in {d.window.sessions} sessions, "
        f"{d.window.first} to {d.window.last}",
        f"{d.id}   {labels}   {verdict}",
        "",
        *textwrap.wrap(d.evidence, width)[:3],
        f"Return {m.window_return:+.2%} against the benchmark's {m.benchmark_return:+.2%}; principal loss "
        f"{m.principal_loss:.1%}, drawdown {m.drawdown:.1%}",
        f"Turnover {m.turnover:.1f} a year, friction {m.friction_bps:.1f} bps a side ({m.assumed_friction_bps:.1f} "
        f"assumed), {_money(m.friction)} in all",
        *_shortfall_line(d.shortfall),
        "",
        "Where it went",
        *_bars(d.decomposition),
        "",
        "Why",
    ]
    for place, cause in enumerate(d.diagnostics.causes[:3], start=1):
        where = f"  [{cause.module}:{cause.function}]" if cause.module else ""
        lines.append(f"{place}. {cause.code.value.replace('_', ' ')}: {cause.share:.0%} of what was lost{where}")
        lines.extend(textwrap.wrap(cause.evidence, width, initial_indent="   ", subsequent_indent="   ")[:2])
    worst = ", ".join(f"{name.symbol} {_money(name.pnl)}" for name in d.names[:5])
    days = ", ".join(f"{line.day} {_money(line.pnl)}" for line in d.sessions[:3])
    lines += ["", f"Names: {worst}", f"Sessions: {days}"]
    if d.limits_hit:
        lines.append("Limits hit: " + ", ".join(d.limits_hit))
    if d.diagnostics.exceptions:
        lines.append("Failed with: " + d.diagnostics.exceptions[-1].strip().splitlines()[-1])
    lines += ["", *textwrap.wrap(f"Mandate ({d.mandate_by}): {d.mandate}", width)[:3]]
    return "\n".join(_printable(line)[:width].rstrip() for line in lines) + "\n"


def _shortfall_line(found: Shortfall | None) -> list[str]:
    if found is None or not found.orders:
        return []
    return [
        f"Shortfall of {found.orders} orders {_money(found.total)} ({found.bps:.1f} bps of {_money(found.notional)} "
        f"ordered), {_money(found.opportunity)} of it unfilled"
    ]


def _bars(parts: Decomposition) -> list[str]:
    values = {name: getattr(parts, name) for name in PARTS}
    largest = sorted(PARTS, key=lambda name: -abs(values[name]))[:9]
    shown = [name for name in PARTS if name in largest and abs(values[name]) >= 0.005]
    most = max((abs(values[name]) for name in shown), default=1.0)
    lengths = {name: max(1, round(30 * abs(values[name]) / most)) for name in shown}
    return [
        f"  {name.replace('_', ' '):<18}{_money(values[name]):>16}  {('-' if values[name] < 0 else '+') * length}"
        for name, length in lengths.items()
    ]


def _money(value: float) -> str:
    return f"{'-' if value < 0 else ''}${abs(value):,.2f}"


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in text)


def _plain(text: str) -> str:
    """Keep what can be shown safely: printable characters and line breaks, at most 4,000."""
    return "".join(c if c.isprintable() or c == "\n" else "?" for c in text[-4000:])


def _metrics(
    loss: Loss, window: Sequence[DayRecord], facts: StrategyFacts, principal_loss: float, drawdown: float
) -> Metrics:
    rates = causes.figures(window)
    last = window[-1]
    own, benchmark = 1.0, 1.0
    for record in window:
        base = record.equity - record.pnl
        own *= 1.0 + ((record.pnl - sum(record.quarantined.values())) / base if base > 0 else 0.0)
        benchmark *= 1.0 + record.benchmark_return
    daily = last.pnl - sum(last.quarantined.values())
    base = last.equity - last.pnl
    return Metrics(
        daily_pnl=round(daily, 2),
        slippage_leakage=round(-(loss.parts["delay"] + loss.parts["spread"] + loss.parts["impact"]), 2),
        daily_return=round(daily / base, 8) if base > 0 else 0.0,
        window_pnl=round(loss.pnl, 2),
        window_return=round(own - 1.0, 8),
        benchmark_return=round(benchmark - 1.0, 8),
        equity=round(last.equity, 2),
        principal_loss=round(principal_loss, 8),
        drawdown=round(drawdown, 8),
        friction=round(rates.friction, 2),
        friction_bps=round(rates.friction_bps, 4),
        assumed_friction_bps=facts.assumed_friction_bps,
        turnover=round(rates.turnover, 4),
    )


def _cause(cause: RankedCause) -> Cause:
    return Cause(
        code=cause.code,
        share=cause.share,
        dollars=cause.dollars,
        systematic=cause.systematic,
        evidence=_plain(cause.evidence),
        module=cause.module,
        function=cause.function,
    )


def _costliest(log: Sequence[LogLine]) -> list[LogLine]:
    """Keep the costliest orders, in the order in which they happened."""
    kept = sorted(range(len(log)), key=lambda i: (-log[i].cost, i))[:LOG_LINES]
    return [log[i] for i in sorted(kept)]


def _log_line(line: LogLine) -> LogLine:
    rounded = {name: round(getattr(line, name), 6) for name in ("shares", "price", "cost", "participation", "unfilled")}
    return line.model_copy(update={**rounded, "note": _plain(line.note)})


def _worst_sessions(window: Sequence[DayRecord]) -> tuple[SessionLine, ...]:
    judged = [(record.pnl - sum(record.quarantined.values()), record) for record in window]
    worst = sorted((pair for pair in judged if pair[0] < 0), key=lambda pair: (pair[0], pair[1].day))[:WORST_SESSIONS]
    return tuple(
        SessionLine(
            day=record.day,
            pnl=round(pnl, 2),
            market=round(record.parts["market"], 2),
            friction=round(-sum(record.parts[name] for name in FRICTION), 2),
        )
        for pnl, record in worst
    )


def _worst_names(names: Sequence[NameRecord], window: Sequence[DayRecord]) -> tuple[NameLine, ...]:
    judged = [(name.pnl - sum(r.quarantined.get(name.symbol, 0.0) for r in window), name) for name in names]
    worst = sorted((pair for pair in judged if pair[0] < 0), key=lambda pair: (pair[0], pair[1].symbol))[:WORST_NAMES]
    return tuple(
        NameLine(
            symbol=name.symbol,
            pnl=round(pnl, 2),
            friction=round(-sum(name.parts.get(part, 0.0) for part in FRICTION), 2),
            traded=round(name.traded, 2),
            weight=round(name.weight, 6),
            participation=round(name.participation, 6),
        )
        for pnl, name in worst
    )


def _identify(draft: Diagnostic) -> str:
    """Digest the facts; mandate and author are no facts."""
    facts = draft.model_dump(mode="json", exclude={"id", "mandate", "mandate_by"})
    text = json.dumps(facts, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return "diag-" + hashlib.sha256(text.encode()).hexdigest()[:16]
