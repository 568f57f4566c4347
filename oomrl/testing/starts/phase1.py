"""The demo's starting point: the shipped strategy turned back into what the paper's phase 1 was.

Daily, a signal of one day's reversal, a few names, nothing kept, every change traded at once and at any price, blind to
liquidity: partly by strategy.toml, partly in code, so that repairs of either sort can mend it.
`phase1/start.patch` is what is applied; `patch` makes it anew after the strategy has changed.
"""

from __future__ import annotations

from pathlib import Path

from oomrl.testing.starts.fault import settings, source
from oomrl.testing.starts.tree import Change, changed, diff, read_tree, shipped_repository, without_tests

#: The patch, as shipped: paths relative to the root of the strategy repository.
START = Path(__file__).with_name("phase1") / "start.patch"

SIZED = """\
        caps = np.minimum(
            sizing.name_cap(int(chosen.sum()), self.parameters),
            liquidity.position_caps(measured, equity, self.parameters),
        )
        ideal = sizing.capped(shares, caps, self.parameters.exposure - locked.sum())
        worth_trading = sizing.banded(ideal, current, self.parameters.no_trade_band)
        room = liquidity.reach(measured, equity, self.parameters)
        reached = liquidity.within_reach(worth_trading, current, room)
        tradable = np.where(measured.tradable, reached, 0.0)
"""
BLIND = """\
        caps = np.full(current.shape, sizing.name_cap(int(chosen.sum()), self.parameters))
        ideal = sizing.capped(shares, caps, self.parameters.exposure - locked.sum())
        tradable = np.where(measured.tradable, ideal, 0.0)
"""
PLANNED = '''\
    """Return the liquidity plan of one order.

    `trade` is its size in dollars (either sign), `dollars` the name's daily dollars, `volatility` daily. The limit
    stands `limit_volatilities` of daily volatility away, in basis points; 0 asks for a market order.
    """
    a_session = parameters.max_participation * dollars
    needed = math.ceil(abs(trade) / a_session) if a_session > 0.0 else parameters.max_sessions
    limit = parameters.limit_volatilities * volatility * 1e4
    return {
        "max_participation": parameters.max_participation,
        "sessions": max(1, min(needed, parameters.max_sessions)),
        "limit_bps": limit if limit > 0.0 else None,
    }
'''
AT_ONCE = '''\
    """Return the plan of one order: all of it in the next session, at the market."""
    return {"max_participation": 1.0, "sessions": 1, "limit_bps": None}
'''

CHANGES: tuple[Change, ...] = (
    *settings(
        cadence="daily",
        warmup=64,
        min_price=0.0,
        min_dollar_volume=0.0,
        min_history=21,
        momentum_window=21,
        momentum_skip=1,
        momentum_weight=0.5,
        volatility_weight=0.0,
        volatility_window=21,
        reversal_window=1,
        reversal_weight=1.0,
        hold_fraction=0.1,
        keep_fraction=0.0,
        volatility_sizing=0.0,
        max_weight=0.25,
    ),
    source("strategy", SIZED, BLIND),
    source("liquidity", PLANNED, AT_ONCE),
    source("liquidity", "import math\n\n", ""),
)

#: The tests that notice; they leave with the change. All others hold before and after a repair.
NOTICED_BY = (
    "test_decision.test_each_order_has_a_plan_and_others_have_none",
    "test_liquidity.test_a_name_that_does_not_trade_takes_all_the_sessions",
    "test_liquidity.test_an_order_is_worked_over_as_many_sessions_as_it_needs",
    "test_liquidity.test_the_plan_names_its_participation_and_limit",
    "test_strategy.test_a_held_name_that_ranks_well_enough_is_kept_and_then_left_alone",
    "test_strategy.test_a_large_account_moves_only_as_far_as_volume_allows",
    "test_strategy.test_a_market_that_never_moves_is_held_without_nan",
    "test_strategy.test_a_name_that_is_given_up_is_given_up_whole",
    "test_strategy.test_a_position_never_grows_beyond_its_share_of_daily_dollars",
    "test_strategy.test_every_answer_is_well_formed_and_within_its_limits",
    "test_strategy.test_small_drifts_stay_inside_the_band_and_keep_their_exact_weight",
)


def patch(repository: Path | None = None) -> str:
    """Return the canonical diff from the shipped repository to phase 1."""
    before = read_tree(repository or shipped_repository())
    return diff(before, without_tests(changed(before, CHANGES), NOTICED_BY))
