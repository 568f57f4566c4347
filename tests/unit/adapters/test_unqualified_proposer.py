"""A model that may not propose is asked nothing: the repair waits for its qualification."""

from __future__ import annotations

from typing import Any

from oomrl.adapters.proposer import AgentProposer
from oomrl.stages import Waiting


class Untouched:
    """Stands where a part must not be used."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"Expected nothing to be asked, was {name}")


def test_a_proposer_that_is_refused_waits_and_touches_nothing() -> None:
    part: Any = Untouched()
    reasons = ["Expected a certificate of openai/m, was none: run `oomrl qualify`"]
    proposer = AgentProposer(
        "run", part, part, part, part, part, part, masked=True, seed=0, capital=1.0, refusal=lambda: reasons[0]
    )
    assert proposer.propose(part, 1, "revision") == Waiting("qualification", reasons[0])
