"""What each of the thirteen actions does, and when it does nothing: its preconditions.

An effect answers with a number: 1 useful, 0.5 correct but only waiting, 0 without effect, and the reason of a
failed precondition as text.
"""

from __future__ import annotations

from collections.abc import Callable

from oomrl.arenas.organization.actions import Deed
from oomrl.arenas.organization.company import Company, Incident, Plan, Risk, metrics
from oomrl.arenas.organization.rules import ACTIONS, FOCUS, FRESH, SKILLS

Outcome = float | str

DETECTS = {
    "data_analyst": ("data_drift", "quality"),
    "engineer": ("quality", "capacity"),
    "operations": ("capacity",),
    "risk_compliance": ("compliance",),
    "oversight": ("compliance",),
    "product_manager": (),
}
"""Kinds of risk that a role recognises in fresh metrics."""
RESOLVERS = {
    "quality": "engineer",
    "data_drift": "engineer",
    "capacity": "operations",
    "compliance": "operations",
}
INCIDENT_COMPUTE = 5.0


def apply(company: Company, deed: Deed) -> Outcome:
    """Carry out one deed and return what it was worth."""
    if deed.role not in ACTIONS[deed.action]:
        return f"Expected {deed.action} from {', '.join(ACTIONS[deed.action])}, was {deed.role}"
    return _EFFECTS[deed.action](company, deed)


def _propose(company: Company, deed: Deed) -> Outcome:
    focus = deed.payload["plan"]["focus"]
    if any(plan.status == "proposed" and plan.focus == focus for plan in company.plans):
        return f"Expected a new focus, was {focus}, which a plan already proposes"
    company.plans.append(Plan(f"plan-{len(company.plans) + 1}", deed.role, focus))
    return 1.0 if any(r.flagged and FOCUS[r.event.nature] == focus for r in company.known_open()) else 0.0


def _accept(company: Company, deed: Deed) -> Outcome:
    plan = _proposed(company, deed)
    if isinstance(plan, str):
        return plan
    if plan.author == deed.role:
        return "Expected another role than the plan's author, was the author"
    plan.status = "accepted"
    mitigated = [r for r in company.known_open() if r.flagged and FOCUS[r.event.nature] == plan.focus]
    for risk in mitigated:
        risk.mitigated = company.step
        company.respond(risk.event.id)
    company.handoffs += len(mitigated)
    return 1.0 if mitigated else 0.0


def _reject(company: Company, deed: Deed) -> Outcome:
    plan = _proposed(company, deed)
    if isinstance(plan, str):
        return plan
    plan.status = "rejected"
    # Right only when the plan addresses nothing that is known.
    addressed = any(FOCUS[r.event.nature] == plan.focus for r in company.known_open())
    return 0.0 if addressed else 0.5


def _proposed(company: Company, deed: Deed) -> Plan | str:
    for plan in company.plans:
        if plan.id == deed.payload["plan_id"] and plan.status == "proposed":
            return plan
    return f"Expected a proposed plan, was {deed.payload['plan_id'][:60]!r}"


def _delegate(company: Company, deed: Deed) -> Outcome:
    to = deed.payload["to"]
    item = next((item for item in company.works if item.work.id == deed.payload["task_id"]), None)
    if item is None or item.owner is not None:
        return "Expected a task of the backlog, was another"
    if to == "oversight":
        return "Expected a role that works on tasks, was oversight"
    if sum(other.owner == to and other.finished is None for other in company.works) >= 2:
        return f"Expected a role with fewer than two open tasks, was {to}"
    item.owner = to
    item.quality = 1.0 if SKILLS[item.work.kind] == to else 0.6
    company.handoffs += 1
    return 1.0 if item.quality == 1.0 else 0.4


def _request(company: Company, deed: Deed) -> Outcome:
    kind, amount = deed.payload["resource_type"], float(deed.payload["amount"])
    if any(request["resource_type"] == kind for request in company.requests):
        return f"Expected no open request for {kind}, was one"
    company.requests.append({"by": deed.role, "resource_type": kind, "amount": amount})
    needed = kind == "compute" and (company.short > 0 or company.resources["compute"] < 15)
    return 1.0 if needed else 0.0


