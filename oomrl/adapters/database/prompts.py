"""Prompts: asked once under a deterministic id, answered once, each with its price."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

from sqlalchemy import ColumnElement, Connection, Row, func, select, update

from oomrl.adapters.database.bulk import Conflict, put
from oomrl.adapters.database.runs import Runs
from oomrl.adapters.database.tables import COST, prompts
from oomrl.domain.records import Prompt, PromptStatus
from oomrl.errors import Mistake


class Prompts:
    """The shelf of prompts, within one transaction."""

    def __init__(self, connection: Connection, runs: Runs) -> None:
        self._connection = connection
        self._runs = runs

    def ask(self, prompt: Prompt) -> bool:
        """Write a prompt before a model sees it; return False where it was asked already."""
        row = {
            "run_id": self._runs.key(prompt.run),
            "id": prompt.id,
            "diagnostic": prompt.diagnostic,
            "role": prompt.role,
            "attempt": prompt.attempt,
            "version": prompt.version,
            "text": prompt.text,
            "asked_at": prompt.asked_at,
            "status": prompt.status.value,
            "reply": prompt.reply,
            "model": prompt.model,
            "prompt_tokens": prompt.prompt_tokens,
            "completion_tokens": prompt.completion_tokens,
            "cost": prompt.cost,
            "answered_at": prompt.answered_at,
            "note": prompt.note,
            "finish": prompt.finish,
        }
        fixed = ("run_id", "id", "diagnostic", "role", "attempt", "text")
        return put(self._connection, prompts, row, may_differ=[name for name in row if name not in fixed])

    def answer(
        self,
        run: str,
        prompt: str,
        reply: str,
        at: datetime,
        model: str,
        prompt_tokens: int = 0,
        completion_tokens: int = 0,
        cost: Decimal = Decimal(0),
        finish: str = "stop",
    ) -> bool:
        """Write the reply of a pending prompt; return False where the same reply is there already.

        Raise `Mistake` for an unknown prompt and `Conflict` for a second, different reply.
        """
        there = self.get(run, prompt)
        if there is None:
            raise Mistake(f"Expected the id of a prompt of {run}, was {prompt!r}: see `oomrl prompts`")
        if there.status is PromptStatus.ANSWERED:
            if there.reply == reply:
                return False
            raise Conflict(
                f"Expected one reply to prompt {prompt}, was answered at {there.answered_at} by {there.model}"
            )
        if there.status is not PromptStatus.PENDING:
            raise Mistake(f"Expected a pending prompt, was {prompt}, which is {there.status}: see `oomrl prompts`")
        values = {
            "status": PromptStatus.ANSWERED.value,
            "reply": reply,
            "answered_at": at,
            "model": model,
            "prompt_tokens": prompt_tokens,
            "completion_tokens": completion_tokens,
            "cost": cost.quantize(Decimal(1).scaleb(-COST)),
            "finish": finish,
        }
        self._connection.execute(update(prompts).where(self._is(run, prompt)).values(**values))
        return True

    def remark(self, run: str, prompt: str, note: str) -> None:
        """Write what happened to a prompt while it waits."""
        self._connection.execute(update(prompts).where(self._is(run, prompt)).values(note=note))

    def close(self, run: str, prompt: str, status: PromptStatus, note: str) -> None:
        """End a pending prompt without a reply (failed, withdrawn) and say why."""
        values = {"status": status.value, "note": note}
        pending = prompts.c.status == PromptStatus.PENDING.value
        self._connection.execute(update(prompts).where(self._is(run, prompt), pending).values(**values))

    def get(self, run: str, prompt: str) -> Prompt | None:
        """Return one prompt, None where there is none."""
        row = self._connection.execute(select(prompts).where(self._is(run, prompt))).one_or_none()
        return None if row is None else _prompt(run, row)

    def pending(self, run: str) -> list[Prompt]:
        """Return the prompts that wait for a reply, oldest first."""
        return [prompt for prompt in self.all(run) if prompt.status is PromptStatus.PENDING]

    def all(self, run: str, diagnostic: str | None = None) -> list[Prompt]:
        """Return the prompts of a run (of one diagnostic), oldest first."""
        query = select(prompts).where(prompts.c.run_id == self._runs.key(run))
        if diagnostic is not None:
            query = query.where(prompts.c.diagnostic == diagnostic)
        query = query.order_by(prompts.c.asked_at, prompts.c.attempt, prompts.c.role, prompts.c.id)
        return [_prompt(run, row) for row in self._connection.execute(query)]

    def bill(self, run: str) -> tuple[int, int, Decimal]:
        """Return what a run's models have used: prompt tokens, completion tokens, dollars."""
        query = select(
            func.sum(prompts.c.prompt_tokens), func.sum(prompts.c.completion_tokens), func.sum(prompts.c.cost)
        ).where(prompts.c.run_id == self._runs.key(run))
        asked, answered, cost = self._connection.execute(query).one()
        return int(asked or 0), int(answered or 0), cost or Decimal(0)

    def _is(self, run: str, prompt: str) -> ColumnElement[bool]:
        return (prompts.c.run_id == self._runs.key(run)) & (prompts.c.id == prompt)


def _prompt(run: str, row: Row[tuple[object, ...]]) -> Prompt:
    return Prompt(
        id=row.id,
        run=run,
        diagnostic=row.diagnostic,
        role=row.role,
        attempt=row.attempt,
        text=row.text,
        asked_at=row.asked_at,
        version=row.version,
        status=PromptStatus(row.status),
        reply=row.reply,
        model=row.model,
        prompt_tokens=row.prompt_tokens,
        completion_tokens=row.completion_tokens,
        cost=row.cost,
        answered_at=row.answered_at,
        note=row.note,
        finish=row.finish,
    )
