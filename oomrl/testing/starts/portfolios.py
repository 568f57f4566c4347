"""Faults in which names are held and how much of each."""

from __future__ import annotations

import random

from oomrl.testing.starts.fault import Fault, Plant, between, identifiers, settings, source, via

KEEP = "    keep = places(order.size, parameters.keep_fraction, parameters)\n"
KEPT = "    kept = order[:keep]\n"
PLACES = "    wanted = max(round(fraction * universe), parameters.min_holdings)\n"
SELECT = "        chosen = selection.select(scores.total, members, current > 0.0, self.parameters)\n"
CURRENT = "        current = returns.holding_weights(shares, measured.close, equity)\n"
FROZEN = "        frozen = (current > 0.0) & ~measured.tradable & (measured.silent <= self.parameters.max_gap)\n"
BAND = "        worth_trading = sizing.banded(ideal, current, self.parameters.no_trade_band)\n"
CAPPED = "        ideal = sizing.capped(shares, caps, self.parameters.exposure - locked.sum())\n"
PROPORTIONS = "        shares = sizing.proportions(measured.volatility, chosen, self.parameters.volatility_sizing)\n"
NEAR = "    near = np.abs(ideal - current) <= band * np.maximum(ideal, current)\n"
RAW = "    raw = np.where(chosen, volatility ** (-power), 0.0)\n"
NAME_CAP = "    return min(max(parameters.max_weight, parameters.exposure / count), parameters.few_names_weight)\n"
SIZING = "self.parameters.volatility_sizing"


def churn(chance: random.Random) -> Fault:
    names = identifiers(chance)
    daily = settings(cadence="daily", reversal_window=1, reversal_weight=between(chance, 1.3, 2.2))
    if chance.random() < 0.5:
        share = between(chance, 0.02, 0.2)
        changes = (
            source("selection", KEEP, f"    {names[0]} = max(1, round({share} * room))\n"),
            source("selection", KEPT, KEPT.replace("keep]", f"{names[0]}]")),
            *daily,
        )
        return Fault("selection.select", share, names, changes, "Held names are replaced at the slightest change.")
    least = between(chance, 0.4, 0.9)
    changes = (via("strategy", SELECT, f"{names[0]} = current > {least}", "current > 0.0", names[0]), *daily)
    return Fault("strategy.decide", least, names, changes, "No name counts as held, so that nothing is kept.")


def no_cost_model(chance: random.Random) -> Fault:
    names = identifiers(chance)
    power = between(chance, 1.6, 2.0)
    rest = settings(
        cadence="daily", volatility_window=10, volatility_sizing=power, keep_fraction=0.0, reversal_window=2
    )
    band = between(chance, 0.0, 0.01)
    if chance.random() < 0.5:
        change = via("strategy", BAND, f"{names[0]} = {band}", "self.parameters.no_trade_band", names[0])
        return Fault("strategy.wanted", band, names, (change, *rest), "Every change is traded, whatever it costs.")
    change = via("sizing", NEAR, f"{names[0]} = {band} * band", "band *", f"{names[0]} *")
    return Fault("sizing.banded", band, names, (change, *rest), "The no-trade band is all but closed.")


def concentration(chance: random.Random) -> Fault:
    names = identifiers(chance)
    what = "A handful of names carries the whole account."
    cap = between(chance, 0.25, 0.35)
    if chance.random() < 0.5:
        share = between(chance, 0.05, 0.12)
        few = f"    {names[0]} = {share} * fraction\n    wanted = max(round({names[0]} * universe), 1)\n"
        changes = (
            source("selection", PLACES, few),
            source("sizing", NAME_CAP, NAME_CAP.replace("parameters.max_weight", str(cap))),
        )
        return Fault("selection.places", share, names, changes, what)
    share = between(chance, 0.02, 0.035)
    changes = settings(hold_fraction=share, keep_fraction=0.05, min_holdings=2, max_weight=cap)
    return Fault("strategy.toml", share, (), changes, what)


