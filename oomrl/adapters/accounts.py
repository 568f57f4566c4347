"""Accounts: passwords (argon2id), sessions, tokens and invitations. Secrets leave here once and are kept as digests.

Whoever comes in is told one thing about a failure, that it failed: a wrong name, a wrong password and a lock sound
alike and cost the same time.

Over 400 lines, so that all that handles a secret is read in one place.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from oomrl.adapters.database import Store
from oomrl.adapters.database.store import Work
from oomrl.domain.people import (
    RIGHTS,
    Done,
    Forbidden,
    Invitation,
    Login,
    Person,
    Right,
    Role,
    Token,
    User,
    checked_name,
    demand,
)
from oomrl.domain.roll import identity
from oomrl.errors import Mistake, Refused
from oomrl.settings import WebSettings

#: Hashing takes 64 MiB; more than this at once would be a way to exhaust the memory.
_HASHING = threading.Semaphore(2)
_HASHER = PasswordHasher()
#: The hash of no account: checking a password against it takes as long as against any other.
_NOBODY = "$argon2id$v=19$m=65536,t=3,p=4$G/V86VC0R21qbSfzHzFVWg$M1BzsBhe7NL6JMxqpMGZCkYsRR4IJpyBYeCFwcoKCdw"
FEWEST, MOST = 12, 200


def digest(secret: str) -> str:
    """Return the digest under which a random secret is kept. It has 256 random bits, so no salt and no stretching."""
    return hashlib.sha256(secret.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Entered:
    """What a browser gets: the cookie's secret (once), and the session."""

    secret: str
    login: Login
    user: User


