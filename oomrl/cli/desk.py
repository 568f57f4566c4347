"""Open the desk for a command: the same acts, rules and rights as on the page."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from oomrl.adapters.accounts import Accounts
from oomrl.adapters.desk import Desk
from oomrl.cli.options import now, only_run, open_state, state_settings
from oomrl.domain.people import Person


@contextmanager
def desk(state: Path, person: str, settings_file: Path | None = None) -> Iterator[tuple[Desk, Person]]:
    """Give the desk of a state directory, and who acts: by OOMRL_TOKEN once the service has accounts."""
    settings = state_settings(state, settings_file)
    with open_state(state) as store:
        accounts = Accounts(store, settings.web, now)
        who = accounts.commander(person, os.environ.get("OOMRL_TOKEN", ""))
        yield Desk(state, store, only_run(store), settings.review, now), who
