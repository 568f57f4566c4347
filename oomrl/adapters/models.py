"""The models of a run: one for each role, by the settings."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from oomrl.adapters import traffic
from oomrl.adapters.manual_model import ManualModel
from oomrl.adapters.offline_model import OfflineModel
from oomrl.agents.billing import Price, PriceTable
from oomrl.agents.roles import BUDGETS, Role
from oomrl.ports import Model
from oomrl.settings import ModelSettings, Settings


@dataclass(frozen=True)
class Models:
    """Who answers for each role, and how many tokens its prompt may have. A role without a model is not asked."""

    of: Mapping[Role, Model]
    budgets: Mapping[Role, int]

    @property
    def name(self) -> str:
        """Return the name under which proposals are made: the coder's model's."""
        return self.of[Role.CODER].name


def make_models(settings: Settings, state: Path, seed: int, live: bool) -> Models:
    """Return the models that the settings name. Raises `Mistake` where a key or a price is missing.

    What is no language model is the coder alone: the rule-based repairer drafts, tests and attacks nothing.
    """
    chosen = settings.model
    made: dict[str, Model] = {}
    found: dict[Role, Model] = {}
    for role in Role:
        if role.value in chosen.without:
            continue
        own = chosen.of(role.value)
        key = own.model_dump_json(exclude={"roles", "without", "budgets"})
        if key not in made:
            made[key] = _model(own, settings, state, seed, live)
        if made[key].is_language_model or role is Role.CODER:
            found[role] = made[key]
    return Models(found, {**BUDGETS, **{Role(name): tokens for name, tokens in chosen.budgets.items()}})


def only(model: Model) -> Models:
    """Return one model for every role that it can play."""
    return Models({role: model for role in Role if model.is_language_model or role is Role.CODER}, BUDGETS)


def _model(chosen: ModelSettings, settings: Settings, state: Path, seed: int, live: bool) -> Model:
    if chosen.provider == "offline":
        return OfflineModel()
    if chosen.provider == "manual":
        return ManualModel(state)
    from oomrl.adapters.openai_model import Endpoint, OpenAIModel  # half a second of imports that only this needs

    how = settings.endpoint
    endpoint = Endpoint(
        model=chosen.name,
        base_url=chosen.base_url,
        api=chosen.api,
        fallbacks=chosen.fallbacks,
        temperature=chosen.temperature,
        most_tokens=chosen.most_tokens,
        structured=chosen.structured,
        timeout=how.timeout_seconds,
        tries=how.tries,
        breaker=how.breaker,
        cooldown=how.cooldown_seconds,
    )
    prices, jitter = _prices(chosen, strict=live), random.Random(seed)
    if how.traffic == "replay":
        return OpenAIModel.from_cassettes(endpoint, prices, jitter, how.cassettes or state / traffic.FOLDER)
    recorded = state / traffic.FOLDER if how.traffic == "record" else None
    return OpenAIModel.from_environment(endpoint, prices, jitter, chosen.api_key_env, recorded)


def _prices(chosen: ModelSettings, strict: bool) -> PriceTable:
    prices = {name: Price(price.prompt, price.completion) for name, price in chosen.prices.items()}
    if chosen.prompt_price is not None and chosen.completion_price is not None:
        both = Price(chosen.prompt_price, chosen.completion_price)
        prices = {**dict.fromkeys((chosen.name, *chosen.fallbacks), both), **prices}
    return PriceTable(prices, strict)
