"""Errors, sorted by what the caller must do: retry, refuse, or stop."""

from __future__ import annotations


class OomrlError(Exception):
    """Base of every error that this package raises on purpose."""


class Mistake(OomrlError):
    """A person's mistake: one clear line with the way out, exit code 2, nothing changed."""


class Refused(OomrlError):
    """The service says no (gate, rights, live trading): exit code 1, nothing changed."""


class Unavailable(OomrlError):
    """An outside service did not answer: the stage may be tried again later."""


class Halt(OomrlError):
    """Trading must stop with the account left as it is until a person resumes."""


class StrategyFailure(Halt):
    """The strategy raised, hung, crashed or answered what is no decision."""

    def __init__(self, kind: str, message: str, traceback: str = "") -> None:
        super().__init__(f"{kind}: {message}")
        self.kind = kind
        self.message = message
        self.traceback = traceback
