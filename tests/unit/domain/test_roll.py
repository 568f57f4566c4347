from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oomrl.domain.people import Role, User, checked_name, looks, scopes_of
from oomrl.domain.roll import Roll, identity, same_person
from oomrl.errors import Mistake

AT = datetime(2026, 1, 5, tzinfo=UTC)
NAMES = "abcdef"


def user(name: str, by: str = "", confirmed: str = "", **more: object) -> User:
    return User(name, Role.REVIEWER, "hash", AT, let_in_by=by, confirmed_by=confirmed, **more)  # type: ignore[arg-type]


def rolls() -> st.SearchStrategy[Roll]:
    """Any accounts, let in by any of each other, in circles as well, some of them confirmed."""
    row = st.tuples(st.sampled_from(["", *NAMES]), st.booleans())
    rows = st.lists(row, min_size=1, max_size=len(NAMES))
    return rows.map(
        lambda found: Roll.of(user(NAMES[n], by, "host" if sure else "") for n, (by, sure) in enumerate(found))
    )


@given(rolls())
def test_parties_are_what_is_connected_by_unconfirmed_links(roll: Roll) -> None:
    """An independent oracle: components of the graph of who let whom in, without confirmed accounts' own edges."""
    groups = {name: {name} for name in {*roll.users, *(u.let_in_by for u in roll.users.values() if u.let_in_by)}}
    for name, one in roll.users.items():
        if one.let_in_by and not one.confirmed_by:
            merged = groups[name] | groups[one.let_in_by]
            for member in merged:
                groups[member] = merged
    for name in groups:
        for other in groups:
            assert roll.one_party(name, other) is (other in groups[name])


def test_the_inviter_the_invited_and_whom_they_invite_are_one_until_somebody_confirms() -> None:
    roll = Roll.of([user("Ada"), user("Bob", "Ada"), user("Cy", "Bob"), user("Dan", "Ada", "root (host)"), user("Eve")])
    assert roll.party("cy") == roll.party("Bob") == roll.party("ada")
    assert not roll.one_party("Dan", "Ada") and not roll.one_party("Eve", "Ada")
    assert roll.one_party("manual <Cy>", "Ada") and roll.one_party("manual <Dan>", "manual <Eve>, gpt") is not False


@given(st.text(max_size=90), st.text(max_size=90))
def test_a_name_is_known_again_in_an_author_of_several(name: str, other: str) -> None:
    try:
        who, second = identity(name), identity(other)
    except Mistake:
        return
    author = f"manual <{second}>, manual <{who}>"
    assert len(author) <= 200 and identity(who) == who and Roll().one_party(name, author)


def test_a_vote_counts_of_an_open_account_that_may_review() -> None:
    roll = Roll.of([user("Ada"), user("Bob", active=False), User("Vic", Role.VIEWER, "hash", AT)])
    assert roll.may_not_vote("ada") == ""
    assert "closed" in roll.may_not_vote("Bob") and "viewer" in roll.may_not_vote("Vic")
    assert "no such" in roll.may_not_vote("Zoe") and Roll().may_not_vote("Zoe") == ""


@pytest.mark.parametrize("name", ["ann@x", "ANN", "a n n", "a-n-n", "Ann@example.org", "a.n.n", "ann2"[:3]])
def test_names_that_a_reader_takes_for_one_look_alike(name: str) -> None:
    assert looks(name) == looks("ann")


@pytest.mark.parametrize(
    ("one", "other"), [("Bill", "B1ll"), ("moe", "m0e"), ("Ivy", "lvy"), ("marn", "mam"), ("vvil", "wil")]
)
def test_letters_that_look_alike_do_not_tell_names_apart(one: str, other: str) -> None:
    assert looks(one) == looks(other) and not same_person(one, other)


@pytest.mark.parametrize("name", ["ann.", "аnn", "ann@", "Auto", "HOST", "off1ine", "manual", "Crit ic", "ann\u200b"])
def test_names_of_the_service_and_names_that_end_in_nothing_are_refused(name: str) -> None:
    with pytest.raises(Mistake):
        checked_name(name)


def test_different_people_have_different_looks() -> None:
    names = ["ann", "anna", "bob", "ada", "olga", "adam", "vic", "ann b", "ann2", "Paul", "Pauline", "Mia O'Neil"]
    assert len({looks(name) for name in names}) == len(names)


def test_nobody_judges_with_a_token_what_they_cannot_see() -> None:
    for scopes in (["comment"], ["review"], ["review", "operate"]):
        with pytest.raises(Mistake, match="scope see"):
            scopes_of(scopes)
    assert scopes_of(["operate"]) and scopes_of(["see", "review"])
