"""What trading costs in simulation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oomrl.domain.market import Floats

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

    def half_spread(self, reference: Floats) -> Floats:
        """Return the half-spread a share, whole ticks >= 0, for references in ticks. Shape kept."""
        spread = reference * self.half_spread_bps / 1e4
        if self.min_half_spread:
            spread = np.maximum(spread, self.min_half_spread * 1e4)
        whole: Floats = np.rint(spread)
        return whole

    def impact_scale(self, volatility: Floats, volume: Floats) -> Floats:
        """Return coefficient * volatility / sqrt(volume), what one share's square root is multiplied with."""
        scale: Floats = volatility * (self.impact_coefficient / np.sqrt(volume))
        return scale

    def impact(self, reference: Floats, scale: Floats, shares: Floats, before: Floats | None = None) -> Floats:
        """Return the impact a share, whole ticks >= 0, for references in ticks. All shapes (n,).

        `before` are the shares that the same order already took in this session (None: none), so that an order's
        impact does not depend on how many fills it came in.
        """
        if before is None or not before.any():
            root = np.sqrt(shares)
        else:
            root = ((before + shares) ** 1.5 - before**1.5) / shares
        whole: Floats = np.rint(reference * scale * root)
        return whole

    def commission(self, shares: Floats, cents: Floats) -> Floats:
        """Return whole cents for fills of `shares` >= 0 that moved `cents` >= 0."""
        charged = shares * (self.commission_per_share * 100)
        if self.commission_bps:
            charged = charged + cents * (self.commission_bps / 1e4)
        whole: Floats = np.rint(charged)
        return whole

    def sale_fees(self, shares: Floats, cents: Floats) -> tuple[Floats, Floats]:
        """Return (commission, regulatory fees) in whole cents for sales, together never above `cents`."""
        commission = np.minimum(self.commission(shares, cents), cents)
        regulatory = np.ceil(cents * self.sec_fee_rate - 1e-9)
        if self.taf_per_share:
            regulatory += np.ceil(shares * (self.taf_per_share * 100) - 1e-9)
        return commission, np.minimum(regulatory, cents - commission)
