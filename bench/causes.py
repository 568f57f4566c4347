"""Score the attribution: is the cause of a planted fault the first that the diagnostic names, or among its first three?

`python -m bench.causes [--tape T] [--size FAULTS] [--seed S]`: each fault whose effect is measurable (see
bench.promotion) trades on a real tape until a loss demands a patch; nothing is proposed. The attribution knows nothing
of the generator. Faults whose effect is not measurable, or that cause no loss, are reported apart. Exit code 0 when the
right cause comes first in at least 90 %, and among the first three always.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from bench import market
from bench.campaign import Campaign, arguments, beside, wilson
from bench.models import SESSIONS, Asked, measured
from oomrl import bootstrap
from oomrl.cli.console import Watching
from oomrl.domain.causes import CauseCode as C
from oomrl.settings import load

#: What a reader would call each fault; where two words are right, both.
RIGHT: dict[str, tuple[C, ...]] = {
    "blind_to_liquidity": (C.BLIND_TO_LIQUIDITY,),
    "cap_dropped": (C.CONCENTRATION,),
    "churn": (C.CHURN,),
    "concentration": (C.CONCENTRATION,),
    "delisted_kept": (C.CORPORATE_ACTIONS,),
    "dividend_ignored": (C.WRONG_SIGNAL,),
    "idle_cash": (C.IDLE_CASH,),
    "illiquid_tail": (C.BLIND_TO_LIQUIDITY,),
    "limit_too_tight": (C.MISSED_ORDERS,),
    "mis_sized_after_split": (C.LIMITS, C.CONCENTRATION),
    "no_cost_model": (C.CHURN,),
    "no_volatility_sizing": (C.WRONG_SIGNAL,),
    "noisy_volatility": (C.CHURN,),
    "off_by_one_lookback": (C.STALE_SIGNAL, C.WRONG_SIGNAL),
    "rank_inverted": (C.WRONG_SIGN,),
    "reversal_overweight": (C.CHURN, C.WRONG_SIGNAL),
    "split_ignored": (C.WRONG_SIGNAL,),
    "stale_signal": (C.STALE_SIGNAL,),
    "stale_universe": (C.MISSED_ORDERS, C.WRONG_SIGNAL),
    "starved_orders": (C.MISSED_ORDERS, C.BLIND_TO_LIQUIDITY),
    "wrong_horizon": (C.CHURN, C.WRONG_SIGNAL),
    "wrong_sign": (C.WRONG_SIGN,),
}


def diagnosed(asked: Asked, seed: int) -> dict[str, Any]:
    """Trade a planted fault and return the causes that its first loss of its own is given, the gravest first."""
    fault, tape = market.planted(seed), market.tape_of(asked.tape)
    begin = tape.days.index(market.moment(asked.tape, seed, (0.45, 0.9)).today)
    first, last = tape.days[begin], tape.days[min(begin + SESSIONS, len(tape.days) - 1)]
    settings = load(None, {"account": {"endowment": str(fault.start.capital)}, "loop": {"reviewer": "auto"}})
    with tempfile.TemporaryDirectory() as place:
        patch = Path(place) / "start.patch"
        patch.write_text((fault.start.tests_patch or "") + fault.start.patch, "utf-8")
        wanted = bootstrap.Simulation(Path(place) / "state", settings, asked.tape, first, last, str(patch), seed)
        made = bootstrap.assemble(wanted, Watching(0, quiet=True))
        made.loop.rules = replace(made.loop.rules, attempts=0)
        with made.store:
            made.loop.run()
            with made.store.read() as view:
                demanding = [d for d in view.losses.diagnostics(made.run) if d.status != "no_patch"]
    causes: list[Any] = demanding[0].payload["diagnostics"]["causes"] if demanding else []  # type: ignore[index]
    codes = [cause["code"] for cause in causes]
    right = [code.value for code in RIGHT[fault.start.kind]]
    place_of = min((codes.index(code) + 1 for code in right if code in codes), default=None)
    return {
        "kind": fault.start.kind,
        "site": fault.start.site,
        "right": right,
        "loss": demanding[0].day.isoformat() if demanding else None,
        "causes": codes[:5],
        "place": place_of,
    }


def main(given: list[str] | None = None) -> int:
    """Run the campaign."""
    parser = arguments(
        "causes", 66, "planted faults that are measured; those with a measurable effect count", tape=True
    )
    options = parser.parse_args(given)
    campaign = Campaign("causes", options.size, options.seed, options.out)
    asked = Asked(options.tape, "offline", None)
    seeds = range(400_000 + 1_000 * options.seed, 400_000 + 1_000 * options.seed + options.size)
    effects = dict(beside(partial(measured, asked), seeds, "faults measured", options.workers))
    rows = []
    for seed, row in beside(partial(diagnosed, asked), seeds, "faults diagnosed", options.workers):
        rows.append(effects[seed] | row)
        campaign.add(f"fault/{seed}", seed, **effects[seed], **row)
    lost = [row for row in rows if row["loss"] is not None]
    counted = [row for row in lost if row["measurable"]]
    first = sum(row["place"] == 1 for row in counted)
    three = sum(row["place"] is not None and row["place"] <= 3 for row in counted)
    return campaign.finish(
        len(counted) > 0 and first >= 0.9 * len(counted) and three == len(counted),
        tape=Path(options.tape).name,
        faults=len(counted),
        first=first,
        first_interval=wilson(first, len(counted)),
        among_first_three=three,
        three_interval=wilson(three, len(counted)),
        no_loss_found=sum(row["measurable"] for row in rows) - len(counted),
        not_measurable=sum(not row["measurable"] for row in rows),
    )


if __name__ == "__main__":
    sys.exit(main())
