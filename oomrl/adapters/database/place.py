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
#: Every name that this program gives to what lies in a state directory, as patterns of a whole name. Whoever writes a
#: new one there adds it here: a folder with anything else in it is somebody's own, and is left alone.
NAMES = (
    r"oomrl\.db.*|oomrl\.toml|lock|daemon\.lock|HALT"
    r"|audit\.jsonl|keys|certificates|strategy\.git|\.creating-.*"
    r"|prompts|replies|drafts|traffic|reports|accounts|digests|archive|backups|\.restore-.*"
)
#: The run of an account's store.
RUN = "simulation"


def named_by_us(name: str) -> bool:
    """Say whether a name in a state directory is one that this program gives."""
    return re.fullmatch(NAMES, name) is not None


def folder(state: Path, account: str = MAIN) -> Path:
    """Return an account's state directory."""
    return state if account == MAIN else state / "accounts" / account


def service_of(state: Path) -> tuple[Path, str]:
    """Return the state directory of the whole service, and the account, that an account's state directory is of."""
    whole = state.absolute()
    return (whole.parent.parent, whole.name) if whole.parent.name == "accounts" else (state, MAIN)


def place(state: Path, settings: Settings, account: str = MAIN) -> str:
    """Return the path or URL of an account's store. The URL holds the password: never show it."""
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,30}", account):
        raise Mistake(f"Expected an account's name as a-z, 0-9 and _, was {account!r}.")
    url = settings.database.url
    if url is None:
        return str(folder(state, account) / FILE)
    return url.get_secret_value() if account == MAIN else apart(url.get_secret_value(), account)
