"""Compare repairers: how many planted faults a model mends through the whole loop, at what price, and what it brings.

`python -m bench.models [--tape T] [--size FAULTS] [--seed S] [--model offline|openai] [--settings FILE]`: each fault
whose effect is measurable (see bench.promotion) starts a simulation of its own on a real tape. Solved: a proposal to
the first loss that demands a patch passes the gate and the promotion rule within three attempts. The repairer knows
nothing of the generator. Beside it stand the uplift since the first deployment and the controls', over all starts
with a deployment. Exit code 0 when the offline repairer solves at least half.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bench import market
from bench.campaign import Campaign, arguments, beside, wilson
from oomrl import bootstrap
from oomrl.adapters.outcome import outcome
from oomrl.cli.console import Watching
from oomrl.domain.records import ProposalStatus
from oomrl.settings import load

#: Sessions that a fault trades for.
SESSIONS = 378
CONTROLS = ("placebo", "cadence", "inverse")


@dataclass(frozen=True)
class Asked:
    """What every case needs: the tape, the model, a settings file or none, and whether it sees names and dates."""

    tape: str
    model: str
    settings: str | None
    unmasked: bool = False


def measured(asked: Asked, seed: int) -> dict[str, Any]:
    """Return what a fault costs, in standard errors, on sessions before those that it is judged on."""
    fault = market.planted(seed)
    net, friction = market.effect(asked.tape, fault, market.moment(asked.tape, seed, (0.0, 0.4)).today)
    counts = net > market.MEASURABLE or friction > market.MEASURABLE
    return {"net_errors": round(net, 2), "friction_errors": round(friction, 2), "measurable": counts}


def solve(asked: Asked, seed: int) -> dict[str, Any]:
    """Run the whole loop from one planted fault, and say what became of its first loss and of the account."""
    fault, tape = market.planted(seed), market.tape_of(asked.tape)
    begin = tape.days.index(market.moment(asked.tape, seed, (0.45, 0.9)).today)
    first, last = tape.days[begin], tape.days[min(begin + SESSIONS, len(tape.days) - 1)]
    settings = load(
        Path(asked.settings) if asked.settings else None,
        {
            "account": {"endowment": str(fault.start.capital)},
            "loop": {"reviewer": "auto"},
            "model": {"provider": asked.model},
        },
    )
    with tempfile.TemporaryDirectory() as place:
        patch = Path(place) / "start.patch"
        patch.write_text((fault.start.tests_patch or "") + fault.start.patch, "utf-8")
        state = Path(place) / "state"
        wanted = bootstrap.Simulation(
            state, settings, asked.tape, first, last, str(patch), seed, unmasked=asked.unmasked
        )
        made = bootstrap.assemble(wanted, Watching(0, quiet=True))
        with made.store:
            made.loop.run()
            found = outcome(
                made.run, made.store, made.repository, made.counterfactual, made.inverse, made.start_day,
                settings.account.endowment, settings.account.riskless_rate, seed,
            )  # fmt: skip
            with made.store.read() as view:
                demanding = [d for d in view.losses.diagnostics(made.run) if d.status != "no_patch"]
                proposals = view.proposals.all(made.run, demanding[0].id) if demanding else []
                read, written, cost = view.prompts.bill(made.run)
    good = [proposal.attempt for proposal in proposals if proposal.status is ProposalStatus.DEPLOYED]
    controls = found.result["controls"]
    return {
        "kind": fault.start.kind,
        "site": fault.start.site,
        "from": first.isoformat(),
        "diagnosed": str(demanding[0].payload["diagnostics"]["root_cause"]) if demanding else None,  # type: ignore[index]
        "attempts": len(proposals),
        "solved": bool(good),
        "deployments": found.result["deployments"],
        "uplift": found.result["uplift_sharpe"],
        "controls": {name: controls[name]["uplift_sharpe"] for name in CONTROLS if name in controls},
        "tokens": read + written,
        "cost": float(cost),
    }


def uplift(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the mean uplift of the Sharpe ratio over starts and its 95 % interval, run and controls side by side."""
    told = [row for row in rows if row["uplift"] is not None]
    columns = {"run": [row["uplift"] for row in told]}
    columns |= {name: [row["controls"][name] for row in told if name in row["controls"]] for name in CONTROLS}
    answer: dict[str, Any] = {"starts": len(told)}
    for name, values in columns.items():
        sample = np.array([value for value in values if value is not None], dtype=np.float64)
        if len(sample) > 1:
            half = 1.96 * float(sample.std(ddof=1)) / len(sample) ** 0.5
            mean = float(sample.mean())
            answer[name] = {"mean": round(mean, 4), "interval": [round(mean - half, 4), round(mean + half, 4)]}
    return answer


def main(given: list[str] | None = None) -> int:
    """Run the campaign."""
    parser = arguments(
        "models", 44, "planted faults that are measured; those with a measurable effect count", tape=True, model=True
    )
    options = parser.parse_args(given)
    campaign = Campaign("models", options.size, options.seed, options.out)
    asked = Asked(options.tape, options.model, options.settings)
    seeds = range(200_000 + 1_000 * options.seed, 200_000 + 1_000 * options.seed + options.size)
    effects = dict(beside(partial(measured, asked), seeds, "faults measured", options.workers))
    counted = [seed for seed, effect in effects.items() if effect["measurable"]]
    rows = []
    for seed, row in beside(partial(solve, asked), counted, "faults repaired", options.workers):
        rows.append(row)
        campaign.add(f"fault/{seed}", seed, **effects[seed], **row)
    solved = sum(row["solved"] for row in rows)
    cost, tokens = sum(row["cost"] for row in rows), sum(row["tokens"] for row in rows)
    return campaign.finish(
        2 * solved >= len(rows) > 0,
        tape=Path(options.tape).name,
        drawn=options.size,
        faults=len(rows),
        no_loss_found=sum(not row["attempts"] for row in rows),
        uplift=uplift(rows),
        **{
            options.model: {
                "solved": solved,
                "interval": wilson(solved, len(rows)),
                "attempts": sum(row["attempts"] for row in rows),
                "tokens": tokens,
                "cost": round(cost, 4),
                "cost_a_solved_fault": round(cost / solved, 4) if solved else None,
            }
        },
    )


if __name__ == "__main__":
    sys.exit(main())
