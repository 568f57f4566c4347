"""What people do while a run goes on takes effect at its next close, and a later start folds it where it was heard."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

from oomrl import bootstrap
from oomrl.adapters.database import Store
from oomrl.adapters.desk import Desk
from oomrl.cli.console import Watching
from oomrl.domain.account import SessionRecord
from oomrl.domain.capital import Capital
from oomrl.domain.loss import Loss
from oomrl.domain.people import Person, Right
from oomrl.domain.records import CapitalKind
from oomrl.settings import ReviewSettings
from tests import databases

OLGA = Person("olga", frozenset(Right))


class Meddling(Watching):
    """A person who halts, endows and resumes by the page at given closes, through a store of their own."""

    def __init__(self, state: Path, acts: dict[int, CapitalKind]) -> None:
        super().__init__(0, quiet=True)
        self.state, self.acts, self.closes = state, acts, 0

    def closed(self, record: SessionRecord, capital: Capital, loss: Loss | None) -> None:
        super().closed(record, capital, loss)
        self.closes += 1
        kind = self.acts.get(self.closes)
        if kind is None:
            return
        with Store.open(databases.place(self.state), durable=False) as store:
            desk = Desk(self.state, store, "simulation", ReviewSettings(), lambda: datetime.now(UTC))
            amount = Decimal(1_000) if kind is CapitalKind.ENDOW else Decimal(0)
            desk.capital(OLGA, kind, "a drill", amount)


def go_on(state: Path, tape: Path, acts: dict[int, CapitalKind], until: date | None = None) -> None:
    asked = bootstrap.Simulation(
        state=state, settings=databases.settings(state), tape=str(tape), from_day=date(2010, 5, 3)
    )
    made = bootstrap.assemble(asked, Meddling(state, acts))
    with made.store, made.closing:
        assert made.loop.run(until=until) is None


def test_a_halt_and_an_endowment_count_from_the_close_that_heard_them(tmp_path: Path, small_tape: Path) -> None:
    state = tmp_path / "state"
    go_on(
        state,
        small_tape,
        {10: CapitalKind.HALT, 20: CapitalKind.RESUME, 25: CapitalKind.ENDOW},
        until=date(2010, 7, 1),
    )
    with Store.open(databases.place(state)) as store, store.read() as view:
        marks = view.sessions.marks("simulation")
        events = {event.kind: event.day for event in view.capital.events("simulation") if event.by == "olga"}
        decided = [one.day for one in view.sessions.decisions("simulation") if one.revision != "service"]
    assert events[CapitalKind.HALT] == marks[9].day and events[CapitalKind.RESUME] == marks[19].day
    assert not [day for day in decided if marks[9].day <= day < marks[19].day]
    assert [day for day in decided if day >= marks[19].day]
    assert marks[25].flow == Decimal("1000.00")
    # A start folds all of it to the cent, and goes on.
    go_on(state, small_tape, {})
    with Store.open(databases.place(state)) as store, store.read() as view:
        assert len(view.sessions.marks("simulation")) > len(marks)
