"""Ask models, durably: a prompt is in the store before a model sees it, its reply and price before it is read.

Several questions go out at the same time. Where an endpoint is away, that is written at the prompt, and the question
waits: as long as `Patience` allows, then until the stage is tried again. What was answered is never asked again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from oomrl.adapters.database import Store, Work
from oomrl.adapters.database.notices import Notice
from oomrl.agents.billing import Compute
from oomrl.agents.reply import MOST_CHARACTERS
from oomrl.agents.spent import diagnose_compute
from oomrl.domain.records import CapitalKind, Prompt
from oomrl.errors import OomrlError, Unavailable
from oomrl.ports import Context, Model, Reply
from oomrl.stages import Waiting


@dataclass(frozen=True, slots=True)
class Question:
    """A prompt, who is asked, and the values that it was made of."""

    prompt: Prompt
    model: Model
    context: Context


@dataclass(frozen=True, slots=True)
class Said:
    """A reply as the store has it. `finish` is "length" where it was cut off."""

    text: str
    model: str
    finish: str


@dataclass(frozen=True, slots=True)
class Patience:
    """How long an endpoint that is away is waited for, and how long between two tries, in seconds."""

    sleep: Callable[[float], None]
    monotonic: Callable[[], float]
    seconds: float = 0.0
    pause: float = 60.0


def compute_of(view: Work, run: str, endowment: Decimal) -> Compute:
    """Return what was given for a run's models, by the settings and by people since, and what they have used."""
    given = [event.amount for event in view.capital.events(run) if event.kind is CapitalKind.ENDOW_COMPUTE]
    _, _, spent = view.prompts.bill(run)
    return Compute(endowment + sum(given, Decimal(0)), spent)


class Prompting:
    """The questions of one run. `witness` is told of each prompt whose reply has been stored."""

    def __init__(
        self,
        run: str,
        store: Store,
        now: Callable[[], datetime],
        endowment: Decimal,
        patience: Patience,
        witness: Callable[[str], None],
    ) -> None:
        self.run, self.store, self.now = run, store, now
        self.endowment, self.patience, self.witness = endowment, patience, witness

    def ask(self, questions: Sequence[Question]) -> list[Said] | Waiting:
        """Return the replies in the questions' order, or what they wait for: somebody's answer, or more compute.

        Raise `Unavailable` where an endpoint stays away for longer than the patience lasts. Replies that came are kept
        whatever becomes of the others.
        """
        asked = [self._known(question) for question in questions]
        found = {number: said for number, (_, said) in enumerate(asked) if said is not None}
        begun = self.patience.monotonic()
        while len(found) < len(questions):
            missing = [number for number in range(len(questions)) if number not in found]
            if self.compute().out:
                self._out_of_money()
                return Waiting("compute endowment", questions[missing[0]].prompt.id)
            todo = {number: (asked[number][0], questions[number]) for number in missing}
            came, away = self._round(todo)
            found |= came
            if away is None and len(came) < len(missing):
                return Waiting("prompt", next(q.prompt.id for n, q in enumerate(questions) if n not in found))
            if away is not None:
                if self.patience.monotonic() - begun >= self.patience.seconds:
                    raise away
                self.patience.sleep(self.patience.pause)
        return [found[number] for number in range(len(questions))]

    def compute(self) -> Compute:
        """Return what was given for models and what they have used."""
        with self.store.read() as view:
            return compute_of(view, self.run, self.endowment)

    def _out_of_money(self) -> None:
        """Tell a person, once for what was given so far, that no model is asked any more, and why."""
        with self.store.begin() as work:
            compute = compute_of(work, self.run, self.endowment)
            found = diagnose_compute(compute, work.prompts.all(self.run))
            text = (
                f"${compute.spent} of ${compute.endowment} for models are spent, most by the {found.diagnostics.module}"
            )
            work.notices.add(Notice(f"compute/{self.run}/{compute.endowment}", "out of money", text, self.now()))

    def _known(self, question: Question) -> tuple[Prompt, Said | None]:
        """Write a question down, unless it was asked before: then its words of that time stay."""
        with self.store.begin() as work:
            known = work.prompts.get(self.run, question.prompt.id)
            if known is None:
                work.prompts.ask(question.prompt)
                return question.prompt, None
        return known, None if known.reply is None else Said(known.reply, known.model, known.finish)

    def _round(self, todo: dict[int, tuple[Prompt, Question]]) -> tuple[dict[int, Said], Unavailable | None]:
        """Ask each once, at the same time; return what came, and that an endpoint was away."""
        came: dict[int, Said] = {}
        away: Unavailable | None = None
        failed: OomrlError | None = None
        with ThreadPoolExecutor(len(todo), thread_name_prefix="prompt") as pool:
            running = {
                pool.submit(q.model.answer, prompt.id, prompt.role, prompt.text, q.context): (number, prompt)
                for number, (prompt, q) in todo.items()
            }
            for future in as_completed(running):
                number, prompt = running[future]
                try:
                    reply = future.result()
                except Unavailable as error:
                    away = error
                    self._away(prompt, error)
                except OomrlError as error:
                    failed = error
                else:
                    if reply is not None:
                        came[number] = self._keep(prompt, reply)
        if failed is not None:
            raise failed
        return came, away

    def _keep(self, prompt: Prompt, reply: Reply) -> Said:
        # One character more than anybody reads, so that the reader still says that it was too long.
        text = reply.text[: MOST_CHARACTERS + 1]
        with self.store.begin() as work:
            work.prompts.answer(
                self.run,
                prompt.id,
                text,
                self.now(),
                reply.model,
                reply.prompt_tokens,
                reply.completion_tokens,
                reply.cost,
                reply.finish,
            )
        self.witness(prompt.id)
        return Said(text, reply.model, reply.finish)

    def _away(self, prompt: Prompt, error: Unavailable) -> None:
        with self.store.begin() as work:
            known = work.prompts.get(self.run, prompt.id)
            times = 1 + int(known.note.split(" ", 1)[0]) if known and known.note[:1].isdigit() else 1
            work.prompts.remark(self.run, prompt.id, f"{times} times in vain; last: {error}")
