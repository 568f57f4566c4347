"""People: who they are to the service, what they may do, and what they have said and done.

The page, the JSON API and the commands ask `demand` before an act, and nothing else decides about rights.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum

from oomrl.errors import Mistake, Refused


class Right(StrEnum):
    """What an act asks for. Tokens carry rights as their scopes."""

    SEE = "see"
    COMMENT = "comment"
    REVIEW = "review"
    OPERATE = "operate"
    ADMINISTER = "administer"


class Role(StrEnum):
    """What a person is. Operators run the account and do not approve; reviewers approve and do not run it."""

    VIEWER = "viewer"
    REVIEWER = "reviewer"
    OPERATOR = "operator"
    ADMIN = "admin"


RIGHTS: Mapping[Role, frozenset[Right]] = {
    Role.VIEWER: frozenset({Right.SEE}),
    Role.REVIEWER: frozenset({Right.SEE, Right.COMMENT, Right.REVIEW}),
    Role.OPERATOR: frozenset({Right.SEE, Right.COMMENT, Right.OPERATE}),
    Role.ADMIN: frozenset(Right),
}


class Forbidden(Refused):
    """The person, or the token, has no right to the act."""


@dataclass(frozen=True, slots=True)
class Person:
    """Whoever acts now: the name that goes into the record, the rights, and the way by which they came.

    `how` is page, token, command (with a token, where the state directory is), or host (there, before anybody or
    for nobody in particular); `address` the other end of the connection, empty for commands.
    """

    name: str
    rights: frozenset[Right]
    how: str = "page"
    address: str = ""

    def may(self, right: Right) -> bool:
        return right in self.rights


def demand(person: Person, right: Right) -> None:
    """Raise `Forbidden` where a person has no right to what is asked."""
    if not person.may(right):
        raise Forbidden(f"Expected the right to {right.value}, was {person.name} without it: ask an administrator.")


@dataclass(frozen=True, slots=True)
class User:
    """An account of the page. `password` is an argon2id hash; `failures` in a row since the last success.

    `let_in_by` is who made the link that set the password that counts, empty where the service or the host did;
    `confirmed_by` who said since that a person of their own is behind it.
    """

    name: str
    role: Role
    password: str
    made_at: datetime
    active: bool = True
    failures: int = 0
    locked_until: datetime | None = None
    let_in_by: str = ""
    confirmed_by: str = ""


@dataclass(frozen=True, slots=True)
class Login:
    """A session of the page, known by the digest of its cookie. `csrf` must come back with every change."""

    digest: str
    user: str
    csrf: str
    made_at: datetime
    seen_at: datetime
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class Token:
    """An API token, known by its public `id` and the digest of its secret; its scopes are rights."""

    id: str
    user: str
    digest: str
    label: str
    scopes: frozenset[Right]
    made_at: datetime
    expires_at: datetime
    revoked_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Invitation:
    """A link that sets one password, once. An empty `user` lets the first administrator choose a name."""

    digest: str
    user: str
    role: Role
    by: str
    made_at: datetime
    expires_at: datetime
    used_at: datetime | None = None


class Kind(StrEnum):
    """What a remark is: a person's comment, or the critic's objection with a person's answer."""

    COMMENT = "comment"
    OBJECTION = "objection"


@dataclass(frozen=True, slots=True)
class Remark:
    """Words about a proposal, at a line of the new file, of the old one, or (line 0) about the whole of it.

    A blocking remark without a resolution stands in the way of an approval. `resolution` is resolved, answered or
    dismissed.
    """

    id: str
    run: str
    proposal: str
    author: str
    text: str
    at: datetime
    kind: Kind = Kind.COMMENT
    path: str = ""
    line: int = 0
    side: str = "new"
    blocking: bool = True
    severity: str = ""
    resolution: str = ""
    answer: str = ""
    resolved_by: str = ""
    resolved_at: datetime | None = None

    @property
    def stands_in_the_way(self) -> bool:
        return self.blocking and not self.resolution

    def as_asked(self) -> str:
        """Return the remark as the next prompt quotes it."""
        line = f":{self.line}" if self.line else ""
        before = " (as it was)" if self.line and self.side == "old" else ""
        return f"{self.path}{line}{before}: {self.text}" if self.path else self.text


@dataclass(frozen=True, slots=True)
class Freeze:
    """Sessions, both ends included, after whose close nothing is deployed."""

    id: str
    run: str
    first: date
    last: date
    reason: str
    by: str
    at: datetime
    lifted_at: datetime | None = None
    lifted_by: str = ""

    def holds(self, day: date) -> bool:
        return self.lifted_at is None and self.first <= day <= self.last


@dataclass(frozen=True, slots=True)
class Done:
    """One line of the audit log: who did what to which subject, how, and from where."""

    at: datetime
    who: str
    how: str
    act: str
    subject: str
    detail: str = ""
    address: str = ""
    sequence: int = 0


_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9 ._@+'-]{0,78}[A-Za-z0-9])?")
#: Names under which nobody but the service acts, or which a proposer without a person has.
_RESERVED = ("auto", "service", "rules", "anyone", "host", "critic", "offline", "manual", "model", "oomrl")
_ALIKE = {"0": "o", "1": "l", "i": "l", "5": "s"}


def checked_name(name: str) -> str:
    """Return the name of an account; raise `Mistake` where it could be taken for another or breaks a record."""
    plain = " ".join(name.split())
    if not _NAME.fullmatch(plain) or looks(plain) in map(looks, _RESERVED):
        raise Mistake(
            "Expected a name of 1 to 80 letters, digits, blanks and . _ @ + ' -, beginning and ending with a letter or "
            f"digit, and none that the service uses itself, was {name[:80]!r}."
        )
    return plain


def looks(name: str) -> str:
    """Return what a name looks like in a hurry: names of the same look are one to whoever reads a page.

    Case, blanks and punctuation do not tell names apart, nor do what stands behind an @, 0 and o, 1, l and I, 5 and s,
    rn and m, vv and w.
    """
    words = name.casefold().partition("@")[0] or name.casefold()
    plain = "".join(_ALIKE.get(c, c) for c in words if c.isalnum())
    return plain.replace("rn", "m").replace("vv", "w")


def scopes_of(names: Iterable[str]) -> frozenset[Right]:
    """Return rights by their names; raise `Mistake` for one that is none."""
    try:
        found = frozenset(Right(name) for name in names)
    except ValueError as error:
        raise Mistake(f"Expected scopes among {', '.join(Right)}, was another: {error}.") from error
    if not found:
        raise Mistake(f"Expected at least one scope among {', '.join(Right)}, was none.")
    blind = found & {Right.COMMENT, Right.REVIEW}
    if blind and Right.SEE not in found:
        raise Mistake(f"Expected the scope see beside {', '.join(sorted(blind))}: nobody judges what they cannot see.")
    return found
