"""Compare the books with the broker: each kind of mismatch has a name and a policy. Never a guess.

A policy says what happens with a mismatch: `adopt` takes the broker's word into the books as a labelled line, `alert`
tells and leaves both as they are, `halt` stops trading with the account left alone until a person has acted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum

from oomrl.domain.brokerage import BrokerOrder, Holding


class MismatchKind(StrEnum):
    """What differs between the books and the broker."""

    FOREIGN_ORDER = "foreign_order"
    UNKNOWN_POSITION = "unknown_position"
    MISSING_FILL = "missing_fill"
    LOST_ORDER = "lost_order"
    CASH_DIFFERENCE = "cash_difference"
    ACCOUNT_BLOCKED = "account_blocked"
    CALENDAR = "calendar"
    FLATTENED = "flattened"


class Policy(StrEnum):
    ADOPT = "adopt"
    ALERT = "alert"
    HALT = "halt"


@dataclass(frozen=True, slots=True)
class Policies:
    """What each kind of mismatch leads to.

    A foreign order or position in a name outside the fence is nobody's business and is no mismatch at all. Cash is
    adopted up to `rounding` dollars a fill, as a line of its own: brokers keep parts of cents that the books round.
    `flattened` are the kill switch's own sales, which it could not write down.
    """

    foreign_order: Policy = Policy.ALERT
    unknown_position: Policy = Policy.HALT
    missing_fill: Policy = Policy.HALT
    lost_order: Policy = Policy.HALT
    cash_difference: Policy = Policy.HALT
    account_blocked: Policy = Policy.HALT
    calendar: Policy = Policy.HALT
    flattened: Policy = Policy.ADOPT
    rounding: Decimal = Decimal("0.01")

    def of(self, kind: MismatchKind) -> Policy:
        """Return the policy of a kind."""
        policy: Policy = getattr(self, kind.value)
        return policy


@dataclass(frozen=True, slots=True)
class Mismatch:
    """One difference: what kind, about what (an order id, a symbol, "cash"), what the books and the broker say."""

    kind: MismatchKind
    subject: str
    expected: str
    found: str
    policy: Policy

    def __str__(self) -> str:
        return f"{self.kind.value} {self.subject}: expected {self.expected}, was {self.found} ({self.policy.value})"


@dataclass(frozen=True, slots=True)
class Expected:
    """What the books say the broker must show.

    `positions` and `cash` as of the last booked fill; `cash` None where the account is shared and its cash is therefore
    nobody's to compare; `given` what was endowed and may be in the broker's cash already; `behind` the shares
    (told, booked) of placements where the two differ; `lost` the placements that the broker took and no longer knows;
    `fills` how many fills the cash contains since it was last compared; `symbols` the fence (None: every name is ours).
    """

    positions: Mapping[str, Decimal]
    cash: Decimal | None
    given: Decimal = Decimal(0)
    behind: Mapping[str, tuple[Decimal, Decimal]] = field(default_factory=dict)
    lost: Sequence[str] = ()
    fills: int = 0
    symbols: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class Told:
    """What the broker shows at one moment: open orders of others, positions, cash, why it is blocked."""

    foreign: Sequence[BrokerOrder]
    positions: Iterable[Holding]
    cash: Decimal
    blocked: str = ""


def compare(expected: Expected, told: Told, policies: Policies) -> list[Mismatch]:
    """Return every difference between the books and the broker, by kind and subject."""
    found: list[Mismatch] = []

    def differs(kind: MismatchKind, subject: str, wanted: object, was: object, policy: Policy | None = None) -> None:
        found.append(Mismatch(kind, subject, str(wanted), str(was), policy or policies.of(kind)))

    if told.blocked:
        differs(MismatchKind.ACCOUNT_BLOCKED, "account", "an account that may trade", told.blocked)

    for order in told.foreign:
        if expected.symbols is None or order.symbol in expected.symbols:
            was = f"{order.side.value} {order.qty} {order.symbol} ({order.status})"
            name = order.client_order_id or order.id
            differs(MismatchKind.FOREIGN_ORDER, name, "orders of this service alone", was)
    for name in expected.lost:
        differs(MismatchKind.LOST_ORDER, name, "the order that the broker took", "no such order")
    for name, (filled, booked) in expected.behind.items():
        differs(MismatchKind.MISSING_FILL, name, f"{filled} shares filled", f"{booked} booked")

    held = {holding.symbol: holding.qty for holding in told.positions}
    names = sorted({*held, *expected.positions})
    for symbol in names:
        if expected.symbols is not None and symbol not in expected.symbols:
            continue
        ours, theirs = expected.positions.get(symbol, Decimal(0)), held.get(symbol, Decimal(0))
        if ours != theirs:
            differs(MismatchKind.UNKNOWN_POSITION, symbol, f"{ours} shares", f"{theirs} shares")

    if expected.cash is not None:
        wanted = min(expected.cash, expected.cash + expected.given, key=lambda cash: abs(told.cash - cash))
        gap = abs(told.cash - wanted)
        small = gap <= policies.rounding * expected.fills
        policy = Policy.ADOPT if small else policies.of(MismatchKind.CASH_DIFFERENCE)
        if gap:
            differs(MismatchKind.CASH_DIFFERENCE, "cash", wanted, told.cash, policy)
    return sorted(found, key=lambda mismatch: (mismatch.kind.value, mismatch.subject))
