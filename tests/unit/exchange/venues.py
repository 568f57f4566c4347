"""Small venues with known paths, and orders as clients write them."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np

from oomrl.exchange.emulator.orders import PaperOrder
from oomrl.exchange.emulator.paper_account import Update
from oomrl.exchange.emulator.terms import Terms
from oomrl.exchange.emulator.tickets import ticket_of
from oomrl.exchange.emulator.venue import Venue
from oomrl.exchange.friction import Friction
from oomrl.exchange.tape import RECORDED, Tape

#: Two quiet days, the Wednesday before Thanksgiving, the half day after it, and the Monday.
DAYS = (date(2006, 11, 20), date(2006, 11, 21), date(2006, 11, 22), date(2006, 11, 24), date(2006, 11, 27))
QUIET = (100.0, 100.0, 100.0, 100.0, 1e6, 0.0, 1.0)
#: open 100, high 102, low 95, close 99: the high is nearer, so the path is 100, 102, 95, 99.
UP_FIRST = (100.0, 102.0, 95.0, 99.0, 1e6, 0.0, 1.0)
#: The path is 100, 98, 105, 104.
DOWN_FIRST = (100.0, 105.0, 98.0, 104.0, 1e6, 0.0, 1.0)

Row = tuple[float, ...] | None


def tape_of(**names: list[Row]) -> Tape:
    """Return a tape of the days above; a missing row is a day without a print, missing rows at the end are quiet."""
    grid = np.full((len(RECORDED), len(DAYS), len(names)), np.nan)
    for column, (_, rows) in enumerate(sorted(names.items())):
        for day, row in enumerate([*rows, *[QUIET] * (len(DAYS) - len(rows))]):
            if row is not None:
                grid[:, day, column] = row
    columns = {name: grid[number] for number, name in enumerate(RECORDED)}
    return Tape("small", tuple(sorted(names)), DAYS, columns)


def venue_of(*rows: Row, start: int = 1, cash: int = 100_000, **terms: Any) -> Venue:
    """Return a venue before session `start`; the rows are AA's sessions from there on, BB is quiet throughout."""
    tape = tape_of(AA=[*[QUIET] * start, *rows], BB=[])
    return Venue(tape, Terms(cash=Decimal(cash), friction=Friction.none(), **terms), DAYS[start])


class Desk:
    """A venue with everything that its stream said."""

    def __init__(self, venue: Venue) -> None:
        self.venue = venue
        self.updates: list[Update] = []
        venue.account.on_update = self.updates.append

    def send(self, side: str, qty: float | str | None, kind: str = "market", **fields: Any) -> PaperOrder:
        body = {"symbol": "AA", "side": side, "type": kind, "time_in_force": "day", **fields}
        if qty is not None:
            body["qty"] = str(qty)
        order, _ = self.venue.submit(ticket_of(body, fractional_limits=self.venue.terms.fractional_limits))
        return order

    def to(self, *moments: str) -> None:
        """Move to the next open, first, second or close, one after another."""
        for moment in moments:
            while (event := self.venue.next_event) is not None:
                self.venue.advance(event.at)
                if event.what.name.lower() == moment:
                    break

    def prices(self, order: PaperOrder) -> list[str]:
        return [f"{fill.price:.2f}" for fill in self.venue.account.fills if fill.order is order]

    def events(self, order: PaperOrder) -> list[str]:
        return [update.event for update in self.updates if update.order["id"] == order.id]


def desk(*rows: Row, **settings: Any) -> Desk:
    return Desk(venue_of(*rows, **settings))
