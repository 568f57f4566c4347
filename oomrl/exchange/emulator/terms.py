"""How the exchange treats its account."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal

from oomrl.domain.trading import AccountRules
from oomrl.exchange.friction import Friction


@dataclass(frozen=True, slots=True)
class Terms:
    """How the exchange treats its account.

    `multiplier` 1 is a cash account, 2 one with Regulation T margin. `cash_rule` "refuse" refuses buys beyond the
    buying power, as the broker does; "wait" accepts them and lets them wait for cash, as the in-process exchange
    does. `fractional_limits` allows fractional limit and stop orders. The rest is as in `PaperExchange`.
    """

    cash: Decimal = Decimal(1_000_000)
    friction: Friction = field(default_factory=Friction)
    rules: AccountRules = field(default_factory=AccountRules)
    multiplier: int = 1
    cash_rule: str = "refuse"
    fractional_limits: bool = False
    delist_after: int = 10
    delisting_recovery: float = 1.0
