"""Measure the promotion rule: how often noise is promoted, and how often true repairs are.

`python -m bench.promotion [--tape T] [--size PLACEBOS] [--faults N] [--seed S]`: placebo patches in families of 20 on
one loss each, and the true repairs of planted faults. A placebo is made without seeing a price, has no expected benefit
and changes at least 5 % of the orders on its loss window. A fault counts where its effect, measured on other sessions
than those that judge its repair, exceeds three standard errors: net of everything, or in friction of at least 1 % a
year. Exit code 0 when at most 2 % of placebos are promoted as first tries, the best of 20 in at most 5 % of losses, and
at least 80 % of repairs.
"""

from __future__ import annotations

import random
import sys
import tomllib
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bench import market
from bench.campaign import Campaign, arguments, beside, wilson
from bench.market import Tree
from bench.nulls import nulls
from oomrl.adapters.starts import start_tree
from oomrl.domain.controls import placebo, with_values
from oomrl.domain.promotion import Decision

FAMILY = 20
LEAST_CHANGED = 0.05
#: What turns up in a placebo beside nudged windows: parameters, and by how much each is scaled at most.
JITTER = {
    "momentum_weight": 0.35, "volatility_weight": 0.35, "reversal_weight": 0.35, "momentum_window": 0.3,
    "volatility_window": 0.4, "reversal_window": 0.4, "momentum_skip": 0.5, "hold_fraction": 0.15, "max_weight": 0.15,
    "min_history": 0.2,
}  # fmt: skip


def jittered(tree: Tree, seed: int) -> dict[str, bytes]:
    """Scale one to four parameters up or down by chance; what is no gain on average, and no loss."""
    chance = random.Random(f"jitter {seed}")
    parameters = tomllib.loads(tree["strategy.toml"].decode())["parameters"]
    names = sorted(name for name in JITTER if isinstance(parameters.get(name), (int, float)) and parameters[name] > 0)
    changes: dict[str, object] = {}
    for name in chance.sample(names, chance.randint(1, 4)):
        value, scale = parameters[name], 1 + chance.choice((-1, 1)) * chance.uniform(JITTER[name] / 3, JITTER[name])
        changes[name] = max(1, round(value * scale)) if type(value) is int else round(value * scale, 4)
    return with_values(tree, changes)


def incumbent(seed: int) -> tuple[Tree, int, str]:
    """Return what trades on the loss of a seed, its capital and its name: shipped, phase 1, or a planted fault."""
    turn = seed % 3
    if turn == 0:
        return market.shipped(), 1_000_000, "shipped"
    if turn == 1:
        return start_tree("phase1")[0], 1_000_000, "phase1"
    fault = market.planted(seed)
    return fault.faulty, fault.start.capital, fault.start.kind


@dataclass(frozen=True)
class Family:
    """The placebos of one loss: what traded, and for each its seed, the share of orders changed, and both answers."""

    name: str
    today: str
    tried: list[dict[str, Any]]

    @property
    def any_promoted(self) -> bool:
        return any(row["promoted_in_turn"] for row in self.tried)


def family(source: str, seed: int) -> Family:
    """Judge placebos on one loss, each as the first try and in turn as the k-th."""
    tree, capital, name = incumbent(seed)
    when, replays = market.moment(source, seed), market.counterfactual(source, capital)
    first, today = market.span(source, when.today)
    base = replays.replayed(tree, first, today)
    tried: list[dict[str, Any]] = []
    for number in range(10 * FAMILY):
        if len(tried) == FAMILY:
            break
        made = (placebo if number % 2 else jittered)(tree, 1_000 * seed + number)
        changed = replays.replayed(made, first, today).changed(base, when.loss_first)
        if changed < LEAST_CHANGED:
            continue
        one = replays.judge(tree, made, when.loss_first, today, 1)
        kth = replays.judge(tree, made, when.loss_first, today, len(tried) + 1)
        tried.append(
            {
                "placebo": 1_000 * seed + number,
                "changed": round(changed, 3),
                "promoted": one.promoted,
                "promoted_in_turn": kth.promoted,
                "route": one.route.value if one.promoted and one.route else None,
                "p": round(one.tests["net"].p, 5) if "net" in one.tests else None,
            }
        )
    return Family(name, when.today.isoformat(), tried)


