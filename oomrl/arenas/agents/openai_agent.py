"""A language model behind any OpenAI-compatible address as an agent.

What the service cannot deliver is an `AgentFailure`; what the model delivers and is no action is played,
refused and costed. Nothing ever answers in the model's place.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from oomrl.arenas.agents.prompting import parse_reply, system_prompt, user_prompt
from oomrl.arenas.agents.seats import seated
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
        self._dropped: set[str] = set()

    def start(self, arena: Arena, engine: Engine, seed: int, task: str) -> Policy:
        """Return a policy that keeps its own conversation, or one in each seat where there are several."""
        return seated(arena, lambda rules: self._conversation(rules, seed, task))

    def _conversation(self, arena: Arena, seed: int, task: str) -> Policy:
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
        """Return tokens and cost of the answers since the last note: one, or one a seat."""
        note, self._note = self._note, {}
        return note

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
        options: Json = {
            "temperature": settings.temperature,
            "seed": seed,
            "max_completion_tokens": settings.max_tokens,
            "reasoning_effort": settings.reasoning_effort,
        }
        while True:
            chosen = {name: value for name, value in options.items() if value is not None and name not in self._dropped}
            try:
                answer = self._client.chat.completions.create(model=settings.model, messages=messages, **chosen)
                break
            except (openai.BadRequestError, openai.UnprocessableEntityError) as problem:
                unknown = next((name for name in chosen if name in f"{problem.param} {problem.message}"), None)
                if unknown is None:
                    raise AgentFailure(self._said(problem)) from None
                # Some endpoints know fewer options than others: what this one does not know is left out from now on.
                self._dropped.add(unknown)
            except (openai.OpenAIError, ValueError) as problem:
                raise AgentFailure(self._said(problem)) from None
        choices = getattr(answer, "choices", None)
        if not choices or not isinstance(choices[0].message.content, str):
            raise AgentFailure("Expected a chat completion with content, was something else")
        self._count(answer.usage)
        text: str = choices[0].message.content
        return text

    def _count(self, usage: Any) -> None:
        prompt, completion = (getattr(usage, name, 0) or 0 for name in ("prompt_tokens", "completion_tokens"))
        cost = (prompt * self._settings.prompt_price + completion * self._settings.completion_price) / 1e6
        spent = {"prompt_tokens": prompt, "completion_tokens": completion, "cost": cost}
        self._note = {name: round(value + self._note.get(name, 0), 8) for name, value in spent.items()}

    def _said(self, problem: Exception) -> str:
        """Return one line about a failure in which no key stands."""
        text = " ".join(f"{type(problem).__name__}: {problem}".replace(self._settings.api_key, "[key]").split())
        return re.sub(r"\b(?:sk|key)-[\w*-]{6,}", "[key]", text)[:300]
