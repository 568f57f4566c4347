"""Faults in what the strategy believes about names: returns, windows, ranks."""

from __future__ import annotations

import random

from oomrl.testing.starts.fault import Fault, Plant, between, identifiers, millions, settings, source, via

EARNED = "        change = np.where(earned, returns.total_return(close, paid, split, before), 0.0)\n"
DOLLARS = """        row = self.count % self.dollars.shape[0]
        self.dollars[row] = 0.0
        self.dollars[row, at] = close * traded
"""
LEVEL_BEFORE = "        return self.levels[(self.count - 1 - sessions) % self.levels.shape[0]]\n"
ROWS = "            level_rows=self.parameters.momentum_window + 1,\n"
MOMENTUM = "    return returns.growth(history.level_before(skip), history.level_before(window))\n"
RECENT = "    change = returns.growth(history.level, history.level_before(window))\n"
KNOWN = "    known = age >= parameters.momentum_window\n"
VOLATILITY = "        volatility=volatility(history.changes, observed),\n"
ORDER = '    order = candidates[np.argsort(-total[candidates], kind="stable")]\n'
WEIGHTS = "    weights = (parameters.momentum_weight, parameters.volatility_weight, parameters.reversal_weight)\n"


def dividend_ignored(chance: random.Random) -> Fault:
    names = identifiers(chance)
    if chance.random() < 0.5:
        constant = between(chance, 0.0, 0.1)
        statement = f"{names[0]} = {constant} * paid"
        what = f"Only {constant:.1%} of a dividend enters a name's return."
    else:
        constant = between(chance, 0.05, 0.3)
        statement = f"{names[0]} = np.where(paid > {constant} * close, paid, 0.0)"
        what = f"Dividends below {constant:.1%} of the price are not counted."
    change = via("history", EARNED, statement, "paid", names[0])
    return Fault("history.record", constant, names, (change,), what)


def split_ignored(chance: random.Random) -> Fault:
    names = identifiers(chance)
    power = between(chance, 0.0, 0.3)
    change = via("history", EARNED, f"{names[0]} = split**{power}", "split", names[0])
    return Fault("history.record", power, names, (change,), "A split looks like a fall of the price.")


def stale_signal(chance: random.Random) -> Fault:
    days = chance.randint(1, 2)
    names = identifiers(chance)
    late = names[0]
    what = f"Every signal is {days} session(s) older than it could be."
    rows = source("strategy", ROWS, ROWS.replace("+ 1", f"+ {1 + days}"))
    heavy = settings(reversal_weight=between(chance, 0.6, 1.5), reversal_window=1, cadence="daily")
    if chance.random() < 0.5:
        recent = f"    change = returns.growth(history.level_before({late}), history.level_before(window + {late}))\n"
        changes = (
            rows,
            source("features", MOMENTUM, f"    {late} = {days}\n" + shifted(MOMENTUM, late)),
            source("features", RECENT, f"    {late} = {days}\n" + recent),
            *heavy,
        )
        return Fault("features.recent_return", days, names, changes, what)
    changes = (
        rows,
        via("history", LEVEL_BEFORE, f"{late} = sessions + {days}", "sessions", late),
        source("features", RECENT, RECENT.replace("history.level,", "history.level_before(0),")),
        *heavy,
    )
    return Fault("history.level_before", days, names, changes, what)


def shifted(line: str, late: str) -> str:
    return line.replace("skip)", f"skip + {late})").replace("window)", f"window + {late})")


def off_by_one_lookback(chance: random.Random) -> Fault:
    shift = chance.choice((1, 1, 1, 2))
    names = identifiers(chance)
    what = f"Looking back counts {shift} session(s) too few."
    if chance.random() < 0.5:
        change = via("features", RECENT, f"{names[0]} = max(window - {shift}, 0)", "(window)", f"({names[0]})")
        return Fault("features.recent_return", shift, names, (change,), what)
    change = via("history", LEVEL_BEFORE, f"{names[0]} = self.count - 1 + {shift}", "self.count - 1", names[0])
    return Fault("history.level_before", shift, names, (change,), what)


def wrong_horizon(chance: random.Random) -> Fault:
    window = chance.randint(5, 15)
    names = identifiers(chance)
    if chance.random() < 0.5:
        line = MOMENTUM.replace("(skip)", "(min(skip, 1))").replace("(window)", f"({names[0]})")
        change = source("features", MOMENTUM, f"    {names[0]} = min(window, {window})\n" + line)
        what = f"Momentum is the return of the last {window} sessions."
        heavy = settings(momentum_weight=between(chance, 2.0, 4.0), volatility_weight=0.5, cadence="daily")
        return Fault("features.momentum", window, names, (change, *heavy), what)
    weights = settings(momentum_weight=3.0, reversal_weight=between(chance, 0.0, 0.1), cadence="daily")
    changes = (*settings(momentum_window=window + 10, momentum_skip=0), *weights)
    return Fault("strategy.toml", window + 10, (), changes, f"Momentum looks back {window + 10} sessions only.")


