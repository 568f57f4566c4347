"""The organisation's step: deeds, work, events, oversight, reward. Single-agent or six agents at once."""

from __future__ import annotations

from typing import Any

from oomrl.arenas.engine import Action, Json, Observation, Part
from oomrl.arenas.organization import effects, grading
from oomrl.arenas.organization.actions import Deed, parse_deed
from oomrl.arenas.organization.company import Company, Incident, OpenWork, Risk, start
from oomrl.arenas.organization.ledger import DelayedLedger
from oomrl.arenas.organization.oversight import Oversight, Violation
from oomrl.arenas.organization.rules import (
    FOCUS,
    ROLES,
    SEVERITIES,
    SKILLS,
    SYMPTOM,
    TASKS,
    UNIT,
    VISIBILITY,
)
from oomrl.arenas.organization.scenarios import Event, make_scenario
from oomrl.errors import Mistake

REFUSED_PENALTY = 0.15
HINTS = (
    "A plan mitigates the flagged risks whose nature fits its focus, once another role accepts it.",
    "Metrics are as of the last query; specialists recognise the risks of their own field in them.",
    "An approval wants a risk check within five steps before it and an amount within the threshold.",
)


class Organization:
    """Play one episode. `mode` is `single` (one role acts a step) or `six` (each role may act each step)."""

    reward_range = (0.0, 1.0)

    def __init__(self, mode: str = "single") -> None:
        if mode not in ("single", "six"):
            raise Mistake(f"Expected mode single or six, was {mode!r}")
        self.mode = mode
        self._company: Company | None = None

    def reset(self, seed: int, task: str) -> Observation:
        """Draw the scenario of the seed and open for business."""
        if task not in TASKS:
            raise Mistake(f"Expected one of the tasks {', '.join(TASKS)}, was {task!r}")
        self._task = TASKS[task]
        scenario = make_scenario(seed, task, self._task.max_steps)
        self._queue = list(scenario.events)
        self._company = start(scenario)
        self._ledger, self._oversight = DelayedLedger(), Oversight()
        self._done = False
        self._errors: dict[str, str] = {}
        return self._observe(None, None)

    def step(self, action: Action) -> Observation:
        """Play one step; a refused action or failed precondition is reported, costed and changes nothing."""
        company = self._company
        if company is None or self._done:
            raise Mistake("Expected a running episode, was none: call reset first")
        self._errors = {}
        refused = 0
        fired: list[Violation] = []
        outcomes: list[float] = []
        for deed in self._parse(action):
            if isinstance(deed, str):
                refused += 1
                outcomes.append(0.0)
                continue
            outcome = self._carry_out(company, deed, fired)
            if isinstance(outcome, str):
                self._errors[deed.role] = outcome
                outcome = 0.0
            elif deed.action == "no_op" and self.mode == "six":
                continue
            outcomes.append(outcome)
        if not outcomes:
            outcomes = [0.5 if company.quiet() else 0.0]
        company.refused += refused
        for outcome in outcomes:
            if outcome != 0.5:
                company.useful += outcome
                company.deeds += 1
        company.recent.append(sum(outcomes) / len(outcomes))
        self._work(company)
        marks = grading.step_parts(company, self._task.max_steps)
        company.step += 1
        self._arrive(company)
        fired += self._oversight.after_step(company)
        penalty = self._oversight.book(fired, company.step) + REFUSED_PENALTY * refused
        self._done = company.step >= self._task.max_steps or self._reached(company)
        entry = self._ledger.book(UNIT * marks.total, UNIT * penalty, self._done)
        parts = Part(
            "reward",
            parts=(
                Part("immediate", 1.0, entry.immediate),
                Part("released", 1.0, entry.released),
            ),
            low=0.0,
            high=1.0,
        )
        self._explained = Part(
            "net_earned",
            parts=(Part("earned", UNIT, 0.0, marks.parts), Part("penalty", -1.0, entry.penalty)),
        )
        return self._observe(parts.total, parts)

    @property
    def state(self) -> Json:
        """Return step, task, public totals and the ledger."""
        company = self._company
        if company is None:
            return {"task": None, "step_count": 0}
        entries = self._ledger.entries
        return {
            "task": self._task.name,
            "mode": self.mode,
            "step_count": company.step,
            "max_steps": self._task.max_steps,
            "done": self._done,
            "scenario_id": company.scenario.id,
            "violations": len(self._oversight.violations),
            "escalations": self._oversight.escalations,
            "earned": sum(entry.earned for entry in entries),
            "penalties": sum(entry.penalty for entry in entries),
            "immediate": sum(entry.immediate for entry in entries),
            "released": sum(entry.released for entry in entries),
            "pending": self._ledger.pending,
        }

    def hidden(self) -> Json:
        """Return undetected risks, coming events and what metrics do not show."""
        company = self._company
        if company is None:
            return {}
        undetected = [r.event.id for r in company.risks if r.detected is None and r.open]
        coming = [event.id for event in self._queue]
        return {
            "canaries": [f'"{name}"' for name in (*undetected, *coming)]
            + ["auditee", "masked", "fuse", "undetected", 'queue"'],
            "undetected": undetected,
            "natures": {r.event.id: r.event.nature for r in company.risks},
            "coming": [f"{event.kind}:{event.id}@{event.step}" for event in self._queue],
            "masked": company.scenario.masked,
            "auditee": company.scenario.auditee,
        }

    def grade(self) -> Part:
        """Return the score of the steps played so far."""
        if self._company is None:
            raise Mistake("Expected an episode, was none: call reset first")
        return grading.grade(
            self._company, self._task.name, self._task.max_steps, self._oversight, self._company.refused
        )

    @property
    def company(self) -> Company:
        """Return the organisation itself, for the oracle. Never shown to an agent."""
        if self._company is None:
            raise Mistake("Expected an episode, was none: call reset first")
        return self._company

    @property
    def upcoming(self) -> list[Event]:
        """Return the event queue, for the oracle. Never shown to an agent."""
        return list(self._queue)

    @property
    def ledger(self) -> DelayedLedger:
        """Return the delayed-reward ledger."""
        return self._ledger

    @property
    def violations(self) -> list[Violation]:
        """Return what oversight has fired."""
        return self._oversight.violations

    def _parse(self, action: Any) -> list[Deed | str]:
        if not isinstance(action, dict):
            self._errors["action"] = f"Expected an object, was {type(action).__name__}"
            return [self._errors["action"]]
        if self.mode == "single":
            rest = {key: value for key, value in action.items() if key != "role"}
            deeds = [parse_deed(action.get("role"), rest)]
        else:
            actions = action.get("actions")
            if set(action) != {"actions"} or not isinstance(actions, dict) or set(actions) - set(ROLES):
                self._errors["action"] = "Expected {actions: {role: {action, payload}}}, was something else"
                return [self._errors["action"]]
            said = {role: parse_deed(role, actions[role]) for role in ROLES if role in actions}
            self._errors.update({role: deed for role, deed in said.items() if isinstance(deed, str)})
            return list(said.values())
        if isinstance(deeds[0], str):
            self._errors["refused-0"] = deeds[0]
        return deeds

    def _carry_out(self, company: Company, deed: Deed, fired: list[Violation]) -> effects.Outcome:
        judged = self._oversight.before_approval(company, deed) if deed.action == "approve_resource" else []
        outcome = effects.apply(company, deed)
        if not isinstance(outcome, str):
            fired += judged
        return outcome

    def _work(self, company: Company) -> None:
        """Let tasks under way advance: slower when people or compute are short or incidents burn."""
        busy = [item for item in company.works if item.owner and item.finished is None]
        if not busy:
            return
        crowd: dict[str | None, int] = {}
        for item in busy:
            crowd[item.owner] = crowd.get(item.owner, 0) + 1
        staff = min(1.0, company.resources["personnel"] / len(busy))
        compute = company.resources["compute"] - len(busy)
        company.resources["compute"] = max(0.0, compute)
        pace = staff * (1.0 if compute > 0 else 0.4) * 0.85 ** len(company.open_incidents())
        for item in busy:
            fit = 1.0 if SKILLS[item.work.kind] == item.owner else 0.5
            item.left -= fit * pace * (0.6 if crowd[item.owner] > 1 else 1.0)
            if item.left <= 1e-9:
                item.left, item.finished = 0.0, company.step

    def _arrive(self, company: Company) -> None:
        """Let the events of the new step happen and overdue risks break into incidents."""
        while self._queue and self._queue[0].step <= company.step:
            self._happen(company, self._queue.pop(0))
        for risk in company.risks:
            if risk.open and company.step - risk.born >= risk.event.fuse:
                risk.broke = True
                name = f"incident-of-{risk.event.id}"
                company.incidents.append(
                    Incident(name, risk.event.nature, risk.event.severity, company.step, risk.event.id)
                )
                company.seen_events.append({"step": company.step, "kind": "incident", "id": name})
        open_weight = sum(SEVERITIES[incident.severity] / 4 for incident in company.open_incidents())
        company.damage += min(1.0, open_weight)

    def _happen(self, company: Company, event: Event) -> None:
        company.waiting[event.id] = company.step
        if event.kind == "risk":
            company.risks.append(Risk(event, company.step))
            return
        company.seen_events.append({"step": company.step, "kind": event.kind, "id": event.id})
        if event.kind == "incident":
            company.incidents.append(Incident(event.id, event.nature, event.severity, company.step))
        elif event.kind == "shortage":
            company.short += event.amount
            company.resources["compute"] = max(0.0, company.resources["compute"] - event.amount)
        else:
            company.policy_due, company.policy_born = event, company.step

    def _reached(self, company: Company) -> bool:
        if self._task.name == "org_simulation":
            return all(item.owner for item in company.works)
        if self._task.name == "crisis_management":
            calm = not self._queue and not company.open_incidents()
            return calm and not any(risk.open for risk in company.risks)
        return False

    def _observe(self, reward: float | None, parts: Part | None) -> Observation:
        company = self._company
        assert company is not None
        slices = self._slices(company)
        views = {role: {name: slices[name] for name, seers in VISIBILITY.items() if role in seers} for role in ROLES}
        data: Json = {
            "task": self._task.name,
            "mode": self.mode,
            "step_count": company.step,
            "max_steps": self._task.max_steps,
            "scenario_id": company.scenario.id,
            "scenario_title": company.scenario.title,
            "agent_observations": views,
            "scenario_events": [dict(event) for event in company.seen_events[-6:]],
            "hints": list(HINTS),
            "degraded": bool(company.open_incidents()),
            "errors": dict(self._errors),
        }
        if self.mode == "single":
            data["system_metrics"] = slices["metrics"]
            data["resources"] = slices["resources"]
            data["active_risks"] = slices["risks"]
            data["active_incidents"] = slices["incidents"]
        if parts is not None:
            data["partial_scores"] = {
                path.rpartition("/")[2]: round(value, 6) for path, value in self._explained.leaves().items()
            }
        else:
            data["partial_scores"] = {}
        return Observation(data, self._done, reward, parts)

    def _slices(self, company: Company) -> Json:
        return {
            "tasks": [_show_work(item) for item in company.works],
            "plans": [
                {"id": plan.id, "author": plan.author, "focus": plan.focus, "status": plan.status}
                for plan in company.plans[-6:]
            ],
            "requests": [dict(request) for request in company.requests],
            "resources": {
                **{name: round(value, 2) for name, value in company.resources.items()},
                "compute_lost": round(company.short, 2),
            },
            "metrics": dict(company.shown_metrics),
            "risks": [_show_risk(risk) for risk in company.known_open()],
            "incidents": [_show_incident(incident) for incident in company.open_incidents()],
            "policy": {
                "resource_threshold": company.threshold,
                "change": None
                if company.policy_due is None
                else {
                    "id": company.policy_due.id,
                    "resource_threshold": company.policy_due.amount,
                    "due_step": company.policy_born + company.policy_due.fuse,
                },
            },
            "audits": [dict(audit) for audit in company.audits[-6:]],
            "violations": [
                {"step": violation.step, "rule": violation.rule, "who": violation.who}
                for violation in self._oversight.violations[-6:]
            ],
        }


def _show_work(item: OpenWork) -> Json:
    return {
        "id": item.work.id,
        "kind": item.work.kind,
        "effort": item.work.effort,
        "left": round(item.left, 3),
        "deadline": item.work.deadline,
        "priority": item.work.priority,
        "owner": item.owner,
        "quality": item.quality,
        "status": item.status(),
    }


def _show_risk(risk: Risk) -> Json:
    return {
        "id": risk.event.id,
        "severity": risk.event.severity,
        "symptom": risk.event.symptom,
        "nature": risk.event.nature if risk.diagnosed else "unknown",
        "known_since": risk.detected,
        "flagged": risk.flagged,
    }


def _show_incident(incident: Incident) -> Json:
    return {
        "id": incident.id,
        "severity": incident.severity,
        "nature": incident.nature if incident.diagnosed else "unknown",
        "since": incident.born,
    }


assert set(FOCUS) == set(SYMPTOM)
