"""What trading costs in simulation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oomrl.domain.market import Floats, Ints

#: Daily volatility that is assumed for a name before enough of its prints were seen.
UNKNOWN_VOLATILITY = 0.02


@dataclass(frozen=True, slots=True)
class Friction:
    """Set the costs of a simulated fill; defaults are typical of US large companies.

    half_spread_bps, min_half_spread: half the quoted spread, in basis points of the price and at least in dollars.
    impact_coefficient: price concession = coefficient * daily volatility * sqrt(shares / session volume), so that
        the total cost grows with the 3/2 power of the shares (the square-root law, average over the order).
    commission_per_share, commission_bps: dollars a share, and basis points of the amount.
    sec_fee_rate, taf_per_share: regulatory fees of sales, a share of the amount and dollars a share, each rounded
        up to the cent; together never above the amount.
    max_participation: the largest share of a session's volume that one order takes.
    """

    half_spread_bps: float = 2.0
    min_half_spread: float = 0.0
    impact_coefficient: float = 0.6
    commission_per_share: float = 0.0035
    commission_bps: float = 0.0
    sec_fee_rate: float = 0.0000278
    taf_per_share: float = 0.000166
    max_participation: float = 0.25

    @classmethod
    def none(cls) -> Friction:
        """Return no friction at all: every order fills whole at its reference price."""
        return cls(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)

    @property
    def free_of_fees(self) -> bool:
        return not (self.commission_per_share or self.commission_bps or self.sec_fee_rate or self.taf_per_share)

    def concession(
        self, reference: Floats, volatility: Floats, before: Floats, shares: Floats, volume: Floats
    ) -> tuple[Floats, Floats]:
        """Return (half-spread, impact) in whole ticks a share, both >= 0. All shapes (n,).

        `reference` is in ticks; `before` are the shares that the same order already took in this session, so that
        an order's impact does not depend on how many fills it came in.
        """
        spread = np.rint(np.maximum(reference * (self.half_spread_bps / 1e4), self.min_half_spread * 1e4))
        if not self.impact_coefficient:
            return spread, np.zeros_like(reference)
        root = ((before + shares) ** 1.5 - before**1.5) / shares if before.any() else np.sqrt(shares)
        return spread, np.rint(reference * volatility * root / np.sqrt(volume) * self.impact_coefficient)

    def fees(self, shares: Floats, cents: Ints) -> tuple[Ints, Ints]:
        """Return (commission, regulatory fees) in whole cents for fills of signed shares and signed amounts."""
        if self.free_of_fees:
            zero = np.zeros(len(shares), dtype=np.int64)
            return zero, zero
        size, amount = np.abs(shares), np.abs(cents)
        charged = np.rint(size * (self.commission_per_share * 100) + amount * (self.commission_bps / 1e4))
        sold = shares < 0
        commission = np.where(sold, np.minimum(charged, amount), charged).astype(np.int64)
        sec = np.ceil(amount * self.sec_fee_rate - 1e-9)
        taf = np.ceil(size * (self.taf_per_share * 100) - 1e-9)
        regulatory = np.where(sold, np.minimum(sec + taf, amount - commission), 0.0).astype(np.int64)
        return commission, regulatory
