"""Models of our own: once as code for the sandbox, once as numpy for campaigns, with the same forecasts.

A campaign of hundreds of seeds cannot start hundreds of sandboxes in minutes. Only models written here, never
a model's code, may take the short way; a test proves both ways equal.
"""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from oomrl.arenas.research import operators
from oomrl.arenas.research.code_policy import MAX_BYTES
from oomrl.arenas.research.expressions import check, evaluate, source
from oomrl.arenas.research.operators import zscore
from oomrl.arenas.research.panel import Truth
from oomrl.arenas.research.synthetic import FIELDS, REGIMES
from oomrl.domain.market import Floats

Columns = Mapping[str, Floats]


@dataclass(frozen=True)
class ReferenceModel:
    """Hold one model both ways: `code` for the sandbox, `features` for this process.

    The code's first line says in JSON how it was made, so that `recognise` can make it again.
    """

    code: str
    features: Callable[[Columns], dict[str, Floats]]
    alpha: float
    l1_ratio: float


_MARK = "# reference "


def recognise(code: str, fields: tuple[str, ...]) -> ReferenceModel | None:
    """Return the reference model whose code this is, byte for byte, or None.

    Nothing of the code is run: its first line is read as data, the model is made anew from it, and its code must
    equal the one given. So a replay recognises it as well, and nobody has to be trusted.
    """
    first = code.partition("\n")[0]
    if not first.startswith(_MARK) or len(code) > MAX_BYTES:
        return None
    try:
        recipe = json.loads(first[len(_MARK) :])
        model = _remake(recipe, fields)
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return model if model.code == code else None


def _remake(recipe: Any, fields: tuple[str, ...]) -> ReferenceModel:
    if recipe["kind"] == "noise":
        return noise_model(int(recipe["seed"]))
    if recipe["kind"] == "oracle":
        for signal in recipe["signals"]:
            check(signal, fields)
        numbers = (*recipe["weights"], recipe["halflife"], *recipe["volatility"])
        if not all(isinstance(number, float) and math.isfinite(number) for number in numbers):
            raise ValueError
        return oracle_model(
            Truth(
                np.zeros((0, 0)),
                tuple(recipe["signals"]),
                tuple(recipe["weights"]),
                tuple(recipe["regimes"]),
                recipe["halflife"],
                tuple(recipe["volatility"]),
            )
        )
    for name, tree in recipe["trees"].items():
        if not name.isidentifier():
            raise ValueError
        check(tree, fields)
    alpha, l1_ratio = recipe["alpha"], recipe["l1_ratio"]
    if not (isinstance(alpha, float) and 0.0 < alpha < 1e3 and isinstance(l1_ratio, float) and 0.0 < l1_ratio <= 1.0):
        raise ValueError
    return from_expressions(recipe["trees"], alpha, l1_ratio)


def _mark(**recipe: Any) -> str:
    return _MARK + json.dumps(recipe, separators=(",", ":")) + "\n"


_HEAD = """import numpy as np
from sklearn.linear_model import ElasticNet
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

"""
_BUILD = """

def build():
    net = ElasticNet(alpha={alpha!r}, l1_ratio={l1_ratio!r}, max_iter=10000, tol=1e-10)
    return Pipeline([("scale", StandardScaler()), ("net", net)])


def features(panel):
    columns = {{name: frame.to_numpy() for name, frame in panel.items()}}
    return {{
{lines}
    }}
"""


@cache
def _operators() -> str:
    """Return the operators' functions as text."""
    names = ("zscore", "ewm", "lag", "change", "mean")
    return "\n\n".join(inspect.getsource(getattr(operators, name)) for name in names)


def from_expressions(trees: Mapping[str, Mapping[str, Any]], alpha: float, l1_ratio: float) -> ReferenceModel:
    """Make a model whose features are expressions."""
    lines = "\n".join(f"        {name!r}: {source(tree)}," for name, tree in trees.items())
    mark = _mark(kind="expressions", trees=trees, alpha=alpha, l1_ratio=l1_ratio)
    code = mark + _HEAD + _operators() + _BUILD.format(alpha=alpha, l1_ratio=l1_ratio, lines=lines)
    return ReferenceModel(
        code, lambda columns: {name: evaluate(tree, columns) for name, tree in trees.items()}, alpha, l1_ratio
    )


