from __future__ import annotations

from dataclasses import replace

import pytest

from oomrl.domain.proposal import Escalation, Proposal
from oomrl.errors import Mistake

ONE = Proposal("diag-1", 1, "offline", "--- a\n+++ b\n", None, "less often")


def test_the_digest_names_the_patches_and_the_id_the_attempt() -> None:
    other = replace(ONE, diagnostic="diag-2", proposer="ann", note="")
    assert other.digest == ONE.digest
    assert other.id != ONE.id
    assert replace(ONE, attempt=2).id != ONE.id


def test_moving_bytes_between_the_patches_changes_the_digest() -> None:
    digests = {
        replace(ONE, tests_patch=tests, logic_patch=logic).digest
        for tests, logic in ((None, "ab"), ("", "ab"), ("a", "b"), ("none\n", "ab"), (None, "none\nab"))
    }
    assert len(digests) == 5


def test_nothing_is_no_proposal_and_giving_up_needs_a_reason() -> None:
    with pytest.raises(Mistake, match="escalate"):
        replace(ONE, logic_patch=" \n")
    with pytest.raises(Mistake):
        Escalation("diag-1", 1, "offline", "")
    with pytest.raises(ValueError, match="from 1"):
        replace(ONE, attempt=0)