class Accounts:
    """All that proves who somebody is. `now` is the wall clock; `tell` hears of each act once it is recorded.

    What is told goes into the signed chain: who let whom in decides whose votes are two people's.
    """

    def __init__(
        self,
        store: Store,
        settings: WebSettings,
        now: Callable[[], datetime],
        tell: Callable[[Done], None] = lambda done: None,
    ) -> None:
        self.store, self.settings, self.now, self.tell = store, settings, now, tell

    # -- invitations: the one way to a password

    def first_link(self) -> str | None:
        """Return the secret of a link that makes the first administrator; None once there is one who can log in."""
        with self.store.begin() as work:
            if work.people.administered():
                return None
            return self._invited(work, "", Role.ADMIN, "")

    def invite(self, person: Person, name: str, role: Role) -> str:
        """Make an account without a password and return the secret of the link that sets one."""
        self._may_let_in(person)
        who = checked_name(name)
        with self.store.begin() as work:
            work.people.add(User(who, role, "", self.now()))
            secret = self._invited(work, who, role, self._answers(person))
            done = self._note(work, person, "invite", who, role.value)
        self.tell(done)
        return secret

    def invite_again(self, person: Person, name: str) -> str:
        """Return a new link for an account whose password is lost; its sessions end, its password stays until then."""
        self._may_let_in(person)
        with self.store.begin() as work:
            user = self._known(work, name)
            secret = self._invited(work, user.name, user.role, self._answers(person))
            work.people.leave_all(user.name)
            done = self._note(work, person, "invite again", user.name)
        self.tell(done)
        return secret

    def recover(self, host: str, name: str) -> str:
        """Return a new link for the only administrator, whose password is lost, at the word of whoever runs the host.

        Where another administrator can log in it is theirs to make one. The account then stands with the host's name
        as who let it in, and counts as one person with everybody else whom the same name let in (decision 196).
        """
        person = Person(identity(host), frozenset(Right), "host")
        with self.store.begin() as work:
            user = self._known(work, name)
            if user.role is not Role.ADMIN or not user.active:
                raise Refused(f"Expected an administrator, was {user.name}: an administrator makes a new link for it.")
            others = [other.name for other in self._administrators(work) if other.name != user.name]
            if others:
                raise Refused(f"Expected the only administrator, was {user.name}: {others[0]} can make a new link.")
            secret = self._invited(work, user.name, user.role, person.name)
            work.people.leave_all(user.name)
            done = self._note(work, person, "recover", user.name)
        self.tell(done)
        return secret

    def invitation(self, secret: str) -> Invitation:
        """Return an invitation that can still be used; raise `Refused` else."""
        with self.store.read() as view:
            found = view.people.invitation(digest(secret))
        if found is None or found.used_at is not None or found.expires_at <= self.now():
            raise Refused("Expected a link that was not used before and has not run out: ask for a new one.")
        return found

    def accept(self, secret: str, name: str, password: str, address: str) -> Entered:
        """Use an invitation: set the password, and begin a session."""
        invitation = self.invitation(secret)
        _strong(password)
        with _HASHING:
            hashed = _HASHER.hash(password)
        who = invitation.user or checked_name(name)
        with self.store.begin() as work:
            if not work.people.use(digest(secret), self.now()):
                raise Refused("Expected a link that was not used before: ask for a new one.")
            if invitation.user:
                # Whoever made the link may be who uses it: what others confirmed before says nothing about that.
                by = {"let_in_by": invitation.by, "confirmed_by": ""}
                work.people.change(who, password=hashed, failures=0, locked_until=None, **by)
                work.people.leave_all(who)
                work.people.revoke_all(who, self.now())
            else:
                if work.people.administered():
                    raise Refused("Expected a service without an administrator: ask the one that there is.")
                work.people.add(User(who, invitation.role, hashed, self.now()))
            by = f"let in by {invitation.by or 'the host'}"
            done = self._note(work, Person(who, frozenset(), "page", address), "set password", who, by)
            found = self._entered(work, self._known(work, who))
        self.tell(done)
        return found

    # -- sessions

    def enter(self, name: str, password: str, address: str) -> Entered:
        """Begin a session with a new secret; raise `Refused` where name and password do not fit or are locked."""
        at = self.now()
        with self.store.read() as view:
            user = view.people.user(" ".join(name.split()))
        locked = user is not None and user.locked_until is not None and user.locked_until > at
        with _HASHING:
            right = _fits(user.password if user is not None and user.password else _NOBODY, password)
        if user is None or not right or locked or not user.active or not user.password:
            self._failed(user, locked, address)
            raise Refused("Expected the name and password of an account that is not locked, was another.")
        with self.store.begin() as work:
            work.people.change(user.name, failures=0, locked_until=None)
            work.people.forget_expired(at)
            work.people.note(Done(at, user.name, "page", "log in", user.name, "", address))
            return self._entered(work, user)

    def _failed(self, user: User | None, locked: bool, address: str) -> None:
        at = self.now()
        with self.store.begin() as work:
            # What was typed for a name may be a password.
            who = "?" if user is None else user.name
            work.people.note(Done(at, who, "page", "failed log in", who, "", address))
            now = None if user is None or locked else work.people.user(user.name)
            if user is None or now is None:
                return
            # Counted from what stands there now: of many guesses at once each counts.
            failures = now.failures + 1
            lock = failures % self.settings.failures_before_lockout == 0
            until = at + timedelta(minutes=self.settings.lockout_minutes) if lock else now.locked_until
            work.people.change(user.name, failures=failures, locked_until=until)

    def by_cookie(self, secret: str, address: str) -> tuple[Person, Login] | None:
        """Return who a session's cookie belongs to, None where it has ended."""
        at, key = self.now(), digest(secret)
        with self.store.read() as view:
            found = view.people.login(key)
        if found is None:
            return None
        login, user = found
        idle = timedelta(minutes=self.settings.idle_minutes)
        if not user.active or login.expires_at <= at or login.seen_at + idle <= at:
            with self.store.begin() as work:
                work.people.leave(key)
            return None
        if login.seen_at + min(idle / 10, timedelta(minutes=1)) <= at:
            # Not with each request: a page that is only read should not make the database write.
            with self.store.begin() as work:
                work.people.seen(key, at)
        return Person(user.name, RIGHTS[user.role], "page", address), login

    def change_password(self, person: Person, login: Login, old: str, new: str, tokens: bool = False) -> None:
        """Set one's own password anew; all other sessions end, and where so asked all tokens.

        A wrong old one counts like a failed log-in, so that nobody tries them out on a screen left open.
        """
        if person.how != "page":
            raise Forbidden("Expected a person on the page to change a password, was another way in.")
        _strong(new)
        with self.store.read() as view:
            user = self._known(view, person.name)
        with _HASHING:
            right = _fits(user.password, old)
        if not right:
            self._failed(user, False, person.address)
            with self.store.begin() as work:
                now = self._known(work, person.name)
                if now.locked_until is not None and now.locked_until > self.now():
                    work.people.leave_all(user.name)
            raise Refused("Expected the password that counts now, was another.")
        with _HASHING:
            hashed = _HASHER.hash(new)
        with self.store.begin() as work:
            work.people.change(user.name, password=hashed, failures=0, locked_until=None)
            work.people.leave_all(user.name, but=login.digest)
            if tokens:
                work.people.revoke_all(user.name, self.now())
            done = self._note(work, person, "change password", user.name, "tokens ended" if tokens else "")
        self.tell(done)

    def leave(self, person: Person, login: Login) -> None:
        """End a session."""
        with self.store.begin() as work:
            work.people.leave(login.digest)
            self._note(work, person, "log out", person.name)

    # -- tokens

    def make_token(self, person: Person, label: str, scopes: frozenset[Right], days: int | None = None) -> str:
        """Return a new token of the person's own, shown this once. It never has a right that the person lacks."""
        if person.how == "token":
            raise Forbidden("Expected a person to make a token, was a token.")
        more = scopes - person.rights
        if more:
            raise Forbidden(f"Expected scopes among the person's own rights, was {', '.join(sorted(more))} besides.")
        plain = " ".join(label.split())
        if not plain or len(plain) > 80 or not plain.isprintable():
            raise Mistake("Expected a label of 1 to 80 characters for the token.")
        id_, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
        life = min(days or self.settings.token_days, self.settings.token_days)
        with self.store.begin() as work:
            user = self._known(work, person.name)
            token = Token(id_, user.name, digest(secret), plain, scopes, self.now(), self.now() + timedelta(days=life))
            work.people.add_token(token)
            done = self._note(work, person, "make token", id_, ", ".join(sorted(scopes)))
        self.tell(done)
        return f"oomrl_{id_}_{secret}"

    def revoke_token(self, person: Person, id_: str) -> None:
        """End a token: one's own, or anybody's for an administrator."""
        with self.store.begin() as work:
            token = work.people.token(id_)
            if token is None or token.user != person.name and not person.may(Right.ADMINISTER):
                raise Mistake(f"Expected the id of a token of one's own, was {id_!r}.")
            work.people.revoke(id_, self.now())
            done = self._note(work, person, "revoke token", id_)
        self.tell(done)

    def revoke_tokens_of(self, person: Person, name: str) -> None:
        """End every token of an account."""
        demand(person, Right.ADMINISTER)
        with self.store.begin() as work:
            user = self._known(work, name)
            work.people.revoke_all(user.name, self.now())
            done = self._note(work, person, "revoke tokens", user.name)
        self.tell(done)

    def by_token(self, text: str, address: str = "", how: str = "token") -> Person | None:
        """Return who a token belongs to, with the rights that role and scopes share; None where it does not hold."""
        head, _, rest = text.partition("_")
        id_, _, secret = rest.partition("_")
        if head != "oomrl" or not id_ or not secret:
            return None
        with self.store.read() as view:
            token = view.people.token(id_)
            user = None if token is None else view.people.user(token.user)
        if token is None or user is None or not secrets.compare_digest(token.digest, digest(secret)):
            return None
        if not user.active or token.revoked_at is not None or token.expires_at <= self.now():
            return None
        return Person(user.name, RIGHTS[user.role] & token.scopes, how, address)

    def commander(self, name: str, token: str, inviting: bool = False) -> Person:
        """Return who gives a command.

        Without accounts, whoever can write the state directory acts under the name that they give: they are the host.
        Once there are accounts a command needs a token like any other way in, so that the same acts need the same
        rights. Only about who is let in (`inviting`) the host goes on to act until there is an administrator.
        """
        with self.store.read() as view:
            needed = view.people.administered() if inviting else view.people.any()
        if not needed and not token:
            return Person(name, frozenset(Right), "host")
        person = self.by_token(token, how="command") if token else None
        if person is None:
            raise Forbidden(
                "Expected a token in OOMRL_TOKEN, because this service has accounts: make one on the page Account."
            )
        return person

    # -- what administrators do

    def confirm(self, person: Person, name: str) -> None:
        """Say that a person of their own is behind an account: its vote counts beside that of who let it in.

        The host may say so, and an administrator who has nothing to do with who let it in.
        """
        if person.how != "host":
            self._may_let_in(person)
        with self.store.begin() as work:
            user = self._known(work, name)
            if not user.password:
                raise Refused(f"Expected an account whose link was used, was {user.name}: confirm it afterwards.")
            roll = work.people.roll()
            if person.how != "host" and roll.one_party(person.name, user.name):
                raise Refused(
                    f"Expected somebody else than who let {user.name} in to confirm it, was {person.name}: another "
                    f"administrator can, or whoever runs the host with `oomrl people confirm`."
                )
            by = f"{person.name} (host)" if person.how == "host" else person.name
            work.people.change(user.name, confirmed_by=by[:90])
            done = self._note(work, person, "confirm", user.name, f"let in by {user.let_in_by or 'the host'}")
        self.tell(done)

    def set_role(self, person: Person, name: str, role: Role) -> None:
        """Give an account another role; its sessions end. The last administrator stays one."""
        demand(person, Right.ADMINISTER)
        with self.store.begin() as work:
            user = self._known(work, name)
            if not RIGHTS[role] <= RIGHTS[user.role]:
                self._may_let_in(person)
            if user.role is Role.ADMIN and role is not Role.ADMIN:
                self._not_the_last(work, user)
            work.people.change(user.name, role=role.value)
            work.people.leave_all(user.name)
            done = self._note(work, person, "set role", user.name, role.value)
        self.tell(done)

    def set_active(self, person: Person, name: str, active: bool) -> None:
        """Close or open an account; its sessions end."""
        demand(person, Right.ADMINISTER)
        if active:
            self._may_let_in(person)
        with self.store.begin() as work:
            user = self._known(work, name)
            if not active and user.role is Role.ADMIN:
                self._not_the_last(work, user)
            work.people.change(user.name, active=active)
            work.people.leave_all(user.name)
            done = self._note(work, person, "open account" if active else "close account", user.name)
        self.tell(done)

    def unlock(self, person: Person, name: str) -> None:
        """End a lock."""
        self._may_let_in(person)
        with self.store.begin() as work:
            user = self._known(work, name)
            work.people.change(user.name, failures=0, locked_until=None)
            done = self._note(work, person, "unlock", user.name)
        self.tell(done)

    def users(self, person: Person) -> list[User]:
        """Return all accounts."""
        demand(person, Right.ADMINISTER)
        with self.store.read() as view:
            return view.people.users()

    def tokens(self, person: Person) -> list[Token]:
        """Return the person's own tokens."""
        with self.store.read() as view:
            return view.people.tokens(person.name)

    # -- shared

    def _may_let_in(self, person: Person) -> None:
        """Raise `Forbidden` where a person may not give anybody a way in or more rights. A token never does."""
        demand(person, Right.ADMINISTER)
        if person.how == "token":
            raise Forbidden(
                "Expected an administrator on the page or by command, was a token: it takes rights away, and lets "
                "nobody in."
            )

    def _answers(self, person: Person) -> str:
        """Return who answers for a link: the account that makes it, nobody where the host does."""
        return "" if person.how == "host" else person.name

    def _invited(self, work: Work, name: str, role: Role, by: str) -> str:
        secret, at = secrets.token_urlsafe(32), self.now()
        until = at + timedelta(hours=self.settings.invitation_hours)
        work.people.invite(Invitation(digest(secret), name, role, by, at, until))
        return secret

    def _entered(self, work: Work, user: User) -> Entered:
        secret, at = secrets.token_urlsafe(32), self.now()
        until = at + timedelta(hours=self.settings.session_hours)
        login = Login(digest(secret), user.name, secrets.token_urlsafe(32), at, at, until)
        work.people.enter(login)
        return Entered(secret, login, user)

    def _known(self, work: Work, name: str) -> User:
        user = work.people.user(name)
        if user is None:
            raise Mistake(f"Expected the name of an account, was {name[:80]!r}: `oomrl people list` names them.")
        return user

    def _not_the_last(self, work: Work, user: User) -> None:
        if [other.name for other in self._administrators(work)] == [user.name]:
            raise Refused("Expected another administrator to remain, was none.")

    def _administrators(self, work: Work) -> list[User]:
        """Return the administrators who can log in."""
        return [u for u in work.people.users() if u.role is Role.ADMIN and u.active and u.password]

    def _note(self, work: Work, person: Person, act: str, subject: str, detail: str = "") -> Done:
        done = Done(self.now(), person.name, person.how, act, subject, detail, person.address)
        return replace(done, sequence=work.people.note(done))


def _strong(password: str) -> None:
    if not FEWEST <= len(password) <= MOST:
        raise Mistake(f"Expected a password of {FEWEST} to {MOST} characters, was {len(password)}.")
    if len(set(password)) < 5:
        raise Mistake("Expected a password with more than a few different characters.")


def _fits(hashed: str, password: str) -> bool:
    try:
        return _HASHER.verify(hashed, password[: MOST + 1])
    except (VerificationError, InvalidHashError):
        return False
