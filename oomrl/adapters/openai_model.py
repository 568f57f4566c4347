"""Models behind any OpenAI-compatible endpoint, by the openai package; no streaming.

The key comes from the environment, is held by the client alone and is scrubbed from every message. Retries, their
jitter and the circuit breaker are ours rather than the package's, so that waiting can be tested and is recorded.
"""

from __future__ import annotations

import hashlib
import os
import random
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from json import JSONDecodeError
from pathlib import Path
from typing import Any, Literal

import httpx2
import openai

from oomrl.adapters import traffic
from oomrl.agents.billing import PriceTable
from oomrl.agents.forms import FORMS, Form
from oomrl.agents.roles import CHARACTERS_A_TOKEN
from oomrl.errors import Mistake, OomrlError, Unavailable
from oomrl.ports import Context, Reply

#: Status codes after which the same request may succeed.
PASSING = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where and how to ask. Times are seconds.

    `fallbacks` are asked, in order, where the first model is gone or forbidden; `breaker` failed prompts in a row
    close the endpoint for `cooldown`. With `structured` the reply is held to its role's schema, as long as the endpoint
    knows how.
    """

    model: str
    base_url: str | None = None
    api: Literal["chat", "responses"] = "chat"
    fallbacks: tuple[str, ...] = ()
    temperature: float | None = 0.2
    most_tokens: int | None = 8_000
    timeout: float = 180.0
    tries: int = 5
    first_wait: float = 1.0
    longest_wait: float = 60.0
    breaker: int = 3
    cooldown: float = 600.0
    structured: bool = True


@dataclass(slots=True)
class _Health:
    failures: int = 0
    closed_until: float = float("-inf")


@dataclass(slots=True)
class OpenAIModel:
    """Ask a model over HTTP. `jitter`, `sleep` and `monotonic` are passed in, so that tests need not wait.

    `transport` carries the requests: the network by default, or a `traffic.Recorder` or `traffic.Player`.
    """

    endpoint: Endpoint
    key: str = field(repr=False)
    prices: PriceTable
    jitter: random.Random
    sleep: Callable[[float], None] = time.sleep
    monotonic: Callable[[], float] = time.monotonic
    transport: httpx2.BaseTransport | None = None
    system: str = "You are a careful engineer of trading software. Follow the form of answer that is asked for."
    _client: Any = field(init=False, repr=False)
    _health: _Health = field(init=False, repr=False, default_factory=_Health)
    _dropped: set[str] = field(init=False, repr=False, default_factory=set)
    is_language_model = True

    def __post_init__(self) -> None:
        self._client = openai.OpenAI(
            api_key=self.key,
            base_url=self.endpoint.base_url or "https://api.openai.com/v1",
            timeout=self.endpoint.timeout,
            max_retries=0,
            http_client=httpx2.Client(transport=self.transport or httpx2.HTTPTransport()),
        )

    @classmethod
    def from_environment(
        cls,
        endpoint: Endpoint,
        prices: PriceTable,
        jitter: random.Random,
        variable: str,
        recorded: Path | None = None,
    ) -> OpenAIModel:
        """Return a model whose key stands in an environment variable; raise `Mistake` where it does not.

        `recorded` is the folder that its traffic is written to. Also raises where a model has no price and prices are
        strict, before any token is spent.
        """
        key = os.environ.get(variable, "").strip()
        if not key:
            raise Mistake(f"Expected the model's key in the environment variable {variable}, was not there: export it")
        for name in (endpoint.model, *endpoint.fallbacks):
            prices.price(name)
        wire = httpx2.HTTPTransport()
        return cls(endpoint, key, prices, jitter, transport=traffic.Recorder(wire, recorded, key) if recorded else wire)

    @classmethod
    def from_cassettes(cls, endpoint: Endpoint, prices: PriceTable, jitter: random.Random, folder: Path) -> OpenAIModel:
        """Return a model that answers from what was recorded: no key, no network, no waits."""
        return cls(endpoint, "replayed", prices, jitter, sleep=lambda _: None, transport=traffic.Player(folder))

    @property
    def name(self) -> str:
        return self.endpoint.model

    def answer(self, prompt_id: str, role: str, prompt: str, context: Context) -> Reply | None:
        """Return the reply, its tokens and its price.

        Raise `Unavailable` where the endpoint does not answer for now (ask again later) and `Mistake` where it will
        not before somebody mends the settings: a wrong key, model or request.
        """
        if self.monotonic() < self._health.closed_until:
            raise Unavailable(
                f"The model endpoint failed {self._health.failures} times in a row: it is left alone a while"
            )
        try:
            reply = self._first_that_exists(prompt_id, role, prompt)
        except Unavailable:
            self._health.failures += 1
            if self._health.failures >= self.endpoint.breaker:
                self._health.closed_until = self.monotonic() + self.endpoint.cooldown
            raise
        self._health.failures = 0
        return reply

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _first_that_exists(self, prompt_id: str, role: str, prompt: str) -> Reply:
        names = (self.endpoint.model, *self.endpoint.fallbacks)
        for name in names[:-1]:
            try:
                return self._persistent(name, prompt_id, role, prompt)
            except (openai.NotFoundError, openai.PermissionDeniedError):
                continue
        try:
            return self._persistent(names[-1], prompt_id, role, prompt)
        except openai.APIStatusError as error:
            raise Mistake(f"Expected the model {names[-1]!r} at the endpoint, was: {self._said(error)}") from None

    def _persistent(self, name: str, prompt_id: str, role: str, prompt: str) -> Reply:
        """Ask until an answer comes or the tries are used up; between tries wait longer each time, with full jitter."""
        for number in range(1, self.endpoint.tries + 1):
            try:
                return self._once(name, prompt_id, role, prompt)
            except openai.APIStatusError as error:
                if isinstance(error, openai.NotFoundError | openai.PermissionDeniedError):
                    raise
                if self._drop_unsupported(error):
                    continue
                if error.status_code not in PASSING or error.code == "insufficient_quota":
                    raise Mistake(f"The model endpoint refused the request: {self._said(error)}") from None
                trouble, wanted = self._said(error), _retry_after(error)
            except (openai.APIConnectionError, openai.APIResponseValidationError, JSONDecodeError, _NoReply) as error:
                if isinstance(error.__cause__, OomrlError):
                    raise error.__cause__ from None
                trouble, wanted = self._said(error), None
            if number < self.endpoint.tries:
                most = min(self.endpoint.first_wait * 2 ** (number - 1), self.endpoint.longest_wait)
                wait = most * (0.5 + self.jitter.random() / 2)
                self.sleep(min(max(wait, wanted or 0.0), self.endpoint.longest_wait))
        raise Unavailable(f"The model endpoint did not answer in {self.endpoint.tries} tries: {trouble}")

    def _once(self, name: str, prompt_id: str, role: str, prompt: str) -> Reply:
        seed = int.from_bytes(hashlib.sha256(prompt_id.encode()).digest()[:4], "big") >> 1
        options: dict[str, Any] = {"temperature": self.endpoint.temperature, "seed": seed}
        form = FORMS.get(role) if self.endpoint.structured and "structured" not in self._dropped else None
        system = self.system if form is None else f"{self.system} {form.note}"
        if self.endpoint.api == "chat":
            options["max_completion_tokens"] = self.endpoint.most_tokens
            if form is not None:
                options["response_format"] = {"type": "json_schema", "json_schema": _schema(form)}
            messages = [{"role": "system", "content": system}, {"role": "user", "content": prompt}]
            call = self._client.chat.completions.create
            body: dict[str, Any] = {"messages": messages}
        else:
            options["max_output_tokens"] = self.endpoint.most_tokens
            if form is not None:
                options["text"] = {"format": {"type": "json_schema", **_schema(form)}}
            del options["seed"]
            call = self._client.responses.create
            body = {"instructions": system, "input": prompt, "store": False}
        chosen = {key: value for key, value in options.items() if value is not None and key not in self._dropped}
        # A proxy that knows the header bills a repeated question once.
        answer = call(model=name, **body, **chosen, extra_headers={"Idempotency-Key": prompt_id})
        read = _read_chat if self.endpoint.api == "chat" else _read_responses
        text, finish, asked, answered = read(answer)
        price = self.prices.price(name)
        if asked is None or answered is None:
            # Some servers count nothing. A bill that is too high is corrected by people; one of 0 is never noticed.
            asked, answered = (-(-len(part) // CHARACTERS_A_TOKEN) for part in (system + prompt, text))
        return Reply(text, name, asked, answered, price.cost(asked, answered), finish)

    def _drop_unsupported(self, error: openai.APIStatusError) -> bool:
        """Leave out an option that the endpoint says it does not know, once; return whether there was one."""
        if error.status_code not in (400, 422):
            return False
        said = f"{error.param or ''} {error.message}".lower()
        words = {
            "temperature": ("temperature",),
            "seed": ("seed",),
            "max_completion_tokens": ("max_completion_tokens",),
            "max_output_tokens": ("max_output_tokens",),
            "structured": ("response_format", "json_schema", "text.format", "structured"),
        }
        for option, names in words.items():
            if any(name in said for name in names) and option not in self._dropped:
                self._dropped.add(option)
                return True
        return False

    def _said(self, error: Exception) -> str:
        text = f"{type(error).__name__}: {error}".replace(self.key, "[key]")
        return re.sub(r"\b(?:sk|key)-[\w*-]{6,}", "[key]", " ".join(text.split()))[:500]


def _schema(form: Form) -> dict[str, Any]:
    return {"name": form.name, "schema": form.schema, "strict": True}


class _NoReply(Exception):
    """The endpoint answered, but not with what was asked for."""


def _read_chat(answer: Any) -> tuple[str, str, int | None, int | None]:
    choices = getattr(answer, "choices", None)
    if not choices:
        raise _NoReply(f"Expected a chat completion, was {str(answer)[:120]!r}")
    message = getattr(choices[0], "message", None)
    text = getattr(message, "content", None) or getattr(message, "refusal", None) or ""
    finish = "length" if choices[0].finish_reason == "length" else "stop"
    if not isinstance(text, str):
        raise _NoReply(f"Expected text in the reply, was {type(text).__name__}")
    usage = getattr(answer, "usage", None)
    return text, finish, _count(usage, "prompt_tokens"), _count(usage, "completion_tokens")


def _read_responses(answer: Any) -> tuple[str, str, int | None, int | None]:
    if not getattr(answer, "output", None):
        raise _NoReply(f"Expected a response with output, was {str(answer)[:120]!r}")
    finish = "length" if getattr(answer, "status", "") == "incomplete" else "stop"
    usage = getattr(answer, "usage", None)
    return answer.output_text, finish, _count(usage, "input_tokens"), _count(usage, "output_tokens")


def _count(usage: Any, name: str) -> int | None:
    value = getattr(usage, name, None)
    return value if isinstance(value, int) and value >= 0 else None


def _retry_after(error: openai.APIStatusError) -> float | None:
    """Return the seconds that the endpoint wants to be left alone, as a number or as a date (RFC 9110) by its clock."""
    headers = error.response.headers
    value = headers.get("retry-after", "")
    if re.fullmatch(r"\d+(?:\.\d+)?", value):
        return float(value)
    try:
        return (parsedate_to_datetime(value) - parsedate_to_datetime(headers.get("date", ""))).total_seconds()
    except (ValueError, TypeError):
        return None
