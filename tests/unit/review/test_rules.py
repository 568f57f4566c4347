from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oomrl.domain.records import Act, Proposal, ProposalStatus, Review, StoredVerdict
from oomrl.errors import Mistake, Refused
from oomrl.review import Bound, approval, bound, review

AT = datetime(2020, 1, 2, 21, 0, tzinfo=UTC)
BASE, RESULT, DIGEST = "b" * 64, "t" * 64, "v" * 64
PROPOSAL = Proposal(
    "prop-1", "d" * 64, "run", "diag", 1, "gpt-5", "r" * 64, BASE, AT, "patch", result_tree=RESULT,
    status=ProposalStatus.PASSED,
)  # fmt: skip
VERDICT = StoredVerdict(DIGEST, "prop-1", "run", "pass", BASE, RESULT, {}, AT)


def act(what: Act = Act.APPROVE, **changed: object) -> Review:
    given = {
        "proposal": PROPOSAL,
        "verdict": VERDICT,
        "deployed_tree": BASE,
        "reviewer": "Ann <ann@example.org>",
        "act": what,
        "reason": "read it",
        "at": AT,
    } | changed
    return review(**given)  # type: ignore[arg-type]


def test_an_approval_binds_what_was_seen() -> None:
    given = act()
    assert (given.reviewer, given.base_tree, given.result_tree, given.verdict) == (
        "Ann <ann@example.org>",
        BASE,
        RESULT,
        DIGEST,
    )
    assert approval(PROPOSAL, VERDICT, BASE, [given]) == given


@pytest.mark.parametrize("outcome", ["refuse", "error", "", "PASS", "passed"])
def test_nothing_but_pass_can_be_approved(outcome: str) -> None:
    with pytest.raises(Refused, match="verdict of pass"):
        act(verdict=replace(VERDICT, outcome=outcome))


def test_nothing_is_approved_without_its_own_verdict() -> None:
    with pytest.raises(Refused, match="was none"):
        act(verdict=None)
    with pytest.raises(Refused, match="was none"):
        act(verdict=replace(VERDICT, proposal="prop-2"))


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"deployed_tree": "c" * 64}, "base tree"),
        ({"proposal": replace(PROPOSAL, result_tree="u" * 64)}, "resulting tree"),
        ({"proposal": replace(PROPOSAL, result_tree="")}, "resulting tree"),
        ({"verdict": replace(VERDICT, base_tree="c" * 64)}, "base tree"),
    ],
)
def test_a_verdict_on_other_trees_is_no_ground(changed: dict[str, object], named: str) -> None:
    with pytest.raises(Refused, match=named):
        act(**changed)


@pytest.mark.parametrize(
    ("now", "named"),
    [
        ({"deployed_tree": "c" * 64}, "base tree was bbbbbbbbbbbb, is cccccccccccc"),
        ({"proposal": replace(PROPOSAL, result_tree="u" * 64)}, "resulting tree was tttttttttttt, is uuuuuuuuuuuu"),
        ({"verdict": replace(VERDICT, digest="w" * 64)}, "verdict was vvvvvvvvvvvv, is wwwwwwwwwwww"),
    ],
)
def test_any_change_voids_an_approval_and_is_named(now: dict[str, object], named: str) -> None:
    stands = {"proposal": PROPOSAL, "verdict": VERDICT, "deployed_tree": BASE} | now
    with pytest.raises(Refused, match=named):
        approval(reviews=[act()], **stands)  # type: ignore[arg-type]


def test_an_act_on_what_was_not_shown_is_refused() -> None:
    seen = bound(PROPOSAL, VERDICT, BASE)
    assert act(seen=seen).act is Act.APPROVE
    with pytest.raises(Refused, match="Look again"):
        act(seen=replace(seen, verdict="w" * 64))


@pytest.mark.parametrize("author", ["Ann <ann@example.org>", "ann", "ANN@example.org", "Someone <ANN@example.org>"])
def test_a_proposer_never_approves_its_own(author: str) -> None:
    with pytest.raises(Refused, match="other than the proposer"):
        act(proposal=replace(PROPOSAL, author=author))
    assert act(Act.REJECT, proposal=replace(PROPOSAL, author=author)).act is Act.REJECT


def test_the_automatic_reviewer_exists_in_simulation_alone() -> None:
    given = act(reviewer="auto", live=False)
    assert approval(PROPOSAL, VERDICT, BASE, [given], live=False) == given
    with pytest.raises(Refused, match="simulation alone"):
        act(reviewer="Auto")
    with pytest.raises(Refused, match="simulation alone"):
        approval(PROPOSAL, VERDICT, BASE, [given])


def test_a_veto_is_final_and_the_last_act_counts() -> None:
    veto, changes = act(Act.REJECT), act(Act.REQUEST_CHANGES)
    with pytest.raises(Refused, match="vetoed by Ann"):
        approval(PROPOSAL, VERDICT, BASE, [veto, act()])
    with pytest.raises(Refused, match="changes requested"):
        approval(PROPOSAL, VERDICT, BASE, [act(), changes])
    assert approval(PROPOSAL, VERDICT, BASE, [changes, act()]).act is Act.APPROVE
    with pytest.raises(Refused, match="no review yet"):
        approval(PROPOSAL, VERDICT, BASE, [replace(act(), proposal="prop-2")])


@pytest.mark.parametrize("status", ["rejected", "deployed", "escalated", "superseded"])
def test_a_closed_proposal_takes_no_more_acts(status: str) -> None:
    with pytest.raises(Refused, match="Expected a proposal that is open"):
        act(proposal=replace(PROPOSAL, status=ProposalStatus(status)))


@pytest.mark.parametrize("what", [Act.REJECT, Act.REQUEST_CHANGES])
def test_a_no_needs_its_reason_and_no_verdict(what: Act) -> None:
    assert act(what, verdict=None).verdict == ""
    with pytest.raises(Mistake, match="reason"):
        act(what, reason=" ")


@pytest.mark.parametrize("name", ["", "  ", "a" * 81, "<>", " , ", "Ann\u202e"])
def test_a_reviewer_has_a_name(name: str) -> None:
    with pytest.raises(Mistake, match="name or address"):
        act(reviewer=name)


def test_the_same_act_has_the_same_id() -> None:
    assert act().id == act().id
    assert len({act().id, act(Act.REJECT).id, act(reviewer="Bob").id, act(reason="other").id}) == 4


_DIGESTS = st.sampled_from(["a" * 64, "b" * 64, ""])
_BOUNDS = st.builds(Bound, _DIGESTS, _DIGESTS, _DIGESTS)


@given(_BOUNDS, _BOUNDS)
def test_differences_are_empty_exactly_for_equals(one: Bound, other: Bound) -> None:
    assert (one.differences(other) == []) == (one == other)
