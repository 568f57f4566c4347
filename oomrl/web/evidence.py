"""What a reviewer weighs, laid out from stored JSON: the loss, the gate's verdict, and candidate against incumbent.

Stored payloads may be of an older version or of another gate: what is missing is left out, nothing is made up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import accumulate
from typing import Any

from markupsafe import Markup

from guardrails.policy import PolicyError, parse_policy
from oomrl.domain.attribution import PARTS
from oomrl.domain.people import Remark
from oomrl.domain.records import Mark, StoredDiagnostic, StoredVerdict, cautions, changed_decisions, lock_steps
from oomrl.web import charts

#: What the layers are for, in a reviewer's words.
RUNS = {"off": "not run: nothing asked for it", "skipped": "not reached: something before it decided"}
LAYERS = {
    "patch": "the patch is one clean diff within its limits",
    "static": "the source says only what the policy allows",
    "protected": "protected mathematics is untouched",
    "lock": "tests are locked while code changes, and code while tests do",
    "sandbox": "the sandbox holds: every canary failed to get out",
    "tests": "all tests pass",
    "coverage": "statements and branches are covered",
    "acceptance": "golden cases and scenarios hold, and what no test tells decides as before",
    "hidden": "hidden properties hold",
    "references": "new tests pass on good versions and fail on bad ones",
    "probes": "covered lines really run",
    "mutants": "tests notice damage to the changed lines",
    "extra": "further judges agree",
}


@dataclass(frozen=True, slots=True)
class Lost:
    """What lost money: one sentence, the waterfall, the sessions that failed, causes and names."""

    sentence: str
    waterfall: Markup
    sessions: Markup
    rows: list[dict[str, Any]]
    causes: list[dict[str, Any]]
    names: list[dict[str, Any]]
    parts: dict[str, float]
    exceptions: list[str]
    evidence: str


def lost(diagnostic: StoredDiagnostic, marks: Sequence[Mark]) -> Lost:
    """Return what a diagnostic says, for a person."""
    payload: Mapping[str, Any] = diagnostic.payload
    metrics = _map(payload.get("metrics"))
    window, found = _map(payload.get("window")), _map(payload.get("diagnostics"))
    causes = [_map(one) for one in found.get("causes") or ()]
    pnl, count = float(metrics.get("window_pnl") or 0.0), int(window.get("sessions") or 1)
    cause = str(found.get("root_cause") or "unknown").replace("_", " ")
    why = f": {causes[0].get('evidence')}" if causes else ""
    verb = "lost" if pnl < 0 else "made"
    sessions = f"{count} session{'s' if count != 1 else ''}"
    span = f"{window.get('first')} to {window.get('last')}"
    amount = charts.dollars(abs(pnl))
    sentence = f"The strategy {verb} {amount} in {sessions} ({span}). First to repair: {cause}{why}."
    found_parts = _map(payload.get("decomposition"))
    parts = {name: float(found_parts[name]) for name in PARTS if _number(found_parts.get(name))}
    rows = [dict(_map(one)) for one in payload.get("sessions") or ()]
    worst = {str(row.get("day")) for row in rows}
    first, last = _day(window.get("first")), _day(window.get("last"))
    shown = [mark for mark in marks if first <= mark.day <= last][-260:]
    chart = charts.bars(
        [(mark.day.strftime("%-d %b %Y") if count < 13 else mark.day.isoformat(), float(mark.pnl)) for mark in shown],
        title="Profit and loss of each session of the window",
        about=f"{len(worst)} sessions carry the loss and are outlined.",
        marked=[mark.day.isoformat() in worst for mark in shown],
    )
    return Lost(
        sentence=sentence,
        waterfall=charts.waterfall(parts, title="Where the money went", about=sentence) if parts else Markup(""),
        sessions=chart,
        rows=rows,
        causes=[dict(one) for one in causes],
        names=[dict(_map(one)) for one in payload.get("names") or ()],
        parts=parts,
        exceptions=[str(text) for text in found.get("exceptions") or ()],
        evidence=str(payload.get("evidence") or ""),
    )


@dataclass(frozen=True, slots=True)
class Gate:
    """What the gate found: the outcome, findings (the gravest first), each stage by phase, and the lock's steps."""

    outcome: str
    findings: list[dict[str, Any]]
    stages: list[dict[str, Any]]
    refusals: list[dict[str, Any]]
    promotion: Mapping[str, Any]
    profile: str
    warnings: list[str]
    lock: list[str]


