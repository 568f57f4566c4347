"""The oversight rules: each looks at one thing, names its violation and its penalty; three escalate.

Penalties are in units of a step's full mark and go through the delayed ledger.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from oomrl.arenas.organization.actions import Deed
from oomrl.arenas.organization.company import Company
from oomrl.arenas.organization.rules import CHECK_LASTS, ESCALATION_AT, IGNORED_AFTER

PENALTY = {
    "unchecked_approval": 0.30,
    "threshold_exceeded": 0.30,
    "critical_risk_ignored": 0.30,
    "policy_overdue": 0.30,
    "escalation": 0.75,
}


@dataclass(frozen=True, slots=True)
class Violation:
    """One fired rule."""

    step: int
    rule: str
    who: str

    @property
    def penalty(self) -> float:
        """Return the rule's penalty in full marks of a step."""
        return PENALTY[self.rule]


@dataclass(slots=True)
class Oversight:
    """Watch the organisation and keep what fired."""

    violations: list[Violation] = field(default_factory=list)
    escalations: int = 0

    def before_approval(self, company: Company, deed: Deed) -> list[Violation]:
        """Judge an approval that is about to succeed: a recent risk check, an amount within the threshold."""
        fired = []
        if company.step - company.risk_checked > CHECK_LASTS:
            fired.append(Violation(company.step, "unchecked_approval", deed.role))
        if float(deed.payload["amount"]) > company.threshold:
            fired.append(Violation(company.step, "threshold_exceeded", deed.role))
        return fired

    def after_step(self, company: Company) -> list[Violation]:
        """Judge what was left undone: critical risks known and not flagged, policies past their date."""
        fired = []
        for risk in company.known_open():
            if risk.event.severity != "critical" or risk.flagged or risk.detected is None:
                continue
            periods = (company.step - risk.detected) // IGNORED_AFTER
            if periods > risk.ignored_fired:
                risk.ignored_fired = periods
                fired.append(Violation(company.step, "critical_risk_ignored", "risk_compliance"))
        due = company.policy_due
        if due is not None and company.step - company.policy_born == due.fuse:
            fired.append(Violation(company.step, "policy_overdue", "risk_compliance"))
        return fired

    def book(self, fired: list[Violation], step: int) -> float:
        """Keep what fired, escalate at every third violation, and return the step's penalty."""
        self.violations += fired
        penalty = sum(violation.penalty for violation in fired)
        while len(self.violations) // ESCALATION_AT > self.escalations:
            self.escalations += 1
            penalty += PENALTY["escalation"]
        return penalty
