"""Certificates on disk: one file a proposer in the state directory, signed with the key of its audit chain."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from guardrails.attestation import AttestationError, Signer
from oomrl.arenas.engine import Json
from oomrl.arenas.qualification import require
from oomrl.errors import Mistake, Refused

FOLDER = "certificates"
KEY = Path("keys") / "audit.key"
OFFLINE = "offline"


@dataclass(frozen=True, slots=True)
class Standing:
    """Whether a proposer may propose now: its certificate's body where it may, else the one line that says why not."""

    subject: str
    required: bool
    refusal: str
    body: Json | None

    @property
    def text(self) -> str:
        """Return one line for a person."""
        needed = "required" if self.required else "not required"
        if self.body is None:
            return f"{self.subject}: not qualified ({needed}). {self.refusal}"
        gaps = (f"{one['arena']} {one['difference']['mean']:+.3f}" for one in self.body["arenas"])
        return f"{self.subject}: qualified until {self.body['expires'][:10]} ({needed}); above the heuristic by " + (
            ", ".join(gaps)
        )

    def to_json(self) -> Json:
        """Return plain values."""
        return {
            "subject": self.subject,
            "required": self.required,
            "qualified": self.body is not None,
            "expires": None if self.body is None else self.body["expires"],
            "refusal": self.refusal,
        }


def subject_of(model: Mapping[str, Any]) -> str:
    """Return whom a certificate is about, from the settings' `model` section: the same name elsewhere is another."""
    if model["provider"] != "openai":
        return str(model["provider"])
    where = f" at {model['base_url']}" if model.get("base_url") else ""
    return f"openai/{model['name']}{where}"


def signer_of(state: Path) -> Signer:
    """Return the key of a state directory, made on demand. Raises `Mistake` where it cannot be used."""
    try:
        return Signer.open(state / KEY)
    except AttestationError as error:
        raise Mistake(str(error)) from None


def path_of(state: Path, subject: str) -> Path:
    """Return where a subject's certificate is kept."""
    word = "".join(letter if letter.isalnum() else "-" for letter in subject)[:60].strip("-")
    return state / FOLDER / f"{word}-{hashlib.sha256(subject.encode()).hexdigest()[:12]}.json"


def save(state: Path, certificate: Json) -> Path:
    """Write a certificate in the place of its subject's earlier one."""
    path = path_of(state, certificate["body"]["model"])
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".new")
    draft.write_text(json.dumps(certificate, indent=1) + "\n", encoding="utf-8")
    draft.replace(path)
    return path


def bodies_of(state: Path) -> list[tuple[str, Json | None]]:
    """Return file name and body of every certificate, valid or not; None where a file is no certificate."""
    found: list[tuple[str, Json | None]] = []
    for path in sorted((state / FOLDER).glob("*.json")):
        try:
            certificate = json.loads(path.read_text(encoding="utf-8"))
        except (ValueError, OSError):
            certificate = None
        body = certificate.get("body") if isinstance(certificate, dict) else None
        found.append(
            (path.name, body if isinstance(body, dict) and {"model", "arenas", "expires"} <= set(body) else None)
        )
    return found


def standing(state: Path, subject: str, required: bool, now: datetime) -> Standing:
    """Return whether a subject's certificate holds now: signed by this state's key, unexpired, of these arenas."""
    path = path_of(state, subject)
    try:
        if subject == OFFLINE:
            raise Refused("Expected a language model, was the rule-based repairer, which no arena can qualify")
        if not path.is_file():
            raise Refused(f"Expected a certificate of {subject}, was none: run `oomrl qualify`")
        try:
            certificate = json.loads(path.read_text(encoding="utf-8"))
            public = Signer.open(state / KEY, create=False).public
        except (ValueError, OSError, AttestationError) as error:
            raise Refused(f"Expected a certificate of {subject} that can be read, was not: {error}") from None
        return Standing(subject, required, "", require(certificate, public, subject, now))
    except Refused as refusal:
        return Standing(subject, required, str(refusal), None)


def standing_of(state: Path, settings: Mapping[str, Any], now: datetime) -> Standing:
    """Return the standing of the model that settings (as plain values) name."""
    required = bool(settings["loop"].get("require_qualification", False))
    return standing(state, subject_of(settings["model"]), required, now)
