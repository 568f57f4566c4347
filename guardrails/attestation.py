"""Signed, hash-chained records: in-toto statements in DSSE envelopes, each bound to all before it.

A chain alone cannot show that its end was cut off: keep the head elsewhere and give it to `verify`. Signing
needs `cryptography`, imported only here and only when used; the key never enters a sandbox.
"""

from __future__ import annotations

import base64
import fcntl
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

PAYLOAD_TYPE = "application/vnd.in-toto+json"
STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
VERDICT_PREDICATE = "urn:guardrails:predicate:verdict:1"
TRANSITION_PREDICATE = "urn:guardrails:predicate:transition:1"
START = "0" * 64


class AttestationError(Exception):
    """The log or key is not what it claims to be: what was changed, and where."""


@dataclass(frozen=True)
class Head:
    """The end of a log: how many entries there are, and the hash over all of them."""

    entries: int
    hash: str

    def text(self) -> str:
        """Return the form that a person keeps elsewhere, for example in a notification."""
        return f"{self.entries}:{self.hash}"

    @classmethod
    def parse(cls, text: str) -> Head:
        """Read that form back."""
        number, _, digest = text.strip().partition(":")
        if not number.isdigit() or len(digest) != 64 or set(digest) - set("0123456789abcdef"):
            raise AttestationError(f"Expected a head of the form N:SHA256, was {text!r}.")
        return cls(int(number), digest)


class Signer:
    """An Ed25519 key and its name, the sha256 of the public key."""

    def __init__(self, key: Ed25519PrivateKey) -> None:
        self._key = key
        self.public = key.public_key().public_bytes_raw()
        self.key_id = hashlib.sha256(self.public).hexdigest()

    def sign(self, data: bytes) -> bytes:
        """Sign bytes."""
        return self._key.sign(data)

    @classmethod
    def open(cls, path: Path, *, create: bool = True) -> Signer:
        """Read a raw 32-byte key of mode 0600, made on demand.

        Raises:
            AttestationError: others may read the file, it is absent and `create` is false, or it is no key.
        """
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        if create and not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            # Whole or not at all: whoever is killed here must not leave half a key, which nothing could ever read.
            half, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
            try:
                with os.fdopen(half, "wb") as file:
                    file.write(Ed25519PrivateKey.generate().private_bytes_raw())
                    file.flush()
                    os.fsync(file.fileno())
                with suppress(FileExistsError):
                    os.link(name, path)
            finally:
                Path(name).unlink()
        try:
            place = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        except OSError as error:
            raise AttestationError(f"Expected a key at {str(path)!r}, was {error.strerror}.") from None
        with os.fdopen(place, "rb") as file:
            mode, data = os.fstat(file.fileno()).st_mode & 0o777, file.read(64)
        if mode & 0o077:
            raise AttestationError(f"Expected mode 0600 for {str(path)!r}, was {mode:04o}: run chmod 600.")
        if len(data) != 32:
            raise AttestationError(f"Expected a raw key of 32 bytes, was {len(data)}.")
        return cls(Ed25519PrivateKey.from_private_bytes(data))


def statement(subjects: Mapping[str, str], predicate_type: str, predicate: Mapping[str, Any]) -> dict[str, Any]:
    """Return an in-toto statement about subjects, each a name and a sha256."""
    named = [{"name": name, "digest": {"sha256": digest}} for name, digest in sorted(subjects.items())]
    return {"_type": STATEMENT_TYPE, "subject": named, "predicateType": predicate_type, "predicate": dict(predicate)}


def seal(body: Mapping[str, Any], signer: Signer) -> dict[str, Any]:
    """Return a DSSE envelope around a statement."""
    payload = _canonical(body)
    signature = {"keyid": signer.key_id, "sig": _encode(signer.sign(_encoded(payload)))}
    return {"payloadType": PAYLOAD_TYPE, "payload": _encode(payload), "signatures": [signature]}


def unseal(envelope: Mapping[str, Any], public: Sequence[bytes]) -> dict[str, Any]:
    """Check an envelope against known public keys and return its statement.

    Raises:
        AttestationError: another type, no signature of a known key, or a signature that does not fit.
    """
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    known = {hashlib.sha256(key).hexdigest(): key for key in public}
    try:
        payload = base64.b64decode(envelope["payload"], validate=True)
        if envelope["payloadType"] != PAYLOAD_TYPE:
            raise AttestationError(f"Expected {PAYLOAD_TYPE!r}, was {envelope['payloadType']!r}.")
        [signature] = envelope["signatures"]
        key = Ed25519PublicKey.from_public_bytes(known[signature["keyid"]])
        key.verify(base64.b64decode(signature["sig"], validate=True), _encoded(payload))
        body: dict[str, Any] = json.loads(payload)
    except InvalidSignature:
        raise AttestationError("Expected a signature over this payload, was another.") from None
    except (KeyError, ValueError, TypeError) as error:
        raise AttestationError(f"Expected an envelope signed by a known key, was {error!r}.") from None
    return body


