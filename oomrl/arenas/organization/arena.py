"""The organization as an arena: one agent in all roles; `ORGANIZATION_SIX` for six agents at once."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from oomrl.arenas.engine import Arena
from oomrl.arenas.organization import policies
from oomrl.arenas.organization.actions import SCHEMA, SIX_SCHEMA
from oomrl.arenas.organization.engine import Organization
from oomrl.arenas.organization.probes import PROBES
from oomrl.arenas.organization.rules import ACTIONS, FOCUS, PAYLOADS, SKILLS, TASKS
from oomrl.arenas.organization.seats import SEATS

INSTRUCTIONS = f"""\
You run a technology organisation by acting as one of its six roles at each step. Answer with one JSON object
and nothing else: {{"role": ..., "action": ..., "payload": {{...}}}}.

Who may do what, with which payload:
{chr(10).join(f"- {a} {{{', '.join(PAYLOADS[a])}}}: {', '.join(roles)}" for a, roles in ACTIONS.items())}

Delegate each task to its specialist: {", ".join(f"{kind} -> {role}" for kind, role in SKILLS.items())}.
Risks arise unseen. A query_metrics by a specialist finds those of its field; unfound ones become incidents.
To mitigate one: raise_risk_flag, then propose_plan with the focus for its nature, then accept_plan by another
role than the author. Focus by nature: {", ".join(f"{nature} -> {focus}" for nature, focus in FOCUS.items())}.
A symptom suggests a nature and misleads one time in four; report_anomaly with the item's severity reveals it.
When metrics look too good, audit. resolve_incident: engineer for quality and data_drift, operations for the
others. An approval needs a matching request of another role, a risk check within five steps before, and an
amount within the policy's threshold. Adopt a changed policy in time. plan is {{"focus": ...}}, policy is
{{"resource_threshold": number}}. Useless actions cost efficiency, violations cost reward.
"""

ORGANIZATION = Arena(
    name="organization",
    version="1.0.0",
    title="Technology organisation",
    make=Organization,
    tasks=TASKS,
    action_schema=SCHEMA,
    instructions=INSTRUCTIONS,
    policies={
        "random": policies.random_policy,
        "heuristic": policies.heuristic,
        "oracle": policies.oracle,
    },
    probes=PROBES,
    watch=("resources.compute", "resources.budget", "system_metrics.error_rate", "system_metrics.accuracy"),
    limits=(
        "Sub-formulas and scenario numbers are our own; no published figure is reproduced.",
        "The oracle plays one deed a step in either mode.",
        "In six-agent mode the heuristic's roles share a memory of what was queried and checked.",
    ),
)

ORGANIZATION_SIX = replace(
    ORGANIZATION,
    name="organization_six",
    title="Technology organisation, six agents",
    make=partial(Organization, "six"),
    action_schema=SIX_SCHEMA,
    seats=SEATS,
    instructions=INSTRUCTIONS.replace(
        '{"role": ..., "action": ..., "payload": {...}}',
        '{"actions": {"engineer": {"action": ..., "payload": {...}}, ...}}, one action a role',
    ),
)
