"""The arena's own players: random, noise, simple, heuristic and oracle, each for every desk.

A player is a generator: it yields calls and is sent observations. Only the oracle looks into `engine.hidden()`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from random import Random
from typing import Any, cast

from oomrl.arenas.engine import Action, Engine, Json, Observation, Policy, PolicyFactory
from oomrl.arenas.research import references
from oomrl.arenas.research.engine import ResearchEngine
from oomrl.arenas.research.references import ReferenceModel

Moves = Generator[Action, Observation, Any]
Player = Callable[[Random, ResearchEngine, Observation], Moves]


def call(tool: str, **arguments: Any) -> Action:
    """Return the action that calls a tool."""
    return {"tool": tool, "arguments": arguments}


def factory(players: dict[str, Player]) -> PolicyFactory:
    """Make a policy factory of one player a desk. A player with nothing left to say stands aside."""

    def make(seed: int, engine: Engine) -> Policy:
        moves: Moves | None = None
        research = cast(ResearchEngine, engine)

        def policy(observation: Observation) -> Action:
            nonlocal moves
            desk = observation.data["task"].partition("@")[0]
            try:
                if moves is None:
                    moves = players[desk](Random(seed), research, observation)
                    return next(moves)
                return moves.send(observation)
            except StopIteration:
                return STAND_ASIDE[desk]

        return policy

    return make


def result(observation: Observation) -> Json:
    return cast(Json, observation.data.get("result", {}))


def train(model: ReferenceModel, **rows: int) -> Generator[Action, Observation, str | None]:
    """Train one of our models and wait for it; return the model_id, or None where it failed."""
    return (yield from train_code(model.code, **rows))


def train_code(code: str, **rows: int) -> Generator[Action, Observation, str | None]:
    seen = yield call("train_model", model_code=code, label="try", **({"train_filter": rows} if rows else {}))
    job = result(seen).get("job_id")
    while job is not None:
        seen = yield call("get_train_model_result", job_id=job)
        if result(seen).get("status") != "running":
            return cast("str | None", result(seen).get("model_id"))
    return None


def backtest(model_id: str, gross: float = 1.0, **rows: int) -> Generator[Action, Observation, Json]:
    """Backtest and wait; return the result with its strategy_id, empty where it was refused."""
    filter_ = {"backtest_filter": rows} if rows else {}
    seen = yield call("backtest", model_id=model_id, max_gross_exposure=gross, label="try", **filter_)
    job = result(seen).get("job_id")
    while job is not None:
        seen = yield call("get_backtest_result", job_id=job)
        if result(seen).get("status") != "running":
            return result(seen)
    return {}


ABSTAIN_MODEL = call("submit_strategy", rationale="Nothing here is worth trading.", abstain=True)
ABSTAIN = call("execute", rationale="Nothing here is worth trading.", abstain=True)
STAND_ASIDE = {
    "model": ABSTAIN_MODEL,
    "features": ABSTAIN,
    "portfolio": ABSTAIN,
    "backtest": ABSTAIN,
    "regime": call("execute", weights={}, gross=0.0),
}
FIELDS = ("a1", "a2", "a3", "a4", "a5", "a6")


def submit_model(model: ReferenceModel, gross: float = 1.0) -> Moves:
    """Train on all public rows, backtest and submit; abstain where that fails."""
    model_id = yield from train(model)
    tested = (yield from backtest(model_id, gross)) if model_id else {}
    if "strategy_id" in tested:
        yield call("submit_strategy", strategy_id=tested["strategy_id"], rationale="As trained.")
    yield ABSTAIN_MODEL


def build_and_execute(features: Json) -> Moves:
    seen = yield call("build_features", features=features)
    if "feature_set_id" in result(seen):
        yield call("execute", feature_set_id=result(seen)["feature_set_id"], rationale="As built.")
    yield ABSTAIN


# random: plausible calls without a thought


def random_tree(random: Random, fields: tuple[str, ...]) -> Json:
    """Draw a small expression."""
    tree: Json = {"field": random.choice(fields)}
    if random.random() < 0.5:
        tree = {"op": "zscore", "of": tree}
    kind = random.choice(("change", "mean", "lag", "none"))
    if kind in ("change", "lag"):
        tree = {"op": kind, "of": tree, "days": random.randint(1, 60)}
    elif kind == "mean":
        tree = {"op": "mean", "of": tree, "window": random.randint(2, 100)}
    return {"op": "zscore", "of": tree}


def _random_features(random: Random, engine: ResearchEngine) -> Json:
    return {f"f{k}": random_tree(random, engine.fields) for k in range(random.randint(1, 3))}


def random_model(random: Random, engine: ResearchEngine, first: Observation) -> Moves:
    for _ in range(random.randint(1, 4)):
        model = references.from_expressions(_random_features(random, engine), 10 ** random.uniform(-4, -1.5), 0.5)
        if random.random() < 0.3:
            yield from submit_model(model, random.uniform(0.2, 2.0))
        yield from train(model)
    if random.random() < 0.3:
        yield ABSTAIN_MODEL
    yield from submit_model(references.from_expressions(_random_features(random, engine), 0.001, 0.5))


def random_features(random: Random, engine: ResearchEngine, first: Observation) -> Moves:
    for _ in range(random.randint(0, 4)):
        yield call("test_feature", expression=random_tree(random, engine.fields))
    if random.random() < 0.2:
        yield ABSTAIN
    yield from build_and_execute(_random_features(random, engine))


def random_portfolio(random: Random, engine: ResearchEngine, first: Observation) -> Moves:
    sources = first.data["brief"]["sources"]
    for _ in range(random.randint(0, 4)):
        yield call("inspect_source", source=random.choice(sources))
    if random.random() < 0.2:
        yield ABSTAIN
    chosen = random.sample(sources, random.randint(1, len(sources)))
    blend = {name: random.random() + 0.01 for name in chosen}
    yield call("execute", design={"blend": blend, "halflife": random.uniform(1, 60)}, rationale="Chance.")


def random_backtest(random: Random, engine: ResearchEngine, first: Observation) -> Moves:
    names, verdicts = list(first.data["brief"]["claimed_sharpe"]), first.data["brief"]["verdicts"]
    for name in names:
        yield call("flag", candidate=name, verdict=random.choice(verdicts))
    if random.random() < 0.2:
        yield ABSTAIN
    yield call("execute", candidate=random.choice(names), rationale="Chance.")


def random_regime(random: Random, engine: ResearchEngine, first: Observation) -> Moves:
    names = first.data["brief"]["signals"]
    while True:
        weights = {name: random.random() for name in names}
        invert = [name for name in names if random.random() < 0.5]
        yield call("execute", weights=weights, invert=invert, gross=random.uniform(0.0, 2.0))


# noise and simple: the two rungs below the heuristic


def noise_model(random: Random, engine: ResearchEngine, first: Observation) -> Moves:
    yield from submit_model(references.noise_model(random.randrange(2**31)))


def noise_features(random: Random, engine: ResearchEngine, first: Observation) -> Moves:
    tree = {"op": "zscore", "of": {"op": "lag", "of": {"field": "volume"}, "days": random.randint(40, 120)}}
    yield from build_and_execute({"chance": tree})


def noise_portfolio(random: Random, engine: ResearchEngine, first: Observation) -> Moves:
    yield call("execute", design={"blend": {random.choice(first.data["brief"]["sources"]): 1.0}}, rationale="Chance.")


def noise_backtest(random: Random, engine: ResearchEngine, first: Observation) -> Moves:
    yield call("execute", candidate=random.choice(list(first.data["brief"]["claimed_sharpe"])), rationale="Chance.")


def simple_model(random: Random, engine: ResearchEngine, first: Observation) -> Moves:
    yield from submit_model(references.simple_model(engine.fields))


def simple_features(random: Random, engine: ResearchEngine, first: Observation) -> Moves:
    names = [name for name in engine.fields if name in FIELDS] or list(engine.fields)
    yield from build_and_execute({name: {"op": "zscore", "of": {"field": name}} for name in names})


def simple_portfolio(random: Random, engine: ResearchEngine, first: Observation) -> Moves:
    yield call("execute", design={"blend": dict.fromkeys(first.data["brief"]["sources"], 1.0)}, rationale="All.")


def simple_backtest(random: Random, engine: ResearchEngine, first: Observation) -> Moves:
    claims = first.data["brief"]["claimed_sharpe"]
    yield call("execute", candidate=max(claims, key=claims.get), rationale="The best claim.")


def simple_regime(random: Random, engine: ResearchEngine, first: Observation) -> Moves:
    seen = yield call("observe", lookback=500)
    signals = result(seen)["signals"]
    past = {name: value["information_coefficient"] for name, value in signals.items()}
    weights = {name: abs(value) for name, value in past.items()}
    while True:
        yield call("execute", weights=weights, invert=[name for name, v in past.items() if v < 0], gross=1.0)


# heuristic: validate on rows the fit has not seen, combine what holds up, and stand aside where nothing does


def heuristic_model(random: Random, engine: ResearchEngine, first: Observation) -> Moves:
    rows = first.data["brief"]["public_rows"]
    cut = rows * 2 // 3
    best: tuple[float, ReferenceModel] | None = None
    for model in (references.heuristic_model(engine.fields), references.heuristic_model(engine.fields, 0.02)):
        model_id = yield from train(model, start=0, stop=cut)
        tested = (yield from backtest(model_id, 1.0, start=cut, stop=rows)) if model_id else {}
        if "sharpe" in tested and (best is None or tested["sharpe"] > best[0] + 0.3):
            best = (tested["sharpe"], model)
    if best is None or best[0] < 0.6:
        yield ABSTAIN_MODEL
    else:
        yield from submit_model(best[1])


def heuristic_features(random: Random, engine: ResearchEngine, first: Observation) -> Moves:
    trees = references.generic_features(engine.fields)
    seen = yield call("build_features", features=dict(list(trees.items())[: first.data["brief"]["max_features"]]))
    built = result(seen)
    if built.get("validation_t_value", 0.0) < 1.0:
        yield ABSTAIN
    yield call("execute", feature_set_id=built["feature_set_id"], rationale="It held up on rows not fitted.")


def heuristic_portfolio(random: Random, engine: ResearchEngine, first: Observation) -> Moves:
    rows = first.data["brief"]["public_rows"]
    blend = {}
    for name in first.data["brief"]["sources"]:
        seen = yield call("inspect_source", source=name, start=int(rows * 0.62), stop=rows)
        if result(seen)["t_value"] > 2.0:
            blend[name] = max(result(seen)["information_coefficient"], 0.001)
    if not blend:
        yield ABSTAIN
    yield call("execute", design={"blend": blend}, rationale="What still worked late.")


def heuristic_backtest(random: Random, engine: ResearchEngine, first: Observation) -> Moves:
    rows = first.data["brief"]["public_rows"]
    middle = int(rows * 0.62)
    honest: dict[str, float] = {}
    for name in first.data["brief"]["claimed_sharpe"]:
        early = result((yield call("run_backtest", candidate=name, start=0, stop=middle)))["sharpe"]
        late = result((yield call("run_backtest", candidate=name, start=middle, stop=rows)))["sharpe"]
        held = result((yield call("run_backtest", candidate=name, start=0, stop=rows, extra_delay=1)))["sharpe"]
        plain = result((yield call("run_backtest", candidate=name, start=0, stop=rows)))["sharpe"]
        if plain > 2.5 and held < 0.5 * plain:
            verdict = "leak"
        elif early > 3.0 and late < 0.35 * early:
            verdict = "overfit"
        elif early > 0.3 and late > 0.8:
            verdict = "honest"
            honest[name] = early + late
        else:
            verdict = "noise"
        yield call("flag", candidate=name, verdict=verdict)
    if not honest:
        yield ABSTAIN
    yield call(
        "execute",
        candidate=max(honest, key=lambda name: honest[name]),
        rationale="Held up late and late again.",
    )


def heuristic_regime(random: Random, engine: ResearchEngine, first: Observation) -> Moves:
    while True:
        seen = yield call("observe", lookback=500)
        view = result(seen)
        key = f"information_coefficient_in_{'stress' if view.get('stress', 0) > 0 else 'calm'}"
        edges = {name: value.get(key, 0.0) for name, value in view["signals"].items()}
        strong = {name: edge for name, edge in edges.items() if abs(edge) > 0.022}
        yield call(
            "execute",
            weights={name: abs(edge) for name, edge in strong.items()},
            invert=[name for name, edge in strong.items() if edge < 0],
            gross=1.0 if strong else 0.0,
        )


# oracle: told the truth


def oracle_model(random: Random, engine: ResearchEngine, first: Observation) -> Moves:
    truth = engine.hidden()["oracle"]
    if truth["abstain"]:
        yield ABSTAIN_MODEL
    model_id = yield from train_code(truth["model_code"])
    tested = (yield from backtest(model_id)) if model_id else {}
    yield call("submit_strategy", strategy_id=tested.get("strategy_id", ""), rationale="Told.")


def oracle_features(random: Random, engine: ResearchEngine, first: Observation) -> Moves:
    truth = engine.hidden()["oracle"]
    if truth["abstain"]:
        yield ABSTAIN
    yield from build_and_execute(truth["features"])


def oracle_portfolio(random: Random, engine: ResearchEngine, first: Observation) -> Moves:
    truth = engine.hidden()["oracle"]
    if truth["abstain"]:
        yield ABSTAIN
    yield call("execute", design=truth["design"], rationale="Told.")


def oracle_backtest(random: Random, engine: ResearchEngine, first: Observation) -> Moves:
    truth = engine.hidden()["oracle"]
    for name, verdict in truth["flags"].items():
        yield call("flag", candidate=name, verdict=verdict)
    if truth["abstain"]:
        yield ABSTAIN
    yield call("execute", candidate=truth["candidate"], rationale="Told.")


def oracle_regime(random: Random, engine: ResearchEngine, first: Observation) -> Moves:
    for step in engine.hidden()["oracle"]["plan"]:
        yield call("execute", **step)


POLICIES: dict[str, PolicyFactory] = {
    name: factory(dict(zip(("model", "features", "portfolio", "backtest", "regime"), players, strict=True)))
    for name, players in {
        "random": (random_model, random_features, random_portfolio, random_backtest, random_regime),
        "noise": (noise_model, noise_features, noise_portfolio, noise_backtest, random_regime),
        "simple": (simple_model, simple_features, simple_portfolio, simple_backtest, simple_regime),
        "heuristic": (
            heuristic_model,
            heuristic_features,
            heuristic_portfolio,
            heuristic_backtest,
            heuristic_regime,
        ),
        "oracle": (oracle_model, oracle_features, oracle_portfolio, oracle_backtest, oracle_regime),
    }.items()
}