def gate(verdict: StoredVerdict | None) -> Gate:
    """Return a verdict for a person: failures first, then warnings, then what passed."""
    if verdict is None:
        return Gate("not judged yet", [], [], [], {}, "", [], [])
    payload: Mapping[str, Any] = verdict.payload
    findings, stages, profile, warnings = [], [], "", []
    for phase, one in _map(payload.get("phases")).items():
        findings += [{**_map(item), "phase": phase} for item in _map(one).get("findings") or ()]
        for stage in _map(one).get("stages") or ():
            meaning = RUNS.get(str(_map(stage).get("status")), LAYERS.get(str(_map(stage).get("name")), ""))
            stages.append({**_map(stage), "phase": phase, "meaning": meaning})
        profile = str(_map(_map(one).get("sandbox")).get("profile") or profile)
        warnings += [f"repaired on the way in: {text}" for text in _map(one).get("repairs") or ()]
        mutation = _map(_map(one).get("mutation"))
        alive = int(mutation.get("mutants") or 0) - int(mutation.get("killed") or 0)
        if alive > 0:
            warnings.append(f"{alive} of {mutation['mutants']} mutants of the changed code survived the tests")
    if payload.get("unfit"):
        findings.append({"code": "unfit", "reason": str(payload["unfit"])})
    order = {"error": 0, "refuse": 1, "pass": 2, "skipped": 3, "off": 4}
    stages.sort(key=lambda stage: order.get(str(stage.get("status")), 1))
    if profile == "S2":
        warnings.append("judged in profile S2, without namespaces")
    warnings += [*changed_decisions(verdict), *cautions(verdict)]
    promotion = _map(payload.get("promotion"))
    refusals = [dict(_map(one)) for one in promotion.get("refusals") or ()]
    lock = [str(step["event"]) for step in lock_steps(verdict)]
    return Gate(verdict.outcome, findings, stages, refusals, promotion, profile, warnings, lock)


@dataclass(frozen=True, slots=True)
class Compared:
    """Candidate against incumbent: charts of both, and figures with intervals."""

    equity: Markup
    drawdown: Markup
    figures: list[dict[str, Any]]
    windows: list[dict[str, Any]]
    tests: list[dict[str, Any]]
    rows: list[tuple[date, float, float, float, float]]


_FIGURES = (
    ("annualised_return", "annualised return", True),
    ("sharpe", "Sharpe ratio", False),
    ("max_drawdown", "maximum drawdown", True),
    ("information_ratio", "information ratio", False),
    ("turnover", "turnover a year", False),
    ("friction_a_year", "friction a year", True),
    ("exposure", "share of equity invested", True),
)


