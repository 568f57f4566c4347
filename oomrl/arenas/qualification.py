"""Qualify a model: all arenas, several seeds, intervals, and a signed certificate that expires.

Qualified means: in each arena the model's mean lies above the heuristic's on seeds that no training may use.
The lower end of the interval is in the certificate too, for whoever wants more than a mean.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from oomrl.arenas.agents.scripted import Scripted
from oomrl.arenas.engine import Json, canonical
from oomrl.arenas.episode import Agent
from oomrl.arenas.registry import QUALIFYING, find
from oomrl.arenas.runner import OnEpisode, run
from oomrl.arenas.statistics import paired
from oomrl.errors import Refused

LIFETIME = timedelta(days=30)
FORMAT = 1
MIN_SEEDS = 5
"""Fewer seeds than these in an arena qualify nobody."""


@dataclass(frozen=True, slots=True)
class ArenaResult:
    """What a model did in one arena beside the heuristic on the same seeds."""

    arena: str
    version: str
    seeds: tuple[int, ...]
    tasks: tuple[str, ...]
    model: Json
    heuristic: Json
    difference: Json
    failures: int
    refused: int
    heads: tuple[str, ...]
    habits: Json | None = None

    @property
    def qualified(self) -> bool:
        """Tell whether the model's mean lies above the heuristic's."""
        return float(self.difference["mean"]) > 0.0

    def to_json(self) -> Json:
        """Return plain values."""
        return {
            "arena": self.arena,
            "version": self.version,
            "seeds": list(self.seeds),
            "tasks": list(self.tasks),
            "model": self.model,
            "heuristic": self.heuristic,
            "difference": self.difference,
            "failures": self.failures,
            "refused": self.refused,
            "heads": list(self.heads),
            "habits": self.habits,
            "qualified": self.qualified,
        }


def measure(
    agent: Agent,
    arenas: Sequence[str] = QUALIFYING,
    seeds: int = MIN_SEEDS,
    tasks: Mapping[str, Sequence[str]] | None = None,
    logs: Path | None = None,
    on_episode: OnEpisode | None = None,
) -> list[ArenaResult]:
    """Play the agent and the heuristic on held-out seeds of each arena.

    `seeds` is a count; `tasks` narrows an arena's tasks, all by default. What was narrowed is in the results, and
    `require` refuses it.
    """
    results = []
    for name in arenas:
        arena = find(name)
        chosen = arena.seeds("held_out", seeds)
        only = (tasks or {}).get(name)
        of_agent = run(arena, agent, chosen, only, logs, on_episode)
        of_heuristic = run(arena, Scripted("heuristic"), chosen, only)
        results.append(
            ArenaResult(
                arena.name,
                arena.version,
                tuple(chosen),
                of_agent.tasks,
                of_agent.score().to_json(),
                of_heuristic.score().to_json(),
                paired(of_agent.by_seed(), of_heuristic.by_seed()).to_json(),
                of_agent.failures(),
                sum(episode.refused for episode in of_agent.episodes),
                tuple(episode.log.head for episode in of_agent.episodes),
                of_agent.habits,
            )
        )
    return results


def certify(
    model: str,
    results: Sequence[ArenaResult],
    sign: Callable[[bytes], bytes],
    issued: datetime,
    lifetime: timedelta = LIFETIME,
) -> Json:
    """Return the signed certificate: also one that says "not qualified", which the loop then refuses.

    `sign` returns an Ed25519 signature of the body's canonical bytes; `issued` is an aware UTC instant.
    """
    if issued.tzinfo is None:
        raise ValueError("Expected an aware instant, was a naive one")
    body: Json = {
        "format": FORMAT,
        "model": model,
        "issued": issued.isoformat(),
        "expires": (issued + lifetime).isoformat(),
        "qualified": bool(results) and all(result.qualified for result in results),
        "arenas": [result.to_json() for result in results],
    }
    return {"body": body, "signature": base64.b64encode(sign(canonical(body))).decode()}


def require(
    certificate: Json, public_key: bytes, model: str, now: datetime, arenas: Sequence[str] = QUALIFYING
) -> Json:
    """Return a certificate's body if it lets the model propose now. Raises `Refused` with the reason if not.

    `public_key` holds the 32 raw bytes of the Ed25519 key that signed it.
    """
    body, signature = certificate.get("body"), certificate.get("signature")
    if not isinstance(body, dict) or not isinstance(signature, str):
        raise Refused("Expected a signed certificate, was something else: run oomrl qualify")
    try:
        raw = base64.b64decode(signature, validate=True)
        Ed25519PublicKey.from_public_bytes(public_key).verify(raw, canonical(body))
    except (InvalidSignature, binascii.Error, ValueError):
        raise Refused("Expected a certificate signed by this service, was changed or foreign") from None
    if body["model"] != model:
        raise Refused(f"Expected a certificate of {model}, was one of {body['model']}: run oomrl qualify")
    if now >= datetime.fromisoformat(body["expires"]):
        raise Refused(f"Expected a valid certificate, was one that expired on {body['expires']}")
    if not body["qualified"]:
        failed = [result["arena"] for result in body["arenas"] if not result["qualified"]]
        raise Refused(f"Expected a qualified model, was below the heuristic in {', '.join(failed)}")
    results = {result["arena"]: result for result in body["arenas"]}
    for name in arenas:
        if name not in results:
            raise Refused(f"Expected a certificate for every arena, was without {name}: run oomrl qualify")
        _complete(results[name])
    return body


def _complete(result: Json) -> None:
    """Refuse a result of other rules, of some tasks only, or of too few or other seeds."""
    arena = find(result["arena"])
    held_out = set(result["seeds"]) <= set(arena.seeds("held_out", len(result["seeds"])))
    if result["version"] != arena.version:
        raise Refused(
            f"Expected {arena.name} {arena.version} in the certificate, was {result['version']}: run oomrl qualify"
        )
    if set(result["tasks"]) != set(arena.tasks) or len(result["seeds"]) < MIN_SEEDS or not held_out:
        raise Refused(
            f"Expected every task of {arena.name} on at least {MIN_SEEDS} held-out seeds in the certificate, "
            "was less: run oomrl qualify"
        )
