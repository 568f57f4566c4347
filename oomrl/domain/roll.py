"""The roll of accounts: whose vote counts, and which accounts count as one person.

Whoever makes the link that sets an account's password may be the person behind that account. So an account belongs to
the party of who let it in, until somebody of another party, or the host, confirms that it is a person of their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from oomrl.domain.people import RIGHTS, Right, User
from oomrl.errors import Mistake

#: Characters of a name under which somebody acts, so that a proposal's author holds all of it beside a model's name.
LONGEST_NAME = 80


@dataclass(frozen=True, slots=True)
class Roll:
    """Every account by its name in one spelling. An empty roll knows nobody: names alone tell people apart."""

    users: Mapping[str, User] = field(default_factory=dict)

    @classmethod
    def of(cls, users: Iterable[User]) -> Roll:
        return cls({_spelt(user.name): user for user in users})

    def user(self, name: str) -> User | None:
        """Return the account of a name in any spelling, None where there is none."""
        return self.users.get(_spelt(name))

    def party(self, name: str) -> str:
        """Return who stands for all accounts that one person may hold: the first of them, in one spelling.

        A name without an account stands for itself.
        """
        at, seen = _spelt(name), []
        while at not in seen:
            seen.append(at)
            user = self.users.get(at)
            if user is None or user.confirmed_by or not user.let_in_by:
                return at
            at = _spelt(user.let_in_by)
        # Some let each other in: all of them are one.
        return min(seen[seen.index(at) :])

    def parties(self, identity: str) -> frozenset[str]:
        """Return the parties of everybody whom an identity such as `Name <address>, another` may name."""
        return frozenset(self.party(part) for part in parts_of(identity))

    def one_party(self, one: str, other: str) -> bool:
        """Say whether two identities may be one person."""
        return bool(self.parties(one) & self.parties(other))

    def may_not_vote(self, name: str) -> str:
        """Return why a vote under a name does not count, empty where it does. Without accounts everybody's does."""
        if not self.users:
            return ""
        user = self.users.get(_spelt(name))
        if user is None:
            return "there is no such account"
        if not user.active:
            return "the account is closed"
        return "" if Right.REVIEW in RIGHTS[user.role] else f"the account is a {user.role.value}'s by now"


def same_person(one: str, other: str) -> bool:
    """Compare identities without case and blanks; of `Name <address>` either part is enough, of several any."""
    return bool(parts_of(one) & parts_of(other))


def identity(name: str) -> str:
    """Return a name as it stands in every record, of who answers as of who approves; raise `Mistake` for none."""
    plain = " ".join(name.split())
    if not parts_of(plain) or len(plain) > LONGEST_NAME or not plain.isprintable():
        raise Mistake(f"Expected a name or address of at most {LONGEST_NAME} characters, was {name[:LONGEST_NAME]!r}")
    return plain


def parts_of(identity: str) -> frozenset[str]:
    """Return the names and addresses of an identity, in one spelling, however they stand in one another."""
    return frozenset(spelt for part in re.split(r"[,<>]", identity) if (spelt := _spelt(part)))


def _spelt(name: str) -> str:
    return "".join(name.split()).casefold()
