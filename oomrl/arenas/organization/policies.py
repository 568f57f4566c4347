"""Random, heuristic and oracle, for one agent in all roles and for six agents who see their own slices."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

from oomrl.arenas.engine import Action, Engine, Json, Observation, Policy
from oomrl.arenas.organization.company import Company
from oomrl.arenas.organization.effects import DETECTS, RESOLVERS
from oomrl.arenas.organization.engine import Organization
from oomrl.arenas.organization.rules import ACTIONS, FOCUS, RESOURCES, ROLES, SEVERITIES, SKILLS, SYMPTOM
from oomrl.errors import Mistake

NATURE_OF = {symptom: nature for nature, symptom in SYMPTOM.items()}
PATROL = ("data_analyst", "engineer", "risk_compliance")
"""Between them they recognise all four kinds of risk."""
Chore = tuple[int, str, str, Json]
"""Urgency (small first), role, action, payload."""


def deed(role: str, action: str, **payload: Any) -> Json:
    """Return a single-agent action."""
    return {"role": role, "action": action, "payload": payload}


def random_policy(seed: int, engine: Engine) -> Policy:
    """Choose a role, one of its actions, and a payload out of what the role sees."""
    draw = Random(f"organization-random:{seed}")

    def one(role: str, seen: Json) -> Json:
        action = draw.choice([name for name, roles in ACTIONS.items() if role in roles])
        return {"action": action, "payload": _random_payload(draw, action, seen)}

    def act(observation: Observation) -> Action:
        views = observation.data["agent_observations"]
        if observation.data["mode"] == "six":
            return {"actions": {role: one(role, views[role]) for role in ROLES}}
        role = draw.choice(ROLES)
        return {"role": role, **one(role, views[role])}

    return act


def _random_payload(draw: Random, action: str, seen: Json) -> Json:
    def some(name: str, fallback: str) -> str:
        ids = [item["id"] for item in seen.get(name, [])]
        return draw.choice(ids) if ids else fallback

    makers: dict[str, Any] = {
        "propose_plan": lambda: {"plan": {"focus": draw.choice(list(FOCUS.values()))}},
        "accept_plan": lambda: {"plan_id": some("plans", "plan-1")},
        "reject_plan": lambda: {"plan_id": some("plans", "plan-1")},
        "delegate_task": lambda: {"task_id": some("tasks", "task-1"), "to": draw.choice(ROLES)},
        "request_resource": lambda: {
            "amount": draw.randint(1, 40),
            "resource_type": draw.choice(RESOURCES),
        },
        "approve_resource": lambda: {
            "amount": draw.randint(1, 40),
            "resource_type": draw.choice(RESOURCES),
        },
        "raise_risk_flag": lambda: {"risk_id": some("risks", "risk-1"), "description": "a risk"},
        "report_anomaly": lambda: {
            "description": "an anomaly",
            "severity": draw.choice(list(SEVERITIES)),
        },
        "resolve_incident": lambda: {"incident_id": some("incidents", "incident-1")},
        "audit_agent": lambda: {"target_agent": draw.choice(ROLES)},
        "update_policy": lambda: {"policy": {"resource_threshold": draw.randint(5, 30)}},
    }
    payload: Json = makers[action]() if action in makers else {}
    return payload


def heuristic(seed: int, engine: Engine) -> Policy:
    """Let each role do its most urgent chore by what it sees; patrol the metrics when nothing presses."""
    memory = {"asked": -9, "checked": -9, "patrol": 0, "audit": 0, "audited": 0}

    def act(observation: Observation) -> Action:
        data = observation.data
        step, views = data["step_count"], data["agent_observations"]
        chores = sorted(
            (chore for role in ROLES for chore in _chores(role, views[role], step, memory)),
            key=lambda chore: (chore[0], ROLES.index(chore[1])),
        )
        if data["mode"] == "single":
            _, role, action, payload = chores[0]
            _remember(memory, step, role, action)
            return {"role": role, "action": action, "payload": payload}
        taken: dict[str, Json] = {}
        used: set[str] = set()
        for _, role, action, payload in chores:
            subject = action + str(sorted(payload.items(), key=str))
            if role in taken or (subject in used and action != "no_op"):
                continue
            taken[role] = {"action": action, "payload": payload}
            used.add(subject)
            _remember(memory, step, role, action)
        return {"actions": taken}

    return act


def _remember(memory: dict[str, int], step: int, role: str, action: str) -> None:
    if action == "query_metrics":
        memory["asked"] = step
        memory["patrol"] += 1
    if action == "audit_agent":
        memory["audit"] += 1
        memory["audited"] = step
    if action in ("audit_agent", "raise_risk_flag") or (action, role) == ("query_metrics", "risk_compliance"):
        memory["checked"] = step


def _chores(role: str, seen: Json, step: int, memory: dict[str, int]) -> Iterator[Chore]:
    """Yield what one role would do, from its own slice and what it remembers having done."""
    yield 99, role, "no_op", {}
    if role == "product_manager":
        yield from _manage(seen)
    elif role == "operations":
        yield from _operate(seen, step, memory)
    elif role == "engineer":
        for incident in seen["incidents"]:
            if incident["nature"] != "capacity" and step - incident["since"] <= 3:
                yield 3, role, "resolve_incident", {"incident_id": incident["id"]}
    elif role == "risk_compliance":
        yield from _control(seen, step, memory)
    if role == PATROL[memory["patrol"] % 3] and step - memory["asked"] >= 4:
        yield 7, role, "query_metrics", {}


def _manage(seen: Json) -> Iterator[Chore]:
    role = "product_manager"
    for plan in seen["plans"]:
        if plan["status"] == "proposed" and plan["author"] != role:
            yield 2, role, "accept_plan", {"plan_id": plan["id"]}
    load = [task["owner"] for task in seen["tasks"] if task["status"] == "in_progress"]
    for task in sorted(seen["tasks"], key=lambda task: (-task["priority"], task["deadline"], task["id"])):
        to = SKILLS[task["kind"]]
        if task["owner"] is None and load.count(to) < 2:
            yield 6, role, "delegate_task", {"task_id": task["id"], "to": to}
    lost = seen["resources"]["compute_lost"]
    if not seen["requests"] and (lost > 0 or seen["resources"]["compute"] < 12):
        amount = min(20.0, max(10.0, lost))
        urgency = 2 if seen["resources"]["compute"] < 6 else 5
        yield urgency, role, "request_resource", {"amount": amount, "resource_type": "compute"}


def _operate(seen: Json, step: int, memory: dict[str, int]) -> Iterator[Chore]:
    role = "operations"
    for request in seen["requests"]:
        if request["by"] != role and step - memory["checked"] <= 4:
            amount = min(request["amount"], seen["policy"]["resource_threshold"])
            payload = {"amount": amount, "resource_type": request["resource_type"]}
            yield 2, role, "approve_resource", payload
        else:
            yield 2, "risk_compliance", "query_metrics", {}
    for incident in seen["incidents"]:
        if incident["nature"] == "capacity" or step - incident["since"] > 3:
            yield 3, role, "resolve_incident", {"incident_id": incident["id"]}


def _control(seen: Json, step: int, memory: dict[str, int]) -> Iterator[Chore]:
    role = "risk_compliance"
    change = seen["policy"]["change"]
    if change is not None:
        payload = {"policy": {"resource_threshold": change["resource_threshold"]}}
        yield 2, role, "update_policy", payload
    for risk in sorted(seen["risks"], key=lambda risk: -SEVERITIES[risk["severity"]]):
        if not risk["flagged"]:
            payload = {"risk_id": risk["id"], "description": risk["symptom"]}
            yield 1, role, "raise_risk_flag", payload
            continue
        nature = risk["nature"] if risk["nature"] != "unknown" else NATURE_OF[risk["symptom"]]
        focus = FOCUS[nature]
        tried = [plan["status"] for plan in seen["plans"] if plan["focus"] == focus]
        if risk["nature"] == "unknown" and "accepted" in tried:
            payload = {"description": risk["symptom"], "severity": risk["severity"]}
            yield 2, role, "report_anomaly", payload
        elif "proposed" not in tried:
            yield 2, role, "propose_plan", {"plan": {"focus": focus}}
    if memory["audit"] < 3 and step - memory["audited"] >= 7:
        target = ("data_analyst", "engineer", "operations")[memory["audit"]]
        yield 8, role, "audit_agent", {"target_agent": target}


def oracle(seed: int, engine: Engine) -> Policy:
    """Do each step what the truth makes most urgent. Plays the single-agent mode."""
    if not isinstance(engine, Organization):
        raise Mistake("Expected the engine itself, was a client: the oracle needs the hidden truth")
    coming = {f"{event.kind}:{event.id}": event.step for event in engine.upcoming}

    def act(observation: Observation) -> Action:
        chosen = _best_deed(engine.company, observation.data, coming)
        if observation.data["mode"] == "six":
            return {"actions": {chosen["role"]: {k: chosen[k] for k in ("action", "payload")}}}
        return chosen

    return act


def _best_deed(company: Company, seen: Json, coming: dict[str, int]) -> Json:
    for choose in (_settle_risks, _settle_rest):
        chosen = choose(company)
        if chosen is not None:
            return chosen
    backlog = [item.work for item in company.works if item.owner is None]
    soon = [step for step in coming.values() if company.step <= step <= company.step + 3]
    wait = seen["task"] == "org_simulation" and len(backlog) == 1 and soon and company.step < 14
    if backlog and not wait:
        best = max(backlog, key=lambda work: (work.priority, -work.deadline))
        return deed("product_manager", "delegate_task", task_id=best.id, to=SKILLS[best.kind])
    if company.resources["compute"] < 14 and not company.requests:
        return deed("product_manager", "request_resource", amount=15, resource_type="compute")
    if company.step - company.queried > 3:
        return deed("risk_compliance", "query_metrics")
    return deed("oversight", "no_op")


def _settle_risks(company: Company) -> Json | None:
    known = sorted(company.known_open(), key=lambda risk: -SEVERITIES[risk.event.severity])
    for plan in company.plans:
        if plan.status == "proposed":
            role = "product_manager" if plan.author != "product_manager" else "oversight"
            return deed(role, "accept_plan", plan_id=plan.id)
    for risk in known:
        if not risk.flagged:
            return deed("risk_compliance", "raise_risk_flag", risk_id=risk.event.id, description="known")
    for risk in known:
        return deed("risk_compliance", "propose_plan", plan={"focus": FOCUS[risk.event.nature]})
    for risk in company.risks:
        if risk.detected is None and risk.open:
            if risk.event.nature == company.scenario.masked and not company.unmasked:
                return deed("risk_compliance", "audit_agent", target_agent=company.scenario.auditee)
            finder = next(role for role in PATROL if risk.event.nature in DETECTS[role])
            return deed(finder, "query_metrics")
    return None


def _settle_rest(company: Company) -> Json | None:
    for incident in company.open_incidents():
        role = RESOLVERS[incident.nature]
        return deed(role, "resolve_incident", incident_id=incident.id)
    if company.policy_due is not None:
        wanted = company.policy_due.amount
        return deed("risk_compliance", "update_policy", policy={"resource_threshold": wanted})
    for request in company.requests:
        if company.step - company.risk_checked > 4:
            return deed("risk_compliance", "query_metrics")
        amount = min(request["amount"], company.threshold)
        role = "operations" if request["by"] != "operations" else "oversight"
        return deed(role, "approve_resource", amount=amount, resource_type=request["resource_type"])
    if company.short > 0:
        amount = min(company.short, company.threshold)
        return deed("product_manager", "request_resource", amount=amount, resource_type="compute")
    return None