class Log:
    """An append-only file of sealed statements; a line holds the hash before, an envelope, a signed hash."""

    def __init__(self, path: Path, signer: Signer | None = None, public: Sequence[bytes] = ()) -> None:
        self.path, self.signer = path, signer
        self.public = (*public, *((signer.public,) if signer else ()))

    def append(self, body: Mapping[str, Any]) -> Head:
        """Seal a statement, bind it to the chain, and return the new head once it is on the disk."""
        if self.signer is None:
            raise AttestationError("Expected a key to append with, was none.")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            head = self._head(file.read())
            line = {"index": head.entries, "previous": head.hash, "envelope": seal(body, self.signer)}
            digest = hashlib.sha256(_canonical(line)).hexdigest()
            line |= {"hash": digest, "head": _encode(self.signer.sign(b"guardrails-head-1\n" + digest.encode()))}
            file.write(_canonical(line) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        return Head(head.entries + 1, digest)

    def _head(self, data: bytes) -> Head:
        if data and not data.endswith(b"\n"):
            raise AttestationError("Expected whole lines, was a torn last one: verify, then remove it by hand.")
        lines = data.split(b"\n")[:-1]
        if not lines:
            return Head(0, START)
        return Head(len(lines), json.loads(lines[-1])["hash"])

    def head(self) -> Head:
        """Return the head as the file has it, unverified."""
        return self._head(self.path.read_bytes() if self.path.exists() else b"")

    def verify(self, expected: Head | None = None) -> Head:
        """Check every line, signature and link, and that the log still holds the expected head.

        Raises:
            AttestationError: anything was changed, reordered, inserted or, against `expected`, cut off.
        """
        head, seen = Head(0, START), expected is None or expected == Head(0, START)
        for head, _ in self._entries():
            seen = seen or head == expected
        if not seen and expected is not None:
            raise AttestationError(f"Expected head {expected.text()}, was {head.text()}: the log was cut or replaced.")
        return head

    def statements(self) -> list[dict[str, Any]]:
        """Return all statements of a log that verifies."""
        return [body for _, body in self._entries()]

    def _entries(self) -> Iterator[tuple[Head, dict[str, Any]]]:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        previous = START
        data = self.path.read_bytes() if self.path.exists() else b""
        if data and not data.endswith(b"\n"):
            raise AttestationError("Expected whole lines, was a torn last one.")
        for number, raw in enumerate(data.split(b"\n")[:-1]):
            try:
                line = json.loads(raw)
                digest, signature = line.pop("hash"), base64.b64decode(line.pop("head"), validate=True)
                if set(line) != {"index", "previous", "envelope"} or raw != _canonical({**line, **_ends(raw)}):
                    raise AttestationError(f"Expected the canonical form in line {number + 1}, was another.")
                if (line["index"], line["previous"]) != (number, previous):
                    raise AttestationError(f"Expected entry {number} after {previous[:12]}, was another.")
                if hashlib.sha256(_canonical(line)).hexdigest() != digest:
                    raise AttestationError(f"Expected the hash of line {number + 1}, was another.")
                body = unseal(line["envelope"], self.public)
                signer = line["envelope"]["signatures"][0]["keyid"]
                [key] = [item for item in set(self.public) if hashlib.sha256(item).hexdigest() == signer]
                Ed25519PublicKey.from_public_bytes(key).verify(signature, b"guardrails-head-1\n" + digest.encode())
            except InvalidSignature:
                raise AttestationError(f"Expected a signed head in line {number + 1}, was another.") from None
            except (KeyError, ValueError, TypeError, AttributeError) as error:
                raise AttestationError(f"Expected an entry in line {number + 1}, was {error!r}.") from None
            previous = digest
            yield Head(number + 1, digest), body


def _ends(raw: bytes) -> dict[str, Any]:
    line = json.loads(raw)
    return {"hash": line["hash"], "head": line["head"]}


def _canonical(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def _encode(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _encoded(payload: bytes) -> bytes:
    """Return DSSE's pre-authentication encoding."""
    kind = PAYLOAD_TYPE.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)
