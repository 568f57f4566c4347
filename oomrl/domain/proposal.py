"""What is proposed against a loss: an ordered pair of patches, never a tree, never a whole file."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from oomrl.errors import Mistake


@dataclass(frozen=True, slots=True)
class Proposal:
    """Hold one attempt to mend a loss: a tests patch or none, then a logic patch.

    `tests_patch` and `logic_patch` are unified diffs, byte for byte as they will be checked, shown, signed and deployed
    (text in UTF-8). `attempt` counts from 1 for each diagnostic. `proposer` is a model's name or a person; whoever that
    is never approves it. `note` is what the proposer says of it: data, never an instruction.
    """

    diagnostic: str
    attempt: int
    proposer: str
    logic_patch: str
    tests_patch: str | None = None
    note: str = ""

    def __post_init__(self) -> None:
        if self.attempt < 1:
            raise ValueError(f"Expected attempts counted from 1, was {self.attempt}")
        if not self.logic_patch.strip():
            raise Mistake("Expected a logic patch, was an empty one. To give up, answer `escalate` with a reason.")
        if not self.diagnostic or not self.proposer.strip():
            raise ValueError("Expected a diagnostic and a proposer, was an empty one")

    @property
    def digest(self) -> str:
        """Name exactly these patches, whoever proposed them: sha256 over each one's length and bytes."""
        digest = hashlib.sha256(b"oomrl proposal 1\n")
        for patch in (self.tests_patch, self.logic_patch):
            data = b"" if patch is None else patch.encode()
            digest.update(b"none\n" if patch is None else f"{len(data)}\n".encode())
            digest.update(data)
        return digest.hexdigest()

    @property
    def id(self) -> str:
        """Name this attempt: the same patches for another diagnostic are another proposal."""
        text = f"{self.diagnostic}|{self.attempt}|{self.digest}"
        return "prop-" + hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Escalation:
    """Hold a legal refusal to propose: the mandate cannot be met as stated, and why. A person decides what is next."""

    diagnostic: str
    attempt: int
    proposer: str
    reason: str

    def __post_init__(self) -> None:
        if not self.reason.strip():
            raise Mistake("Expected a reason with `escalate`, was an empty one")
