"""Errors, sorted by what the caller must do: retry, refuse, or stop."""

from __future__ import annotations


class OomrlError(Exception):
    """Base of every error that this package raises on purpose."""


class Mistake(OomrlError):
    """A person's mistake: one clear line with the way out, exit code 2, nothing changed."""


class NothingYet(Mistake):
    """What is asked of a run that has not begun: there is none in the state directory yet."""


class Refused(OomrlError):
    """The service says no (gate, rights, live trading): exit code 1, nothing changed."""


class Unavailable(OomrlError):
    """An outside service did not answer: the stage may be tried again later."""


class Partly(Unavailable):
    """Some of what was asked for is done, and the message says what is not: exit code 2."""


class InDoubt(Unavailable):
    """A request went out and no answer came back: it may have been carried out. Never resent blindly."""


class BrokerRefusal(OomrlError):
    """The broker said no. `later` where the same order may be taken later, `duplicate` where its id was taken before,
    `missing` where it knows no such order.

    `code` is the broker's, for the record; it is never branched on alone, since refusals move between codes.
    """

    def __init__(
        self, message: str, code: str = "", *, later: bool = False, duplicate: bool = False, missing: bool = False
    ) -> None:
        super().__init__(message)
        self.code, self.later, self.duplicate, self.missing = code, later, duplicate, missing


class Halt(OomrlError):
    """Trading must stop with the account left as it is until a person resumes."""


class StrategyFailure(Halt):
    """The strategy raised, hung, crashed or answered what is no decision."""

    def __init__(self, kind: str, message: str, traceback: str = "") -> None:
        super().__init__(f"{kind}: {message}")
        self.kind = kind
        self.message = message
        self.traceback = traceback

    def __reduce__(self) -> tuple[type[StrategyFailure], tuple[str, str, str]]:
        """Cross process boundaries whole."""
        return type(self), (self.kind, self.message, self.traceback)
