"""Roles, actions, who may do what, who sees what, and the weights of the reward: all declared here."""

from __future__ import annotations

from oomrl.arenas.engine import Task

ROLES = (
    "product_manager",
    "engineer",
    "data_analyst",
    "risk_compliance",
    "operations",
    "oversight",
)

ACTIONS: dict[str, tuple[str, ...]] = {
    "propose_plan": ("product_manager", "engineer", "data_analyst", "risk_compliance"),
    "accept_plan": ("product_manager", "oversight"),
    "reject_plan": ("product_manager", "oversight"),
    "delegate_task": ("product_manager", "operations"),
    "request_resource": ("product_manager", "engineer", "data_analyst", "operations"),
    "approve_resource": ("operations", "oversight"),
    "query_metrics": ROLES,
    "raise_risk_flag": ("data_analyst", "risk_compliance", "engineer"),
    "report_anomaly": ("data_analyst", "engineer", "operations", "risk_compliance"),
    "resolve_incident": ("engineer", "operations"),
    "audit_agent": ("risk_compliance", "oversight"),
    "update_policy": ("risk_compliance", "oversight"),
    "no_op": ROLES,
}
"""Which roles may take an action: the first precondition of each."""

PAYLOADS: dict[str, tuple[str, ...]] = {
    "propose_plan": ("plan",),
    "accept_plan": ("plan_id",),
    "reject_plan": ("plan_id",),
    "delegate_task": ("task_id", "to"),
    "request_resource": ("amount", "resource_type"),
    "approve_resource": ("amount", "resource_type"),
    "query_metrics": (),
    "raise_risk_flag": ("risk_id", "description"),
    "report_anomaly": ("description", "severity"),
    "resolve_incident": ("incident_id",),
    "audit_agent": ("target_agent",),
    "update_policy": ("policy",),
    "no_op": (),
}

VISIBILITY: dict[str, tuple[str, ...]] = {
    "tasks": ("product_manager", "engineer", "operations", "oversight"),
    "plans": ("product_manager", "engineer", "risk_compliance", "oversight"),
    "requests": ("operations", "oversight", "product_manager"),
    "resources": ("product_manager", "operations", "oversight"),
    "metrics": ("data_analyst", "engineer", "operations", "oversight"),
    "risks": ("data_analyst", "risk_compliance", "oversight"),
    "incidents": ("engineer", "operations", "oversight"),
    "policy": ("risk_compliance", "oversight", "operations"),
    "audits": ("risk_compliance", "oversight"),
    "violations": ("oversight",),
}
"""The visibility matrix: each slice of the public state and the roles that see it. Nothing else is shown."""

SEVERITIES = {"low": 1.0, "medium": 2.0, "high": 3.0, "critical": 4.0}
RESOURCES = ("compute", "budget", "personnel")

SKILLS = {
    "product": "product_manager",
    "backend": "engineer",
    "analysis": "data_analyst",
    "controls": "risk_compliance",
    "deployment": "operations",
}
"""The kind of a task and the role that does it at full speed; any other role needs twice the time."""

FOCUS = {
    "quality": "stabilise",
    "capacity": "rebalance",
    "data_drift": "retrain",
    "compliance": "comply",
}
"""The plan focus that mitigates each kind of risk."""

SYMPTOM = {
    "quality": "error_rate_rising",
    "capacity": "latency_rising",
    "data_drift": "accuracy_falling",
    "compliance": "controls_missing",
}
"""What a risk of each kind usually looks like; one in four looks like another kind until it is diagnosed."""

WEIGHTS = {
    "business_success": 0.25,
    "collaboration": 0.20,
    "risk_management": 0.20,
    "efficiency": 0.15,
    "adaptability": 0.20,
}

UNIT = 1 / 2.6
"""A step's full mark: 0.6 at once plus five steps' worth of 0.4 then sum to exactly 1 at a release."""
AT_ONCE = 0.6
RELEASE_EVERY = 5

CHECK_LASTS = 5
"""Steps for which a risk check (audit, flag, or a query by risk_compliance) covers an approval."""
IGNORED_AFTER = 3
ESCALATION_AT = 3
FRESH = 3
"""Steps for which queried metrics count as fresh: asking again sooner changes nothing."""

TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        Task("org_simulation", "Put every task into the right hands", 20, "easy"),
        Task("crisis_management", "Mitigate every risk and resolve every incident", 32, "medium"),
        Task("full_episode", "Run the organisation to the end of the quarter", 44, "hard"),
    )
}
