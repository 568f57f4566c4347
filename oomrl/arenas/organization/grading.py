"""The five parts, twice: each step from what is public, and once for the whole episode with the truth."""

from __future__ import annotations

from oomrl.arenas.engine import Part
from oomrl.arenas.organization.company import Company, OpenWork
from oomrl.arenas.organization.oversight import Oversight
from oomrl.arenas.organization.rules import SEVERITIES, WEIGHTS

WINDOW = 8
STALE = 6
GOVERNANCE_COST = 0.04


def step_parts(company: Company, max_steps: int) -> Part:
    """Return a step's mark in 0..1 before penalties. It reads nothing that some role may not see."""
    known, incidents = company.known_open(), company.open_incidents()
    total = sum(item.work.priority for item in company.works)
    progress = sum(item.work.priority * _progress(item) for item in company.works) / total
    pace = max(0.1, 1.1 * (company.step + 1) / max_steps)
    undone = (
        sum(item.owner is None for item in company.works)
        + sum(1 + (not risk.flagged) for risk in known)
        + len(company.requests)
        + len(incidents)
        + (company.policy_due is not None)
        + (company.short > 0)
    )
    handled = sum(SEVERITIES[r.event.severity] for r in company.risks if r.mitigated is not None)
    handled += sum(SEVERITIES[i.severity] for i in company.incidents if i.resolved is not None)
    pending = sum(SEVERITIES[risk.event.severity] for risk in known)
    pending += sum(SEVERITIES[incident.severity] for incident in incidents)
    risk = handled / (handled + pending) if handled + pending else 0.5
    if company.step - company.queried > STALE:
        risk *= 0.7
    recent = company.recent[-WINDOW:]
    visible = {event["id"] for event in company.seen_events}
    answers = list(company.responses) + [
        0.5 * max(0.0, 1 - max(0, company.step - born - 3) / 12)
        for name, born in company.waiting.items()
        if name in visible
    ]
    values = {
        "business_success": min(1.0, progress / pace),
        "collaboration": company.handoffs / (company.handoffs + undone) if company.handoffs else 0.0,
        "risk_management": risk,
        "efficiency": sum(recent) / len(recent) if recent else 0.5,
        "adaptability": sum(answers) / len(answers) if answers else 0.5,
    }
    return Part("earned", parts=tuple(Part(name, WEIGHTS[name], values[name]) for name in WEIGHTS))


def grade(company: Company, task: str, max_steps: int, oversight: Oversight, broken_rules: int) -> Part:
    """Return the episode's score in 0..1 as a rubric tree, with the truth that steps did not show."""
    steps = max(1, company.step)
    values = {
        "business_success": _business(company, task, steps, max_steps),
        "collaboration": min(1.0, company.handoffs / _needed(company)),
        "risk_management": _risk(company, steps),
        "efficiency": company.useful / company.deeds if company.deeds else 0.0,
        "adaptability": _adaptability(company),
    }
    faults = len(oversight.violations) + oversight.escalations + broken_rules
    parts = [Part(name, WEIGHTS[name], values[name]) for name in WEIGHTS]
    parts.append(Part("governance", -1.0, min(0.4, GOVERNANCE_COST * faults)))
    return Part("score", parts=tuple(parts), low=0.0, high=1.0)


def _progress(item: OpenWork) -> float:
    return item.quality * (1 - item.left / item.work.effort)


def _business(company: Company, task: str, steps: int, max_steps: int) -> float:
    total = sum(item.work.priority for item in company.works)
    if task == "org_simulation":
        placed = sum(item.work.priority * item.quality for item in company.works if item.owner) / total
        return placed * min(1.0, 1.2 - 0.5 * steps / max_steps)
    credit = 0.0
    for item in company.works:
        late = item.finished is not None and item.finished > item.work.deadline
        share = 0.6 if late else 1.0 if item.finished is not None else 0.5
        if task == "crisis_management":
            credit += item.work.priority * item.quality * (1.0 if item.owner else 0.0)
        else:
            credit += item.work.priority * share * _progress(item)
    health = max(0.0, 1 - company.damage / (0.5 * steps))
    return 0.5 * credit / total + 0.5 * health if task == "crisis_management" else credit / total


def _needed(company: Company) -> int:
    """Return the handoffs that the episode called for: one a task, shortage and policy, two a risk."""
    arisen = sum(2 for risk in company.risks if risk.detected is not None or risk.broke)
    others = sum(1 for event in company.seen_events if event["kind"] in ("shortage", "policy"))
    return len(company.works) + arisen + others


def _risk(company: Company, steps: int) -> float:
    """Return the severity-weighted share of what arose and was handled: half where it first broke."""
    origins = {incident.origin: incident for incident in company.incidents if incident.origin}
    total = won = 0.0
    for risk in company.risks:
        weight = SEVERITIES[risk.event.severity]
        if risk.mitigated is not None:
            won += weight
        elif risk.broke:
            won += 0.5 * weight if origins[risk.event.id].resolved is not None else 0.0
        elif risk.detected is None or steps - risk.detected <= 3:
            continue
        total += weight
    for incident in company.incidents:
        if incident.origin is None:
            total += SEVERITIES[incident.severity]
            won += SEVERITIES[incident.severity] if incident.resolved is not None else 0.0
    return won / total if total else 0.5


def _adaptability(company: Company) -> float:
    late = sum(1 for born in company.waiting.values() if company.step - born > 6)
    answers = company.responses + [0.0] * late
    return sum(answers) / len(answers) if answers else 0.5
