"""The diagnostic of a compute endowment that is spent: the out-of-money stop of RLFCB, in the loss diagnostic's shape.

The paper's keys stand at the paper's places (event, metrics, diagnostics, mandate), so that whoever reads losses reads
this one too. It is a function of what the store holds: a restart says the same, and only a person ends it.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from oomrl.agents.billing import Compute
from oomrl.domain.records import Prompt

#: How many of the costliest prompts the log carries.
LOG_LINES = 10

Dollars = Annotated[Decimal, Field(description="dollars")]


class Part(BaseModel):
    """A part of the diagnostic: no unknown keys, never changed."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Spent(Part):
    """What was given and used. `overdrawn` is what was under way when the endowment ran out."""

    endowment: Dollars
    spent: Dollars
    overdrawn: Dollars
    prompts: int
    prompt_tokens: int
    completion_tokens: int
    waiting: int = Field(description="prompts that were written down and may not be asked")


class Costly(Part):
    """One prompt that cost much."""

    prompt: str
    role: str
    model: str
    prompt_tokens: int
    completion_tokens: int
    cost: Dollars


class Reasons(Part):
    """Which role used most, and the costliest prompts."""

    module: str = Field(description="the role whose prompts cost most")
    root_cause: Literal["compute_exhausted", ""]
    by_role: dict[str, Decimal]
    execution_log: tuple[Costly, ...]


class ComputeDiagnostic(Part):
    """Why no model is asked any more; or, while something is left, what has been used so far."""

    schema_version: Literal[1] = 1
    event: Literal["COMPUTE_OUT_OF_MONEY", "COMPUTE_LEFT"]
    metrics: Spent
    diagnostics: Reasons
    mandate: str

    def told(self) -> str:
        """Return one screen of words."""
        used, why = self.metrics, self.diagnostics
        lines = [
            f"{self.event.replace('_', ' ')}: ${used.spent} of ${used.endowment} spent on "
            f"{used.prompts} replies ({used.prompt_tokens} tokens read, {used.completion_tokens} written); "
            f"{used.waiting} prompts wait.",
            *(f"  {role}: ${cost}" for role, cost in why.by_role.items()),
            *(f"  {line.prompt} ({line.model}): ${line.cost}" for line in why.execution_log),
            self.mandate,
        ]
        return "\n".join(lines)


def diagnose_compute(compute: Compute, prompts: Sequence[Prompt]) -> ComputeDiagnostic:
    """Return the diagnostic of what models have cost, from all prompts of a run."""
    answered = [prompt for prompt in prompts if prompt.reply is not None]
    by_role: dict[str, Decimal] = {}
    for prompt in answered:
        by_role[prompt.role] = by_role.get(prompt.role, Decimal(0)) + prompt.cost
    ranked = dict(sorted(by_role.items(), key=lambda item: (-item[1], item[0])))
    costly = sorted(answered, key=lambda prompt: (-prompt.cost, prompt.id))[:LOG_LINES]
    return ComputeDiagnostic(
        event="COMPUTE_OUT_OF_MONEY" if compute.out else "COMPUTE_LEFT",
        metrics=Spent(
            endowment=compute.endowment,
            spent=compute.spent,
            overdrawn=max(compute.spent - compute.endowment, Decimal(0)),
            prompts=len(answered),
            prompt_tokens=sum(prompt.prompt_tokens for prompt in answered),
            completion_tokens=sum(prompt.completion_tokens for prompt in answered),
            waiting=len(prompts) - len(answered),
        ),
        diagnostics=Reasons(
            module=next(iter(ranked), ""),
            root_cause="compute_exhausted" if compute.out else "",
            by_role=ranked,
            execution_log=tuple(
                Costly(
                    prompt=prompt.id,
                    role=prompt.role,
                    model=prompt.model,
                    prompt_tokens=prompt.prompt_tokens,
                    completion_tokens=prompt.completion_tokens,
                    cost=prompt.cost,
                )
                for prompt in costly
            ),
        ),
        mandate="No model is asked before a person gives more (oomrl endow --compute AMOUNT --reason WHY), or names a "
        "cheaper model, fewer roles or fewer attempts for a new run. Trading goes on."
        if compute.out
        else "Nothing is demanded while something is left.",
    )
