"""An endowment reaches the exchange's account as well as the books, which agree to the cent ever after."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from oomrl import bootstrap
from oomrl.adapters.database import Store
from oomrl.calendar import Calendar
from oomrl.daemon.jobs import Heard
from oomrl.daemon.tracing import Traces
from oomrl.domain.ledger import Book
from oomrl.domain.records import CapitalEvent, CapitalKind
from oomrl.testing import calendar_tapes
from tests import databases

#: A Friday; the first decision of the week after it is made on Monday, and its orders trade on Tuesday.
FRIDAY = date(2024, 3, 1)
GIVEN = Decimal("123456.78")


def traded(folder: Path, until: date, broker: str) -> None:
    """Run the loop to a day in a process's worth of state of its own, and compare three sets of books."""
    tape = folder / "market.parquet"
    asked = bootstrap.Simulation(
        state=folder / "state",
        settings=databases.settings(folder / "state", {"loop": {"reviewer": "auto"}}),
        tape=str(tape),
        from_day=FRIDAY,
        growing=True,
        broker=broker,
    )
    made = bootstrap.assemble(asked, Heard(Traces({})))
    with made.store, made.closing:
        made.loop.run(until=until)
        with made.store.read() as view:
            booked = view.ledger.cash(made.run, Book.BOTH)
        assert made.loop.broker.cash() == made.loop.account.books.broker_cash == booked
        assert dict(made.loop.broker.positions()) == dict(made.loop.account.books.broker_positions)


@pytest.mark.parametrize("broker", ["inprocess", "http"])
def test_an_endowment_is_in_the_exchange_s_cash_and_in_the_ledger_s(tmp_path: Path, broker: str) -> None:
    calendar = Calendar("XNYS", date(2022, 12, 1), date(2024, 6, 28))
    days = [hours.day for hours in calendar.between(date(2023, 1, 1), date(2024, 3, 29))]
    (tmp_path / "state").mkdir()
    tape = calendar_tapes.market(days)
    served = [day for day in days if day >= FRIDAY]

    def until(day: date) -> None:
        calendar_tapes.write(tape, tmp_path / "market.parquet", day)
        traded(tmp_path, day, broker)

    until(served[0])
    with Store.open(databases.place(tmp_path / "state")) as store, store.begin() as work:
        before = work.ledger.cash(bootstrap.RUN, Book.BOTH)
        at = datetime(2024, 3, 2, tzinfo=UTC)
        work.capital.save(CapitalEvent("endow/1", bootstrap.RUN, CapitalKind.ENDOW, FRIDAY, at, GIVEN, "ann", "grow"))
    until(served[1])
    with Store.open(databases.place(tmp_path / "state")) as store, store.read() as view:
        assert view.ledger.cash(bootstrap.RUN, Book.BOTH) == before + GIVEN
    until(served[2])
    with Store.open(databases.place(tmp_path / "state")) as store, store.read() as view:
        assert view.orders.counts(bootstrap.RUN)[1] > 0