def wrong_sign(chance: random.Random) -> Fault:
    names = identifiers(chance)
    factor = between(chance, 0.5, 2.0)
    light = between(chance, 0.0, 0.2)
    reversal = settings(
        reversal_weight=between(chance, 2.0, 4.0), reversal_window=chance.randint(2, 3), cadence="daily"
    )
    weights = (*settings(momentum_weight=light, volatility_weight=0.0), *reversal)
    if chance.random() < 0.5:
        order = via("selection", ORDER, f"{names[0]} = {factor} * total[candidates]", "-total[candidates]", names[0])
        return Fault("selection.select", factor, names, (order, *weights), "The worst scores are held.")
    mean = via("ranks", "    return mean\n", f"{names[0]} = {factor} * (1.0 - mean)", "mean", names[0])
    return Fault("ranks.combined", factor, names, (mean, *weights), "The combined score prefers the worst names.")


def rank_inverted(chance: random.Random) -> Fault:
    names = identifiers(chance)
    weight = between(chance, 0.5, 2.0)
    factor, right, wrong = chance.choice(
        (
            ("momentum", "features.momentum, ", "-{} * features.momentum"),
            ("volatility", "-features.volatility, ", "{} * features.volatility"),
            ("reversal", "-features.recent, ", "{} * features.recent"),
        )
    )
    line = f"    {factor} = returns.rank({right}"
    changes = (via("ranks", line, f"{names[0]} = {wrong.format(weight)}", right, f"{names[0]}, "),)
    if factor == "reversal":
        changes += settings(reversal_weight=between(chance, 1.5, 2.5), reversal_window=3, cadence="daily")
    what = f"The rank of the factor {factor} is upside down."
    return Fault(f"ranks.score:{factor}", weight, names, changes, what)


def reversal_overweight(chance: random.Random) -> Fault:
    names = identifiers(chance)
    what = "Short-term reversal outweighs all else, every day."
    daily = settings(reversal_window=1, cadence="daily", keep_fraction=between(chance, 0.3, 0.4))
    if chance.random() < 0.5:
        weight = between(chance, 2.5, 4.0)
        return Fault("strategy.toml", weight, (), (*daily, *settings(reversal_weight=weight)), what)
    factor = between(chance, 8.0, 20.0, 1)
    statement = f"{names[0]} = {factor} * parameters.reversal_weight"
    change = via("ranks", WEIGHTS, statement, "parameters.reversal_weight", names[0])
    return Fault("ranks.score", factor, names, (change, *daily), what)


def stale_universe(chance: random.Random) -> Fault:
    every = chance.randint(21, 63)
    names = identifiers(chance)
    if chance.random() < 0.5:
        anchor = f"        {names[0]} = self.count - 1 - (self.count - 1) % {every}\n"
        look = f"        return self.levels[max({names[0]} - sessions, 0) % self.levels.shape[0]]\n"
        changes = (
            source("strategy", ROWS, ROWS.replace("+ 1", f"+ {1 + every}")),
            source("history", LEVEL_BEFORE, anchor + look),
            source("features", RECENT, RECENT.replace("history.level,", "history.level_before(0),")),
        )
        what = f"Names are ranked anew only every {every} sessions."
        return Fault("history.level_before", every, names, changes, what)
    seldom = f"""        {names[0]} = self.count % {every}
        if {names[0]} == 0:
            self.dollars[:] = 0.0
            self.dollars[:, at] = close * traded
"""
    what = f"Liquidity is what one day showed, up to {every} sessions ago."
    capital = millions(chance, 300, 900)
    return Fault("history.record", every, names, (source("history", DOLLARS, seldom),), what, capital)


def noisy_volatility(chance: random.Random) -> Fault:
    rows = chance.randint(2, 3)
    names = identifiers(chance, 2)
    few, number = names
    latest = f"    {few} = history.changes[(history.count - 1 - np.arange({rows})) % history.changes.shape[0]]\n"
    changes = (
        source("features", KNOWN, f"{latest}    {number} = np.clip(observed, 1, {rows})\n{KNOWN}"),
        source("features", VOLATILITY, f"        volatility=volatility({few}, {number}),\n"),
        *settings(
            volatility_sizing=between(chance, 1.8, 2.0), volatility_weight=3.0, keep_fraction=0.3, cadence="daily"
        ),
    )
    what = f"Volatility is measured on {rows} returns, and sizes follow it every day."
    return Fault("features.measure", rows, names, changes, what)


PLANTS: dict[str, Plant] = {
    "dividend_ignored": dividend_ignored,
    "split_ignored": split_ignored,
    "stale_signal": stale_signal,
    "off_by_one_lookback": off_by_one_lookback,
    "wrong_horizon": wrong_horizon,
    "wrong_sign": wrong_sign,
    "rank_inverted": rank_inverted,
    "reversal_overweight": reversal_overweight,
    "stale_universe": stale_universe,
    "noisy_volatility": noisy_volatility,
}
