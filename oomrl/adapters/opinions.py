"""What the analyst and the critic said, read from the store for people: it informs them and decides nothing."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from oomrl.adapters.database.store import Work
from oomrl.agents.drafts import Critique, Draft, Objection, read_critique, read_draft
from oomrl.agents.problem import Unusable
from oomrl.agents.roles import Role
from oomrl.domain.people import Kind, Remark
from oomrl.domain.records import Prompt, Proposal


@dataclass(frozen=True, slots=True)
class Opinion:
    """A reply of a role as it was read, by which model and when; `unusable` is why it could not be read, if so."""

    model: str
    at: datetime
    draft: Draft | None = None
    critique: Critique | None = None
    unusable: str = ""

    @property
    def objections(self) -> tuple[Objection, ...]:
        return () if self.critique is None else self.critique.objections

    @property
    def summary(self) -> str:
        """Return the critic's sentence about the whole diff, or that its reply could not be read."""
        return self.unusable or ("" if self.critique is None else self.critique.summary)


def of_analyst(view: Work, run: str, diagnostic: str) -> Opinion | None:
    """Return the analyst's draft for a diagnostic, None before there is a reply."""
    found = _answered(view, run, diagnostic, Role.ANALYST, 1)
    if found is None or found.reply is None:
        return None
    try:
        return Opinion(found.model, found.answered_at or found.asked_at, draft=read_draft(found.reply))
    except Unusable as error:
        return Opinion(found.model, found.answered_at or found.asked_at, unusable=error.message)


def of_critic(view: Work, proposal: Proposal) -> Opinion | None:
    """Return what the critic finds wrong with a proposal, None before there is a reply."""
    found = _answered(view, proposal.run, proposal.diagnostic, Role.CRITIC, proposal.attempt)
    if found is None or found.reply is None:
        return None
    try:
        return Opinion(found.model, found.answered_at or found.asked_at, critique=read_critique(found.reply))
    except Unusable as error:
        return Opinion(found.model, found.answered_at or found.asked_at, unusable=error.message)


def remarks_on(view: Work, proposal: Proposal) -> list[Remark]:
    """Return the critic's objections to a proposal, each of which waits for an answer, and what people said of it."""
    said = {remark.id: remark for remark in view.remarks.of(proposal.run, proposal.id)}
    opinion = of_critic(view, proposal)
    merged = []
    for number, objection in enumerate(() if opinion is None else opinion.objections, 1):
        assert opinion is not None
        made = Remark(
            id=f"{proposal.id}-objection-{number}",
            run=proposal.run,
            proposal=proposal.id,
            author=f"critic ({opinion.model})",
            text=objection.text,
            at=opinion.at,
            kind=Kind.OBJECTION,
            path=objection.path,
            line=objection.line,
            blocking=True,
            severity=objection.severity,
        )
        merged.append(said.pop(made.id, made))
    return [*merged, *said.values()]


def _answered(view: Work, run: str, diagnostic: str, role: Role, attempt: int) -> Prompt | None:
    """Return the last prompt with a reply: one that could not be read was sent back with the reason."""
    asked = view.prompts.all(run, diagnostic)
    there = [p for p in asked if p.role == role.value and p.attempt == attempt and p.reply is not None]
    return max(there, key=lambda prompt: prompt.asked_at, default=None)