def cap_dropped(chance: random.Random) -> Fault:
    names = identifiers(chance)
    what = "One name may take the whole account."
    power = between(chance, 5.0, 9.0, 1)
    if chance.random() < 0.5:
        uncapped = f"capped({names[0]}, np.ones(caps.shape)"
        change = via("strategy", CAPPED, f"{names[0]} = shares**{power}", "capped(shares, caps", uncapped)
        return Fault("strategy.wanted", power, names, (change,), what)
    cap = NAME_CAP.replace("parameters.max_weight", names[0]).replace("parameters.few_names_weight", "1.0")
    changes = (
        source("sizing", NAME_CAP, f"    {names[0]} = parameters.exposure\n{cap}"),
        source("strategy", PROPORTIONS, PROPORTIONS.replace(SIZING, f"{power} * {SIZING}")),
    )
    return Fault("sizing.name_cap", power, names, changes, what)


def no_volatility_sizing(chance: random.Random) -> Fault:
    names = identifiers(chance)
    what = "The wilder a name, the more of it is held."
    power = between(chance, 1.0, 3.0)
    if chance.random() < 0.5:
        change = via(
            "sizing", RAW, f"{names[0]} = {power} * power", "volatility ** (-power)", f"volatility**{names[0]}"
        )
        return Fault("sizing.proportions", power, names, (change,), what)
    change = via("strategy", PROPORTIONS, f"{names[0]} = -{power} * {SIZING}", SIZING, names[0])
    return Fault("strategy.wanted", power, names, (change,), what)


def mis_sized_after_split(chance: random.Random) -> Fault:
    names = identifiers(chance)
    own = f"self.{names[0]}"
    power = between(chance, 0.7, 1.0)
    begun = "        self.close = np.zeros(0)\n"
    closed = "        self.close[at] = close\n"
    grown = "            self.close = np.append(self.close, np.zeros(new))\n"
    held, site = chance.choice((("shares, ", "shares"), ("measured.close, ", "close")))
    twice = held.replace(", ", f" * self.history.{names[0]}, ")
    changes = (
        via("history", begun, f"{own} = np.zeros(0)"),
        via("history", closed, f"{own}[at] = np.where(split != 1.0, split**{power}, {own}[at])"),
        via("history", grown, f"{own} = np.append({own}, np.ones(new))"),
        source("strategy", CURRENT, CURRENT.replace(held, twice)),
    )
    what = "A name that has split counts as larger than it is."
    return Fault(f"strategy.decide:{site}", power, names, changes, what)


def idle_cash(chance: random.Random) -> Fault:
    names = identifiers(chance)
    share = between(chance, 0.25, 0.6)
    if chance.random() < 0.5:
        exposure = "self.parameters.exposure"
        change = via("strategy", CAPPED, f"{names[0]} = {share} * {exposure}", exposure, names[0])
        return Fault("strategy.wanted", share, names, (change,), "Much of the account lies idle.")
    change = via("sizing", "    left = budget\n", f"{names[0]} = {share} * budget", "budget", names[0])
    return Fault("sizing.capped", share, names, (change,), "Much of the account lies idle.")


def delisted_kept(chance: random.Random) -> Fault:
    names = identifiers(chance)
    what = "Names that have stopped printing are kept."
    gap = chance.randint(300, 2000)
    if chance.random() < 0.5:
        return Fault("strategy.toml", gap, (), settings(max_gap=gap), what)
    longest = "self.parameters.max_gap"
    change = via("strategy", FROZEN, f"{names[0]} = max({longest}, {gap})", longest, names[0])
    return Fault("strategy.decide", gap, names, (change,), what)


PLANTS: dict[str, Plant] = {
    "churn": churn,
    "no_cost_model": no_cost_model,
    "concentration": concentration,
    "cap_dropped": cap_dropped,
    "no_volatility_sizing": no_volatility_sizing,
    "mis_sized_after_split": mis_sized_after_split,
    "idle_cash": idle_cash,
    "delisted_kept": delisted_kept,
}