def _approve(company: Company, deed: Deed) -> Outcome:
    kind, amount = deed.payload["resource_type"], float(deed.payload["amount"])
    request = next((r for r in company.requests if r["resource_type"] == kind), None)
    if request is None or request["by"] == deed.role or amount > request["amount"] + 1e-9:
        return "Expected an open request of another role for at least that amount, was none"
    if kind != "budget" and company.resources["budget"] < amount * 0.5:
        return f"Expected a budget of {amount * 0.5:.1f}, was {company.resources['budget']:.1f}"
    company.requests.remove(request)
    if kind != "budget":
        company.resources["budget"] -= amount * 0.5
    company.resources[kind] += amount
    company.approved += amount
    useful = kind == "compute" and (company.short > 0 or company.resources["compute"] - amount < 15)
    if useful:
        company.handoffs += 1
        company.short = max(0.0, company.short - amount)
        if company.short <= 0:
            for name in [name for name in company.waiting if name.startswith("shortage")]:
                company.respond(name)
    return 1.0 if useful else 0.0


def _query(company: Company, deed: Deed) -> Outcome:
    if deed.role == "risk_compliance":
        company.risk_checked = company.step
    found = False
    for risk in company.risks:
        hidden = risk.event.nature == company.scenario.masked and not company.unmasked
        # The nature is what a specialist recognises, whatever the symptom looks like to others.
        recognised = risk.event.nature in DETECTS[deed.role] and not hidden
        if risk.detected is None and risk.open and recognised:
            risk.detected = company.step
            found = True
    fresh = company.step - company.queried <= FRESH
    company.shown_metrics = metrics(company)
    company.queried = company.step
    return 1.0 if found else 0.0 if fresh else 0.5


def _flag(company: Company, deed: Deed) -> Outcome:
    company.risk_checked = company.step
    for risk in company.known_open():
        if risk.event.id == deed.payload["risk_id"]:
            if risk.flagged:
                return "Expected a risk that is not flagged yet, was a flagged one"
            risk.flagged = True
            company.handoffs += 1
            return 1.0
    return f"Expected a known open risk, was {deed.payload['risk_id'][:60]!r}"


def _report(company: Company, deed: Deed) -> Outcome:
    severity = deed.payload["severity"]
    items: list[Risk | Incident] = [*company.known_open(), *company.open_incidents()]
    for item in items:
        own = item.severity if isinstance(item, Incident) else item.event.severity
        if not item.diagnosed and own == severity:
            item.diagnosed = True
            company.handoffs += 1
            return 1.0
    return f"Expected an undiagnosed risk or incident of severity {severity}, was none"


def _resolve(company: Company, deed: Deed) -> Outcome:
    for incident in company.open_incidents():
        if incident.id == deed.payload["incident_id"]:
            if RESOLVERS[incident.nature] != deed.role:
                return 0.0
            if company.resources["compute"] < INCIDENT_COMPUTE:
                return f"Expected {INCIDENT_COMPUTE:.0f} compute, was {company.resources['compute']:.1f}"
            company.resources["compute"] -= INCIDENT_COMPUTE
            incident.resolved = company.step
            company.respond(incident.origin or incident.id)
            return 1.0
    return f"Expected an open incident, was {deed.payload['incident_id'][:60]!r}"


def _audit(company: Company, deed: Deed) -> Outcome:
    company.risk_checked = company.step
    target = deed.payload["target_agent"]
    if target == deed.role:
        return "Expected another role to audit, was the auditor"
    if any(audit["target"] == target and company.step - audit["step"] < 8 for audit in company.audits):
        return 0.0
    finding = target == company.scenario.auditee and not company.unmasked
    if finding:
        company.unmasked = True
        company.handoffs += 1
    company.audits.append({"step": company.step, "target": target, "finding": finding})
    return 1.0 if finding else 0.3


def _policy(company: Company, deed: Deed) -> Outcome:
    if company.policy_due is None:
        return "Expected a policy change that waits to be adopted, was none"
    wanted = company.policy_due.amount
    if abs(float(deed.payload["policy"]["resource_threshold"]) - wanted) > 1e-9:
        return f"Expected a resource_threshold of {wanted:g}, was another"
    company.threshold = wanted
    company.respond(company.policy_due.id)
    company.policy_due = None
    company.handoffs += 1
    return 1.0


def _wait(company: Company, deed: Deed) -> Outcome:
    return 0.5 if company.quiet() else 0.0


_EFFECTS: dict[str, Callable[[Company, Deed], Outcome]] = {
    "propose_plan": _propose,
    "accept_plan": _accept,
    "reject_plan": _reject,
    "delegate_task": _delegate,
    "request_resource": _request,
    "approve_resource": _approve,
    "query_metrics": _query,
    "raise_risk_flag": _flag,
    "report_anomaly": _report,
    "resolve_incident": _resolve,
    "audit_agent": _audit,
    "update_policy": _policy,
    "no_op": _wait,
}