def compared(verdict: StoredVerdict | None) -> Compared | None:
    """Return the counterfactual replay for a person; None where the gate made none."""
    found = _map(_map(verdict.payload if verdict else None).get("comparison"))
    days = [_day(text) for text in found.get("days") or ()]
    if len(days) < 2:
        return None
    one, other = _wealth(found.get("candidate")), _wealth(found.get("incumbent"))
    low = [a * b for a, b in zip(other, found.get("band_low") or (), strict=False)]
    high = [a * b for a, b in zip(other, found.get("band_high") or (), strict=False)]
    windows = [dict(_map(window)) for window in found.get("windows") or ()]
    spans = [
        (_day(w.get("first")), _day(w.get("last")), "held back" if w.get("held_back") else "the loss") for w in windows
    ]
    equity = charts.lines(
        days,
        [charts.Line("candidate", "a", one), charts.Line("incumbent", "b", other)],
        title="Candidate against incumbent, replayed",
        about=f"One dollar becomes {one[-1]:.3f} with the candidate and {other[-1]:.3f} with the incumbent. "
        "The band is where nine of ten changes without any effect would end.",
        spans=spans,
        band=(low, high) if len(low) == len(days) == len(high) else None,
        money=False,
    )
    drawdown = charts.lines(
        days,
        [charts.Line("candidate", "a", _falls(one)), charts.Line("incumbent", "b", _falls(other))],
        title="Drawdown of both",
        about=f"Deepest: candidate {min(_falls(one)):.1%}, incumbent {min(_falls(other)):.1%}.",
        money=False,
        height=120,
    )
    sides = _map(found.get("figures"))
    figures = []
    for key, name, share in _FIGURES:
        a, b = _map(sides.get("candidate")).get(key), _map(sides.get("incumbent")).get(key)
        if a and b:
            chart = charts.interval(a, b, share, f"{name}: candidate and incumbent")
            figures.append({"name": name, "percent": share, "candidate": a, "incumbent": b, "chart": chart})
    promotion = _map(_map(verdict.payload if verdict else None).get("promotion"))
    tests = [{"name": name, **_map(test)} for name, test in _map(promotion.get("tests")).items()]
    # The curves in numbers, some thirty of their days, for who does not see them.
    step = max(1, len(days) // 30)
    shown = sorted({*range(0, len(days), step), len(days) - 1})
    rows = list(zip(days, one, other, _falls(one), _falls(other), strict=True))
    return Compared(equity, drawdown, figures, windows, tests, [rows[place] for place in shown])


def deltas(verdict: StoredVerdict | None, earlier: StoredVerdict | None) -> list[dict[str, Any]]:
    """Return coverage and mutants of the changed lines, and what they were for the change that is deployed."""
    now, then = _measured(verdict), _measured(earlier)
    return [{"name": name, "now": value, "before": then.get(name)} for name, value in now.items()]


def needed(policy: bytes | None) -> dict[str, float]:
    """Return what the strategy's policy asks for at least, by the name of the measure; nothing where it has none."""
    try:
        rules = parse_policy(policy or b"")
    except PolicyError:
        return {}
    return {
        "statements covered": rules.coverage.total,
        "branches covered": rules.coverage.total,
        "mutants of the changed lines killed": rules.mutation.minimum,
    }


def changed_lines(verdict: StoredVerdict | None) -> list[dict[str, Any]]:
    """Return each changed file with how many of its changed statements and branches the tests reach, and missed."""
    found: list[dict[str, Any]] = []
    for phase, one in _map(_map(verdict.payload if verdict else None).get("phases")).items():
        for path, kinds in _map(_map(_map(one).get("coverage")).get("changed")).items():
            sides = {kind: _map(_map(kinds).get(kind)) for kind in ("statements", "branches")}
            missed = sorted({int(line) for side in sides.values() for line in side.get("missed") or ()})
            counts = {
                kind: (int(side.get("possible") or 0) - len(side.get("missed") or ()), int(side.get("possible") or 0))
                for kind, side in sides.items()
            }
            found.append({"phase": phase, "path": path, "missed": missed, **counts})
    return found


def survivors(verdict: StoredVerdict | None) -> list[dict[str, Any]]:
    """Return the mutants of the changed code that no test noticed: where, and what stood there instead."""
    phases = _map(_map(verdict.payload if verdict else None).get("phases"))
    return [
        {"phase": phase, **_map(mutant)}
        for phase, one in phases.items()
        for mutant in _map(_map(one).get("mutation")).get("survivors") or ()
    ]


def no_mutants(verdict: StoredVerdict | None) -> list[tuple[str, str]]:
    """Return the phases in which no mutant was made, and why."""
    phases = _map(_map(verdict.payload if verdict else None).get("phases"))
    found = [(phase, _map(_map(one).get("mutation")).get("none")) for phase, one in phases.items()]
    return [(phase, str(why)) for phase, why in found if why]


def _measured(verdict: StoredVerdict | None) -> dict[str, float]:
    found: dict[str, float] = {}
    for one in _map(_map(verdict.payload if verdict else None).get("phases")).values():
        coverage, mutation = _map(_map(one).get("coverage")), _map(_map(one).get("mutation"))
        for key in ("statements", "branches"):
            if _number(coverage.get(key)):
                found[f"{key} covered"] = float(coverage[key])
        if mutation.get("mutants"):
            found["mutants of the changed lines killed"] = int(mutation["killed"]) / int(mutation["mutants"])
    return found


def by_place(remarks: Sequence[Remark]) -> dict[tuple[str, str, int], list[Remark]]:
    """Return remarks by the line under which they are shown."""
    found: dict[tuple[str, str, int], list[Remark]] = {}
    for remark in remarks:
        if remark.path and remark.line:
            found.setdefault((remark.path, remark.side, remark.line), []).append(remark)
    return found


def _wealth(returns: Sequence[float] | None) -> list[float]:
    return list(accumulate((1.0 + float(r) for r in returns or ()), lambda a, b: a * b))


def _falls(wealth: Sequence[float]) -> list[float]:
    tops = accumulate(wealth, max)
    return [value / top - 1.0 if top > 0 else 0.0 for value, top in zip(wealth, tops, strict=True)]


def _map(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _day(value: object) -> date:
    try:
        return date.fromisoformat(str(value))
    except ValueError:
        return date.min
