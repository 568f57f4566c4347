"""A language model behind any OpenAI-compatible address as an agent.

What the service cannot deliver is an `AgentFailure`; what the model delivers and is no action is played,
refused and costed. Nothing ever answers in the model's place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from oomrl.arenas.agents.prompting import parse_reply, system_prompt, user_prompt
from oomrl.arenas.engine import Action, Arena, Engine, Json, Observation, Policy
from oomrl.arenas.episode import AgentFailure
from oomrl.errors import Mistake


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """Where the model is and how it is asked. Prices are dollars a million tokens, for the bill."""

    model: str
    base_url: str | None = None
    api_key: str = field(default="unused", repr=False)
    temperature: float = 0.0
    max_tokens: int = 1024
    timeout: float = 120.0
    retries: int = 2
    history: int = 6
    reasoning_effort: str | None = None
    prompt_price: float = 0.0
    completion_price: float = 0.0

    @staticmethod
    def from_environment(environment: Mapping[str, str]) -> ModelSettings:
        """Read MODEL_NAME, API_BASE_URL and the key in OPENAI_API_KEY or HF_TOKEN."""
        model = environment.get("MODEL_NAME", "")
        if not model:
            raise Mistake("Expected MODEL_NAME to name a model, was unset")
        key = environment.get("OPENAI_API_KEY") or environment.get("HF_TOKEN") or "unused"
        return ModelSettings(model, environment.get("API_BASE_URL") or None, key)


class OpenAIAgent:
    """Ask a chat model for each action, with the last few turns as its memory."""

    def __init__(self, settings: ModelSettings, client: Any | None = None) -> None:
        """Take settings and, for tests or other transports, a client with the SDK's shape."""
        self.name = settings.model
        self._settings = settings
        self._client = client
        self._note: Json = {}

    def start(self, arena: Arena, engine: Engine, seed: int, task: str) -> Policy:
        """Return a policy that keeps its own conversation."""
        system = {"role": "system", "content": system_prompt(arena, task)}
        turns: list[dict[str, str]] = []

        def act(observation: Observation) -> Action:
            turns.append({"role": "user", "content": user_prompt(observation)})
            text = self._ask([system, *turns[-(2 * self._settings.history + 1) :]], seed)
            turns.append({"role": "assistant", "content": text})
            action: Action = parse_reply(text)
            return action

        return act

    def note(self) -> Json:
        """Return tokens and cost of the last answer."""
        return dict(self._note)

    def _ask(self, messages: list[Any], seed: int) -> str:
        import openai  # the SDK takes a second to import; scripted agents must not pay for it

        settings = self._settings
        if self._client is None:
            self._client = openai.OpenAI(
                base_url=settings.base_url,
                api_key=settings.api_key,
                timeout=settings.timeout,
                max_retries=settings.retries,
            )
        extra: Json = {}
        if settings.reasoning_effort is not None:
            extra["reasoning_effort"] = settings.reasoning_effort
        try:
            answer = self._client.chat.completions.create(
                model=settings.model,
                messages=messages,
                temperature=settings.temperature,
                max_tokens=settings.max_tokens,
                seed=seed,
                **extra,
            )
        except openai.OpenAIError as problem:
            raise AgentFailure(f"{type(problem).__name__}: {str(problem)[:300]}") from problem
        if not answer.choices or answer.choices[0].message.content is None:
            raise AgentFailure("Expected a reply with content, was empty")
        usage = answer.usage
        prompt = usage.prompt_tokens if usage else 0
        completion = usage.completion_tokens if usage else 0
        cost = (prompt * settings.prompt_price + completion * settings.completion_price) / 1e6
        self._note = {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "cost": round(cost, 8),
        }
        text: str = answer.choices[0].message.content
        return text
