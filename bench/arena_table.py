"""Write what `make arenas` measured as a page: published scores, each arena with its probes, research's ladder."""

from __future__ import annotations

from collections.abc import Iterator

from oomrl.arenas.engine import Json

SPLITS = {"train": "training seeds", "held_out": "held-out seeds"}


def page(record: Json, published: dict[str, float]) -> str:
    """Return the page of one campaign's record."""
    return "\n".join(_lines(record, published)) + "\n"


def _lines(record: Json, published: dict[str, float]) -> Iterator[str]:
    yield "# What the arenas measure, and what tricks are worth in them"
    yield ""
    yield f"Written by `make arenas SEEDS={record['size']} SEED={record['seed']}`. A score is the mean over an arena's"
    yield "tasks; each figure is a mean over seeds with its 95 % interval. A *probe* tries to score without the work;"
    yield "what the heuristic has over it is paired by seed. The rules are in each arena's README, in `oomrl/arenas/`."
    yield ""
    yield "| what must hold | it does |"
    yield "|---|---|"
    for name, held in record["holds"].items():
        yield f"| {name.replace('_', ' ')} | {'yes' if held else '**no**'} |"
    yield ""
    yield "## committee_v1 beside the published scores"
    yield ""
    yield "| policy | here | published |"
    yield "|---|---|---|"
    for name, score in record["committee_v1"].items():
        yield f"| {name} | {score:.4f} | {published[name]:.4f} |"
    for arena, splits in record["ordering"].items():
        yield from _arena(arena, splits, record)


def _arena(arena: str, splits: Json, record: Json) -> Iterator[str]:
    yield ""
    yield f"## {arena}"
    yield ""
    if arena in record["steps_per_second"]:
        yield f"{record['steps_per_second'][arena]:,} steps a second in process on one core (processor time)."
        yield ""
    told = [f"{SPLITS[split]}: {len(order['seeds'])}" for split, order in splits.items()]
    informed = [
        f"{SPLITS[split]} p = {order['value_of_information_p']:.5f}"
        for split, order in splits.items()
        if order["value_of_information_p"] is not None
    ]
    yield "; ".join(told) + "."
    if informed:
        yield f"Advice is worth something (*blinded* asks the same and does not read): {', '.join(informed)}."
    yield ""
    yield "| player | " + " | ".join(f"{SPLITS[split]} | the heuristic has over it" for split in splits) + " |"
    yield "|---|" + "---|---|" * len(splits)
    first = next(iter(splits.values()))
    for name in sorted(first["scores"], key=lambda name: -first["scores"][name]["mean"]):
        cells = []
        for order in splits.values():
            gap = order["heuristic_minus"].get(name)
            cells += [_interval(order["scores"][name]), _interval(gap) if gap else _ahead(name, order)]
        yield f"| {name} | {' | '.join(cells)} |"
    if arena == "research":
        yield from _research(record)
    failed = [check["check"] for check in record["semantic"][arena] if not check["passed"]]
    yield ""
    yield f"Semantic checks: {len(record['semantic'][arena])}, failed: {', '.join(failed) or 'none'}."


def _research(record: Json) -> Iterator[str]:
    yield ""
    for split, steps in record["ladder"].items():
        told = "; ".join(f"{pair} = {_interval(gap)}" for pair, gap in steps.items())
        yield f"Planted signal over a simple baseline over noise, {SPLITS[split]}: {told}."
    seen = record["noise"]
    yield ""
    yield (
        f"On {seen['seeds']} panels of pure noise the 95 % interval of the hidden Sharpe covers minus the cost "
        f"in {seen['coverage']:.1%}; mean Sharpe {seen['mean_sharpe']:.3f}, minus the cost {seen['mean_expected']:.3f}."
    )


def _ahead(name: str, order: Json) -> str:
    return f"the oracle over it: {_interval(order['oracle_minus_heuristic'])}" if name == "heuristic" else ""


def _interval(told: Json) -> str:
    return f"{told['mean']:.4f} ({told['low']:.4f} to {told['high']:.4f})"
