"""Real money: refused unless three separate settings say so, each in its own words."""

from __future__ import annotations

from urllib.parse import urlsplit

from oomrl.errors import Refused
from oomrl.settings import Settings

SENTENCE = "I accept that this program may lose real money"
_HERE = ("localhost", "127.0.0.1", "::1")


def is_paper(base_url: str) -> bool:
    """Say whether a broker's address is a paper account's or this machine's; anything else counts as live."""
    host = (urlsplit(base_url).hostname or "").lower()
    return host in _HERE or host == "paper-api.alpaca.markets"


def require_paper_or_consent(settings: Settings, base_url: str, account: str | None = None) -> None:
    """Raise `Refused` for a live address unless the switch, the account's number and the sentence are all there.

    `account` is the number that the broker itself gives, where it has been asked. Unattended reviews never trade live.
    """
    if is_paper(base_url):
        return
    live, lacking = settings.live, []
    if not live.trading:
        lacking.append("live.trading = true")
    if not live.account or (account is not None and live.account != account):
        lacking.append("live.account = the broker's number of the account")
    if live.acknowledgement != SENTENCE:
        lacking.append(f'live.acknowledgement = "{SENTENCE}"')
    if settings.loop.reviewer != "person":
        lacking.append('loop.reviewer = "person"')
    if lacking:
        raise Refused(
            f"Expected a paper account, was the live address {base_url}. Nothing was sent. "
            f"Trading real money needs, besides your own judgement: {'; '.join(lacking)}."
        )
