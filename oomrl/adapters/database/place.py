"""Where the store of an account is: a file in its state directory, or PostgreSQL, one schema for each account."""

from __future__ import annotations

import re
from pathlib import Path

from oomrl.adapters.database.engine import apart
from oomrl.errors import Mistake
from oomrl.settings import Settings

#: The account that lives in the state directory itself, beside the daemon's own tables.
MAIN = "main"
FILE = "oomrl.db"
#: The run of an account's store.
RUN = "simulation"


def folder(state: Path, account: str = MAIN) -> Path:
    """Return an account's state directory."""
    return state if account == MAIN else state / "accounts" / account


def place(state: Path, settings: Settings, account: str = MAIN) -> str:
    """Return the path or URL of an account's store. The URL holds the password: never show it."""
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,30}", account):
        raise Mistake(f"Expected an account's name as a-z, 0-9 and _, was {account!r}.")
    url = settings.database.url
    if url is None:
        return str(folder(state, account) / FILE)
    return url.get_secret_value() if account == MAIN else apart(url.get_secret_value(), account)