def null_models(source: str, seed: int) -> dict[str, dict[str, Any]]:
    """Judge each null model against the shipped strategy on one loss."""
    when, replays = market.moment(source, seed), market.counterfactual(source, 1_000_000)
    answers = {}
    for name, tree in nulls(market.shipped(), seed).items():
        decision = replays.judge(market.shipped(), tree, when.loss_first, when.today, 1)
        codes = sorted({refusal.code.value for refusal in decision.refusals})
        answers[name] = {"promoted": decision.promoted, "refusals": codes}
    return answers


def repair(source: str, seed: int) -> dict[str, Any]:
    """Measure a fault in the first half of the tape, and judge its true repair on a loss in the second."""
    fault = market.planted(seed)
    before, when = market.moment(source, seed, (0.0, 0.4)), market.moment(source, seed, (0.7, 1.0))
    net, friction = market.effect(source, fault, before.today)
    first, today = market.span(source, when.today)
    replays = market.counterfactual(source, fault.start.capital)
    decision: Decision = replays.judge(fault.faulty, fault.repaired, when.loss_first, today, 1)
    return {
        "kind": fault.start.kind,
        "site": fault.start.site,
        "capital": fault.start.capital,
        "net_errors": round(net, 2),
        "friction_errors": round(friction, 2),
        "measurable": net > market.MEASURABLE or friction > market.MEASURABLE,
        "today": when.today.isoformat(),
        "promoted": decision.promoted,
        "route": decision.route.value if decision.route else None,
        "refusals": sorted({refusal.code.value for refusal in decision.refusals}),
    }


def main(given: list[str] | None = None) -> int:
    """Run the campaign."""
    parser = arguments("promotion", 400, f"placebos, in families of {FAMILY} on one loss each", tape=True)
    parser.add_argument("--faults", type=int, default=44, help="planted faults whose true repair is judged")
    parser.add_argument("--nulls", type=int, default=12, help="losses on which the null models are judged")
    options = parser.parse_args(given)
    campaign = Campaign("promotion", options.size, options.seed, options.out)
    families = []
    seeds = range(10_000 + 100 * options.seed, 10_000 + 100 * options.seed + max(1, options.size // FAMILY))
    for seed, found in beside(partial(family, options.tape), seeds, "losses of placebos", options.workers):
        families.append(found)
        campaign.add(f"placebos/{seed}", seed, incumbent=found.name, today=found.today, tried=found.tried)
    repairs = []
    seeds = range(50_000 + 1_000 * options.seed, 50_000 + 1_000 * options.seed + options.faults)
    for seed, row in beside(partial(repair, options.tape), seeds, "true repairs", options.workers):
        repairs.append(row)
        campaign.add(f"repair/{seed}", seed, **row)
    null_rows = []
    seeds = range(90_000 + 100 * options.seed, 90_000 + 100 * options.seed + options.nulls)
    for seed, answers in beside(partial(null_models, options.tape), seeds, "losses of null models", options.workers):
        null_rows.append(answers)
        campaign.add(f"nulls/{seed}", seed, answers=answers)
    placebos = sum(len(found.tried) for found in families)
    promoted = sum(row["promoted"] for found in families for row in found.tried)
    best = sum(found.any_promoted for found in families)
    counted = [row for row in repairs if row["measurable"]]
    good = sum(row["promoted"] for row in counted)
    holds = promoted <= 0.02 * placebos and best <= 0.05 * len(families) and good >= 0.8 * len(counted)
    return campaign.finish(
        holds and placebos >= min(200, options.size),
        tape=Path(options.tape).name,
        placebos=placebos,
        placebos_promoted=promoted,
        placebos_interval=wilson(promoted, placebos),
        losses=len(families),
        losses_with_a_promoted_placebo=best,
        losses_interval=wilson(best, len(families)),
        null_models={
            name: {"of": len(null_rows), "promoted": sum(row[name]["promoted"] for row in null_rows)}
            for name in (null_rows[0] if null_rows else {})
        },
        repairs=len(counted),
        repairs_promoted=good,
        repairs_interval=wilson(good, len(counted)),
        repairs_measurable_net=_of(repairs, lambda row: row["net_errors"] > market.MEASURABLE),
        repairs_not_measurable=_of(repairs, lambda row: not row["measurable"]),
    )


def _of(rows: list[dict[str, Any]], chosen: Any) -> dict[str, int]:
    mine = [row for row in rows if chosen(row)]
    return {"of": len(mine), "promoted": sum(row["promoted"] for row in mine)}


if __name__ == "__main__":
    sys.exit(main())
