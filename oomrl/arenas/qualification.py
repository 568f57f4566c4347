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
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from oomrl.arenas.agents.scripted import Scripted
from oomrl.arenas.engine import Json, canonical
from oomrl.arenas.episode import Agent
from oomrl.arenas.registry import QUALIFYING, find
from oomrl.arenas.runner import OnEpisode, run
from oomrl.arenas.statistics import paired
from oomrl.errors import Refused

LIFETIME = timedelta(days=30)
FORMAT = 1


@dataclass(frozen=True, slots=True)
class ArenaResult:
    """What a model did in one arena beside the heuristic on the same seeds."""

    arena: str
    version: str
    seeds: tuple[int, ...]
    model: Json
    heuristic: Json
    difference: Json
    failures: int
    refused: int
    heads: tuple[str, ...]

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
            "model": self.model,
            "heuristic": self.heuristic,
            "difference": self.difference,
            "failures": self.failures,
            "refused": self.refused,
            "heads": list(self.heads),
            "qualified": self.qualified,
        }


def measure(
    agent: Agent,
    arenas: Sequence[str] = QUALIFYING,
    seeds: int | Mapping[str, Sequence[int]] = 5,
    tasks: Mapping[str, Sequence[str]] | None = None,
    logs: Path | None = None,
    on_episode: OnEpisode | None = None,
) -> list[ArenaResult]:
    """Play the agent and the heuristic on held-out seeds of each arena.

    `seeds` is a count, or seeds by arena; `tasks` narrows an arena's tasks, all by default.
    """
    results = []
    for name in arenas:
        arena = find(name)
        chosen = arena.seeds("held_out", seeds) if isinstance(seeds, int) else list(seeds[name])
        only = (tasks or {}).get(name)
        of_agent = run(arena, agent, chosen, only, logs, on_episode)
        of_heuristic = run(arena, Scripted("heuristic"), chosen, only)
        results.append(
            ArenaResult(
                arena.name,
                arena.version,
                tuple(chosen),
                of_agent.score().to_json(),
                of_heuristic.score().to_json(),
                paired(of_agent.by_seed(), of_heuristic.by_seed()).to_json(),
                of_agent.failures(),
                sum(episode.refused for episode in of_agent.episodes),
                tuple(episode.log.head for episode in of_agent.episodes),
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
        "arenas": [_finite(result.to_json()) for result in results],
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
    missing = set(arenas) - {result["arena"] for result in body["arenas"]}
    if missing:
        raise Refused(f"Expected a certificate for every arena, was without {', '.join(sorted(missing))}")
    if not body["qualified"]:
        failed = [result["arena"] for result in body["arenas"] if not result["qualified"]]
        raise Refused(f"Expected a qualified model, was below the heuristic in {', '.join(failed)}")
    return body


def signer(private_key: bytes) -> Callable[[bytes], bytes]:
    """Return a signing function of a raw 32-byte Ed25519 private key."""
    return Ed25519PrivateKey.from_private_bytes(private_key).sign


def public_key_of(private_key: bytes) -> bytes:
    """Return the raw public key of a raw private key."""
    key = Ed25519PrivateKey.from_private_bytes(private_key).public_key()
    return key.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)


def _finite(value: Json) -> Json:
    """Replace an unbounded interval (one seed) by None, since canonical bytes hold finite numbers only."""
    answer: Json = {}
    for key, item in value.items():
        if isinstance(item, dict):
            answer[key] = _finite(item)
        elif isinstance(item, float) and item in (float("inf"), float("-inf")):
            answer[key] = None
        else:
            answer[key] = item
    return answer
