"""The organisation's own state: open work, risks, incidents, plans, requests, metrics."""

from __future__ import annotations

from dataclasses import dataclass, field

from oomrl.arenas.engine import Json
from oomrl.arenas.organization.scenarios import Event, Scenario, Work


@dataclass(slots=True)
class OpenWork:
    """A task under way. `quality` is 1 when the right role does it."""

    work: Work
    left: float
    owner: str | None = None
    quality: float = 0.0
    finished: int | None = None

    def status(self) -> str:
        """Return backlog, in_progress or done."""
        return "done" if self.finished is not None else "in_progress" if self.owner else "backlog"


@dataclass(slots=True)
class Risk:
    """A risk that has arisen. Hidden until detected; its nature until diagnosed."""

    event: Event
    born: int
    detected: int | None = None
    diagnosed: bool = False
    flagged: bool = False
    mitigated: int | None = None
    broke: bool = False
    ignored_fired: int = 0

    @property
    def open(self) -> bool:
        """Tell whether it still needs work."""
        return self.mitigated is None and not self.broke


@dataclass(slots=True)
class Incident:
    """An open or resolved incident; `origin` is the risk that broke, if one did."""

    id: str
    nature: str
    severity: str
    born: int
    origin: str | None = None
    diagnosed: bool = False
    resolved: int | None = None


@dataclass(slots=True)
class Plan:
    """A proposed plan."""

    id: str
    author: str
    focus: str
    status: str = "proposed"


@dataclass(slots=True)
class Company:
    """Everything that actions change."""

    scenario: Scenario
    works: list[OpenWork]
    resources: dict[str, float]
    threshold: float
    step: int = 0
    risks: list[Risk] = field(default_factory=list)
    incidents: list[Incident] = field(default_factory=list)
    plans: list[Plan] = field(default_factory=list)
    requests: list[Json] = field(default_factory=list)
    audits: list[Json] = field(default_factory=list)
    shown_metrics: Json = field(default_factory=dict)
    queried: int = -99
    risk_checked: int = -99
    unmasked: bool = False
    policy_due: Event | None = None
    policy_born: int = 0
    short: float = 0.0
    short_born: int = 0
    responses: list[float] = field(default_factory=list)
    waiting: dict[str, int] = field(default_factory=dict)
    seen_events: list[Json] = field(default_factory=list)
    handoffs: int = 0
    recent: list[float] = field(default_factory=list)
    useful: float = 0.0
    deeds: int = 0
    refused: int = 0
    approved: float = 0.0
    damage: float = 0.0

    def respond(self, event_id: str) -> None:
        """Note that an event was dealt with: the sooner, the more it counts."""
        born = self.waiting.pop(event_id, None)
        if born is not None:
            self.responses.append(max(0.0, 1 - max(0, self.step - born - 3) / 12))

    def known_open(self) -> list[Risk]:
        """Return detected risks that are neither mitigated nor broken."""
        return [risk for risk in self.risks if risk.detected is not None and risk.open]

    def open_incidents(self) -> list[Incident]:
        """Return incidents that are not resolved."""
        return [incident for incident in self.incidents if incident.resolved is None]

    def quiet(self) -> bool:
        """Tell whether nothing that anybody can see waits for a decision, so that waiting is right."""
        return (
            not self.known_open()
            and not self.open_incidents()
            and not self.requests
            and self.policy_due is None
            and self.short <= 0
            and self.step - self.queried <= FRESH_ENOUGH
            and all(item.owner for item in self.works)
        )


FRESH_ENOUGH = 4


def start(scenario: Scenario) -> Company:
    """Return the organisation before its first step."""
    company = Company(
        scenario,
        [OpenWork(work, work.effort) for work in scenario.works],
        {"compute": scenario.compute, "budget": scenario.budget, "personnel": scenario.personnel},
        scenario.threshold,
    )
    company.shown_metrics = metrics(company)
    return company


def metrics(company: Company) -> Json:
    """Return latency (ms), error_rate, uptime, cost and accuracy as risks and incidents have left them.

    A masked kind of risk leaves no trace until the audit that unmasks it.
    """
    latency, errors, uptime, accuracy = 200.0, 0.02, 0.999, 0.95
    for risk in company.risks:
        if not risk.open or (risk.event.nature == company.scenario.masked and not company.unmasked):
            continue
        age = min(10, company.step - risk.born)
        if risk.event.symptom == "latency_rising":
            latency += 12.0 * age
        elif risk.event.symptom == "error_rate_rising":
            errors += 0.003 * age
        elif risk.event.symptom == "accuracy_falling":
            accuracy -= 0.01 * age
    for incident in company.open_incidents():
        latency += 60.0
        errors += 0.02
        uptime -= 0.01 * (1 + (incident.severity in ("high", "critical")))
    return {
        "latency": round(latency, 1),
        "error_rate": round(errors, 4),
        "uptime": round(uptime, 4),
        "accuracy": round(accuracy, 4),
        "cost": round(company.approved * 0.5, 2),
        "as_of": company.step,
    }