def generic_features(fields: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """Return what anyone would try first: levels, ten-row changes and their interaction with the regime."""
    trees: dict[str, dict[str, Any]] = {}
    stress = {"op": "sign", "of": {"field": "stress"}}
    for name in fields:
        if name in ("stress", "volume"):
            continue
        level = {"op": "zscore", "of": {"op": "ewm", "of": {"field": name}, "halflife": 3.0}}
        moved = {"op": "zscore", "of": {"op": "change", "of": {"field": name}, "days": 10}}
        trees[f"{name}_level"], trees[f"{name}_moved"] = level, moved
        if "stress" in fields:
            trees[f"{name}_level_stress"] = {"op": "product", "of": [level, stress]}
            trees[f"{name}_moved_stress"] = {"op": "product", "of": [moved, stress]}
    return trees


def heuristic_model(fields: tuple[str, ...], alpha: float = 0.008, l1_ratio: float = 0.5) -> ReferenceModel:
    """Make the model of a careful generalist who knows nothing of what was planted."""
    return from_expressions(generic_features(fields), alpha, l1_ratio)


def simple_model(fields: tuple[str, ...]) -> ReferenceModel:
    """Make the simple baseline: today's field levels, standardised, nothing else."""
    names = [name for name in fields if name in FIELDS] or list(fields)
    return from_expressions({name: {"op": "zscore", "of": {"field": name}} for name in names}, 0.002, 0.5)


def noise_model(seed: int) -> ReferenceModel:
    """Make a model of pure chance: slow random scores that know neither name nor day."""

    def features(columns: Columns) -> dict[str, Floats]:
        shape = next(iter(columns.values())).shape
        draws = np.random.default_rng(seed).standard_normal(shape)
        return {"chance": operators.ewm(draws, 5.0)}

    code = (
        _mark(kind="noise", seed=seed)
        + _HEAD
        + _operators()
        + _BUILD.format(
            alpha=1e-9,
            l1_ratio=0.5,
            lines=f'        "chance": ewm(np.random.default_rng({seed}).standard_normal(columns["close"].shape), 5.0),',
        )
    )
    return ReferenceModel(code, features, 1e-9, 0.5)


def oracle_model(truth: Truth) -> ReferenceModel:
    """Make the model of someone who was told what was planted: its one feature is the expectation itself."""

    def features(columns: Columns) -> dict[str, Floats]:
        stress = columns["stress"][:, 0]
        fade = 0.5 ** (np.arange(len(stress)) / truth.halflife)
        total = np.zeros(columns["close"].shape)
        for signal, weight, regime in zip(truth.signals, truth.weights, truth.regimes, strict=True):
            strength = weight * fade * REGIMES[regime](stress)
            total += strength[:, None] * zscore(evaluate(signal, columns))
        return {"expectation": total * np.array(truth.volatility)}

    regimes = {
        "steady": "1.0",
        "flips": "np.where(stress > 0, 1.0, -1.0)[:, None]",
        "calm": "np.where(stress > 0, 0.0, 1.0)[:, None]",
    }
    terms = " + ".join(
        f"{weight!r} * {regimes[regime]} * zscore({source(signal)})"
        for signal, weight, regime in zip(truth.signals, truth.weights, truth.regimes, strict=True)
    )
    build = _BUILD.format(alpha=1e-9, l1_ratio=0.5, lines='        "expectation": total * np.array(VOLATILITY),')
    setup = (
        '    stress = columns["stress"][:, 0]\n'
        f"    fade = 0.5 ** (np.arange(len(stress)) / {truth.halflife!r})\n"
        f"    total = fade[:, None] * ({terms})\n"
        "    return {"
    )
    mark = _mark(
        kind="oracle",
        signals=truth.signals,
        weights=truth.weights,
        regimes=truth.regimes,
        halflife=truth.halflife,
        volatility=truth.volatility,
    )
    code = (
        mark
        + _HEAD
        + f"VOLATILITY = {truth.volatility!r}\n\n\n"
        + _operators()
        + build.replace("    return {\n", setup + "\n")
    )
    return ReferenceModel(code, features, 1e-9, 0.5)
