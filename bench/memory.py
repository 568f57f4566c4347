"""`make memory`: what a model's memory of the market is worth, by the same unmasked run on a tape and on its twin.

Each of N planted faults is given to the whole loop twice, with real names, dates and prices in the prompts: on the
tape, and on its counterfactual twin, where months and names are dealt anew and nothing can be remembered. The paired
difference of the uplift in the Sharpe ratio is what memory was worth; a fault without a deployment has an uplift of 0.
The rule-based repairer remembers nothing: its difference is the noise of the measurement. Nothing is passed or failed.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bench.campaign import Campaign, arguments, beside
from bench.models import Asked, solve
from oomrl.exchange.tape_files import TWIN


def both(asked: Asked, seed: int) -> dict[str, Any]:
    """Return what became of one fault on the tape and on its twin."""
    twin = replace(asked, tape=f"{TWIN}{seed}:{asked.tape}")
    return {"tape": solve(asked, seed), "twin": solve(twin, seed)}


def worth(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the mean uplift on tapes and on twins, and their paired difference with its 95 % interval."""
    tape, twin = (np.array([row[side]["uplift"] or 0.0 for row in rows]) for side in ("tape", "twin"))
    more = tape - twin
    half = 1.96 * float(more.std(ddof=1)) / len(more) ** 0.5 if len(more) > 1 else None
    mean = float(more.mean())
    return {
        "uplift_sharpe": {"tape": round(float(tape.mean()), 4), "twin": round(float(twin.mean()), 4)},
        "memory_worth": {
            "mean": round(mean, 4),
            "interval": None if half is None else [round(mean - half, 4), round(mean + half, 4)],
        },
    }


def main(given: list[str] | None = None) -> int:
    """Run the campaign."""
    parser = arguments("memory", 12, "planted faults, each tried on the tape and on its twin", tape=True, model=True)
    options = parser.parse_args(given)
    campaign = Campaign("memory", options.size, options.seed, options.out)
    asked = Asked(options.tape, options.model, options.settings, unmasked=True)
    seeds = range(300_000 + 1_000 * options.seed, 300_000 + 1_000 * options.seed + options.size)
    for seed, row in beside(partial(both, asked), seeds, "faults on tape and twin", options.workers):
        campaign.add(f"fault/{seed}", seed, **row)
    return campaign.finish(
        True,
        label="UNMASKED: the model saw real names, dates and prices",
        tape=Path(options.tape).name,
        model=options.model,
        solved={side: sum(row[side]["solved"] for row in campaign.rows) for side in ("tape", "twin")},
        **worth(campaign.rows),
        cost=round(sum(row[side]["cost"] for row in campaign.rows for side in ("tape", "twin")), 4),
    )


if __name__ == "__main__":
    sys.exit(main())
