"""Accounts of the page, their sessions, tokens and invitations, and the log of all that people did."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import LABEL_STYLE_TABLENAME_PLUS_COL, Connection, Row, delete, insert, select, update

from oomrl.adapters.database.tables import acts, invitations, logins, tokens, users
from oomrl.domain.people import Done, Invitation, Login, Right, Role, Token, User, looks
from oomrl.domain.roll import Roll
from oomrl.errors import Mistake


class People:
    """The shelf of accounts, one for the whole state directory, within one transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    # -- users

    def add(self, user: User) -> None:
        """Write a new account; raise `Mistake` where the name is taken, or looks like one that is."""
        alike = [one for one in self._connection.scalars(select(users.c.name)) if looks(one) == looks(user.name)]
        if alike:
            raise Mistake(f"Expected a name that nobody takes for another, was {user.name!r}: {alike[0]!r} is taken.")
        row = {
            "name": user.name,
            "role": user.role.value,
            "password": user.password,
            "made_at": user.made_at,
            "active": user.active,
            "failures": user.failures,
            "locked_until": user.locked_until,
            "let_in_by": user.let_in_by,
            "confirmed_by": user.confirmed_by,
        }
        self._connection.execute(insert(users), row)

    def user(self, name: str) -> User | None:
        """Return an account, None where there is none."""
        row = self._connection.execute(select(users).where(users.c.name == name)).one_or_none()
        return None if row is None else _user(row)

    def users(self) -> list[User]:
        """Return every account, by name."""
        return [_user(row) for row in self._connection.execute(select(users).order_by(users.c.name))]

    def roll(self) -> Roll:
        """Return all accounts, for what asks whose vote counts."""
        return Roll.of(self.users())

    def administered(self) -> bool:
        """Say whether there is an administrator who can log in."""
        query = select(users.c.name).where(users.c.role == Role.ADMIN.value, users.c.active, users.c.password != "")
        return self._connection.scalar(query.limit(1)) is not None

    def any(self) -> bool:
        """Say whether there is an account at all."""
        return self._connection.scalar(select(users.c.name).limit(1)) is not None

    def change(self, name: str, **values: object) -> None:
        """Change an account; raise `Mistake` where there is none."""
        if self._connection.execute(update(users).where(users.c.name == name).values(**values)).rowcount != 1:
            raise Mistake(f"Expected the name of an account, was {name!r}: see `oomrl people list`.")

    # -- sessions of the page

    def enter(self, login: Login) -> None:
        """Write a new session."""
        row = {
            "digest": login.digest,
            "user": login.user,
            "csrf": login.csrf,
            "made_at": login.made_at,
            "seen_at": login.seen_at,
            "expires_at": login.expires_at,
        }
        self._connection.execute(insert(logins), row)

    def login(self, digest: str) -> tuple[Login, User] | None:
        """Return a session and whose it is, None where there is none."""
        query = select(logins, users).join(users, users.c.name == logins.c.user).where(logins.c.digest == digest)
        row = self._connection.execute(query.set_label_style(_LABELLED)).mappings().one_or_none()
        if row is None:
            return None
        mine = {column.name: row[f"logins_{column.name}"] for column in logins.c}
        whose = {column.name: row[f"users_{column.name}"] for column in users.c}
        return Login(**mine), User(**(whose | {"role": Role(whose["role"])}))

    def seen(self, digest: str, at: datetime) -> None:
        """Note that a session was used."""
        self._connection.execute(update(logins).where(logins.c.digest == digest).values(seen_at=at))

    def leave(self, digest: str) -> None:
        """End a session."""
        self._connection.execute(delete(logins).where(logins.c.digest == digest))

    def leave_all(self, user: str, but: str = "") -> None:
        """End every session of an account (but one)."""
        self._connection.execute(delete(logins).where(logins.c.user == user, logins.c.digest != but))

    def forget_expired(self, now: datetime) -> None:
        """Remove sessions that have run out."""
        self._connection.execute(delete(logins).where(logins.c.expires_at <= now))

    # -- tokens

    def revoke_all(self, user: str, at: datetime) -> None:
        """End every token of an account."""
        query = update(tokens).where(tokens.c.user == user, tokens.c.revoked_at.is_(None))
        self._connection.execute(query.values(revoked_at=at))

    def add_token(self, token: Token) -> None:
        """Write a new token."""
        row = {
            "id": token.id,
            "user": token.user,
            "digest": token.digest,
            "label": token.label,
            "scopes": sorted(token.scopes),
            "made_at": token.made_at,
            "expires_at": token.expires_at,
            "revoked_at": token.revoked_at,
        }
        self._connection.execute(insert(tokens), row)

    def token(self, id_: str) -> Token | None:
        """Return a token by its public id, None where there is none."""
        row = self._connection.execute(select(tokens).where(tokens.c.id == id_)).one_or_none()
        return None if row is None else _token(row)

    def tokens(self, user: str | None = None) -> list[Token]:
        """Return the tokens (of one account), newest first."""
        query = select(tokens).order_by(tokens.c.made_at.desc(), tokens.c.id)
        if user is not None:
            query = query.where(tokens.c.user == user)
        return [_token(row) for row in self._connection.execute(query)]

    def revoke(self, id_: str, at: datetime) -> None:
        """End a token; one that has ended stays as it is."""
        self._connection.execute(
            update(tokens).where(tokens.c.id == id_, tokens.c.revoked_at.is_(None)).values(revoked_at=at)
        )

    # -- invitations

    def invite(self, invitation: Invitation) -> None:
        """Write an invitation; earlier unused ones for the same account end."""
        self._connection.execute(
            delete(invitations).where(invitations.c.user == invitation.user, invitations.c.used_at.is_(None))
        )
        row = {
            "digest": invitation.digest,
            "user": invitation.user,
            "role": invitation.role.value,
            "by": invitation.by,
            "made_at": invitation.made_at,
            "expires_at": invitation.expires_at,
            "used_at": invitation.used_at,
        }
        self._connection.execute(insert(invitations), row)

    def invitation(self, digest: str) -> Invitation | None:
        """Return an invitation, None where there is none."""
        row = self._connection.execute(select(invitations).where(invitations.c.digest == digest)).one_or_none()
        if row is None:
            return None
        return Invitation(row.digest, row.user, Role(row.role), row.by, row.made_at, row.expires_at, row.used_at)

    def use(self, digest: str, at: datetime) -> bool:
        """Use an invitation up; return False where somebody did so before."""
        once = update(invitations).where(invitations.c.digest == digest, invitations.c.used_at.is_(None))
        return self._connection.execute(once.values(used_at=at)).rowcount == 1

    # -- the log

    def note(self, done: Done) -> int:
        """Append what a person did and return its place in the log."""
        row = {
            "at": done.at,
            "who": done.who[:200],
            "how": done.how,
            "act": done.act,
            "subject": done.subject[:200],
            "detail": done.detail,
            "address": done.address[:64],
        }
        key = self._connection.execute(insert(acts), row).inserted_primary_key
        assert key is not None
        return int(key[0])

    def acts(self, before: int | None = None, most: int = 100, subject: str | None = None) -> Sequence[Done]:
        """Return what people did, newest first, from before a place in the log on."""
        query = select(acts).order_by(acts.c.sequence.desc()).limit(most)
        if before is not None:
            query = query.where(acts.c.sequence < before)
        if subject is not None:
            query = query.where(acts.c.subject == subject)
        return [_done(row) for row in self._connection.execute(query)]


_LABELLED = LABEL_STYLE_TABLENAME_PLUS_COL


def _user(row: Row[tuple[object, ...]]) -> User:
    return User(
        row.name,
        Role(row.role),
        row.password,
        row.made_at,
        row.active,
        row.failures,
        row.locked_until,
        row.let_in_by,
        row.confirmed_by,
    )


def _token(row: Row[tuple[object, ...]]) -> Token:
    scopes = frozenset(Right(scope) for scope in row.scopes)
    return Token(row.id, row.user, row.digest, row.label, scopes, row.made_at, row.expires_at, row.revoked_at)


def _done(row: Row[tuple[object, ...]]) -> Done:
    return Done(row.at, row.who, row.how, row.act, row.subject, row.detail, row.address, row.sequence)
