"""Judge a strategy tree by its baseline and the hidden properties, as a child: `judge.py FOLDER BASELINE SEEDS`.

It imports the strategy below FOLDER, so it runs in a process of its own, and prints what failed as JSON.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from guardrails.acceptance import Before, failing_cases, failing_properties, failing_scenarios, read_cases
from guardrails.checks.parameters import read_parameters
from guardrails.policy import load_policy
from guardrails.tree import Tree


class Inside:
    """The strategy in this process, behind the judge's protocol."""

    def __init__(self, params: Mapping[str, Any]) -> None:
        strategy = importlib.import_module("strategy")
        self.strategy = strategy.Strategy(dict(params)) if params else None
        self.symbols: tuple[str, ...] = ()

    def session(self, day: date, symbols: Sequence[str], columns: Mapping[str, Sequence[float]]) -> None:
        self.symbols = self.symbols if self.symbols == tuple(symbols) else tuple(symbols)
        arrays = {name: np.array(column, dtype=float) for name, column in columns.items()}
        for array in arrays.values():
            array.flags.writeable = False
        self.strategy.on_session({"date": day.isoformat(), "symbols": self.symbols, **arrays})

    def decide(self, portfolio: Mapping[str, Any]) -> dict[str, Any]:
        return json.loads(json.dumps(self.strategy.decide(dict(portfolio))))

    def call(self, function: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        module, _, name = function.partition(":")
        arrays = [np.array(value) if isinstance(value, list) else value for value in args]
        return getattr(importlib.import_module(module), name)(*arrays, **kwargs).tolist()


@contextmanager
def start(params: Mapping[str, Any]) -> Iterator[Inside]:
    yield Inside(params)


def main(folder: Path, baseline: Path, seeds: Sequence[int]) -> None:
    sys.path.insert(0, str(folder / "src"))
    files = {f"baseline/{file.relative_to(baseline).as_posix()}": file for file in baseline.rglob("*.json")}
    tree = Tree({path: file.read_bytes() for path, file in files.items()})
    policy = load_policy(baseline.parent / "policy.toml")
    values = read_parameters((folder / "strategy.toml").read_bytes()) or {}
    params = {key.removeprefix("parameters."): value for key, value in values.items() if key.startswith("parameters.")}
    cases = read_cases(tree, "baseline")
    scenarios, unmet, _ = failing_scenarios(tree, params, start, seeds[0], Before(start, params))
    properties = {seed: failing_properties(policy, values, start, seed) for seed in seeds}
    found = {
        "cases": len(cases),
        "failing_cases": failing_cases(cases, lambda: start({})),
        "scenarios": scenarios,
        "failing_scenarios": unmet,
        "failing_properties": {seed: failed for seed, failed in properties.items() if failed},
    }
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), [int(seed) for seed in sys.argv[3].split(",")])
