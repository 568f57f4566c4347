"""The kill switch: a file that stops orders, whatever else still works.

It needs no database and no broker: one write to the state directory, read again before each order goes out. In the
service's own directory it stops every account, in an account's that one.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from oomrl.adapters.database.place import service_of
from oomrl.domain.brokerage import BrokerOrder
from oomrl.errors import Halt, Unavailable

FILE = "HALT"

#: What client order ids of this service look like: revision, day of the decision, symbol, side, attempts.
OURS = re.compile(r"[0-9a-z]{1,40}-\d{8}-[A-Z0-9./-]+-[sb]-\d+(\.\d+)?")


@dataclass(frozen=True, slots=True)
class KillSwitch:
    """One state directory's switch. Engaged while the file is there, readable or not."""

    folder: Path

    @property
    def place(self) -> Path:
        return self.folder / FILE

    def engage(self, by: str, reason: str, at: datetime) -> None:
        """Stop orders from now on. The first reason stays. Raises `Unavailable` where the file cannot be made."""
        text = json.dumps({"by": by, "reason": reason, "at": at.isoformat()}) + "\n"
        try:
            with self.place.open("x", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
        except FileExistsError:
            return
        except OSError as error:
            if not self.place.exists():  # a full disk leaves it empty, and that stops orders as well
                raise Unavailable(
                    f"Expected to write {self.place}, was refused: {error.strerror}. Orders may still go out: stop the "
                    "service itself"
                ) from error

    def release(self) -> None:
        """Let orders go out again."""
        self.place.unlink(missing_ok=True)

    def words(self) -> str:
        """Say who engaged the switch and why; empty while it is not engaged."""
        try:
            told = json.loads(self.place.read_text("utf-8"))
            return f"by {told['by']}: {told['reason']}"
        except FileNotFoundError:
            return ""
        except (OSError, ValueError, KeyError, TypeError):
            return f"by a file {FILE} that cannot be read: nothing is sent"


def stopped(state: Path) -> str:
    """Say who stopped an account, or the whole service that it is of, and why; empty where nobody did."""
    return next((words for place in (service_of(state)[0], state) if (words := KillSwitch(place).words())), "")


def demand(state: Path) -> None:
    """Raise `Halt` where an account, or the whole service that it is of, is stopped."""
    words = stopped(state)
    if words:
        raise Halt(f"Halted {words}. `oomrl resume` lets orders go out again")


def ours(orders: Iterable[BrokerOrder]) -> list[BrokerOrder]:
    """Return the orders whose client order id says that this service sent them; a database need not be asked."""
    return [order for order in orders if OURS.fullmatch(order.client_order_id)]
