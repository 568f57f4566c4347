"""Faults in how orders take liquidity. Most need an account that is large beside what names trade."""

from __future__ import annotations

import random

from oomrl.testing.starts.fault import Fault, Plant, between, identifiers, millions, settings, source, via

REACH = "    return parameters.max_sessions * parameters.max_participation * features.dollars / equity\n"
REACHED = "parameters.max_sessions * parameters.max_participation * features.dollars"
POSITION = "    return parameters.max_position_volume * features.dollars / equity\n"
A_SESSION = "    a_session = parameters.max_participation * dollars\n"
PARTICIPATION = '        "max_participation": parameters.max_participation,\n'
SESSIONS = '        "sessions": max(1, min(needed, parameters.max_sessions)),\n'
LIMIT = "    limit = parameters.limit_volatilities * volatility * 1e4\n"
ROOM = "        room = liquidity.reach(measured, equity, self.parameters)\n"
CAPS = "            liquidity.position_caps(measured, equity, self.parameters),\n"
LIQUID = "        & (features.dollars >= parameters.min_dollar_volume)\n"
UNIVERSE = "    return most_liquid(mask, features.dollars, parameters.universe_size)\n"
BY_LIQUIDITY = '    order = np.argsort(-dollars[candidates], kind="stable")\n'
CUT = "    cut[candidates[order[:size]]] = True\n"
IMPORT = "from strategy.features import Features\n"


def blind_to_liquidity(chance: random.Random) -> Fault:
    names = identifiers(chance)
    what = "Orders and positions ignore what a name trades."
    share = between(chance, 0.5, 1.0)
    wide = between(chance, 20.0, 60.0, 1)
    capital = millions(chance, 150, 500)
    market = (
        *settings(reversal_weight=between(chance, 1.2, 2.0), cadence="daily"),
        source("liquidity", PARTICIPATION, PARTICIPATION.replace("parameters.max_participation", str(share))),
        source("liquidity", SESSIONS, SESSIONS.replace("parameters.max_sessions", "1")),
    )
    if chance.random() < 0.5:
        changes = (
            *market,
            via("liquidity", REACH, f"{names[0]} = {wide} * features.dollars", REACHED, names[0]),
            source("liquidity", POSITION, POSITION.replace("parameters.max_position_volume", str(wide))),
        )
        return Fault("liquidity.reach", share, names, changes, what, capital)
    changes = (
        *market,
        source("strategy", ROOM, f"        {names[0]} = {wide}\n        room = {names[0]} * np.ones(current.shape)\n"),
        source("strategy", CAPS, f"            np.full(current.shape, {wide}),\n"),
    )
    return Fault("strategy.wanted", share, names, changes, what, capital)


def illiquid_tail(chance: random.Random) -> Fault:
    names = identifiers(chance)
    what = "The least liquid names are ranked."
    capital = millions(chance, 30, 90)
    blind = (
        source("liquidity", REACH, REACH.replace("max_participation *", "max_participation * 40.0 *")),
        source("liquidity", POSITION, POSITION.replace("parameters.max_position_volume", "20.0")),
        *settings(reversal_weight=between(chance, 1.2, 2.0), cadence="daily"),
        source("liquidity", PARTICIPATION, PARTICIPATION.replace("parameters.max_participation", "1.0")),
    )
    if chance.random() < 0.5:
        count = chance.randint(12, 30)
        changes = (
            via("universe", BY_LIQUIDITY, f"{names[0]} = min(size, {count})", "-dollars", "dollars"),
            source("universe", CUT, CUT.replace("size", names[0])),
            *blind,
        )
        return Fault("universe.most_liquid", count, names, changes, what, capital)
    share = between(chance, 0.15, 0.35)
    tail = f"{names[0]} = returns.rank(features.dollars, mask) < {share}"
    changes = (
        via("universe", UNIVERSE, tail, "(mask,", f"(mask & {names[0]},"),
        source("universe", LIQUID, ""),
        source("universe", IMPORT, "from strategy import returns\n" + IMPORT),
        *blind,
    )
    return Fault("universe.eligible", share, names, changes, what, capital)


def limit_too_tight(chance: random.Random) -> Fault:
    names = identifiers(chance)
    what = "Limit prices are so near that orders miss."
    if chance.random() < 0.5:
        unit = between(chance, 20.0, 200.0, 1)
        change = via("liquidity", LIMIT, f"{names[0]} = {unit}", "1e4", names[0])
        return Fault("liquidity.plan", unit, names, (change,), what)
    width = between(chance, 0.005, 0.05, 5)
    return Fault("strategy.toml", width, (), settings(limit_volatilities=width), what)


def starved_orders(chance: random.Random) -> Fault:
    names = identifiers(chance)
    share = between(chance, 0.0002, 0.002, 5)
    capital = millions(chance, 100, 600)
    if chance.random() < 0.5:
        change = via("liquidity", REACH, f"{names[0]} = {share} * features.dollars", REACHED, names[0])
        what = "Weights move so little that targets are never met."
        return Fault("liquidity.reach", share, names, (change,), what, capital)
    least = "parameters.max_participation"
    changes = (
        via("liquidity", A_SESSION, f"{names[0]} = {share}", least, names[0]),
        source("liquidity", PARTICIPATION, PARTICIPATION.replace(least, names[0])),
    )
    return Fault("liquidity.plan", share, names, changes, "Orders take so little volume that they starve.", capital)


PLANTS: dict[str, Plant] = {
    "blind_to_liquidity": blind_to_liquidity,
    "illiquid_tail": illiquid_tail,
    "limit_too_tight": limit_too_tight,
    "starved_orders": starved_orders,
}
