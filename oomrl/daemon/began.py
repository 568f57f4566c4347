"""What an account began with: its results rest on those settings, so they stay for its life."""

from __future__ import annotations

from pathlib import Path

from oomrl.adapters.database import Store
from oomrl.adapters.database.place import FILE, RUN, folder, place
from oomrl.settings import Settings, differences


def changed(state: Path, settings: Settings, account: str) -> list[str]:
    """Say what the settings have otherwise than the account began with; nothing before its first session.

    Each is a line such as "account.endowment was '1000000', is '500000'". Raises `Halt` for a store that is away.
    """
    if settings.database.url is None and not (folder(state, account) / FILE).is_file():
        return []
    with Store.open(place(state, settings, account)) as store, store.read() as view:
        run = view.runs.get(RUN)
    return [] if run is None else differences(run.settings["settings"], settings.of(account).of_the_run())
