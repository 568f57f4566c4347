"""Live pages: one stream of server-sent events, which says that there is something new and nothing else."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Annotated

from fastapi import APIRouter, Depends, HTTPException, Request
from fastapi.responses import StreamingResponse

from oomrl.adapters.notify import Notifier
from oomrl.domain.people import Right
from oomrl.errors import OomrlError
from oomrl.web.entry import Entry, page_needs
from oomrl.web.site import Site

router = APIRouter()
#: How often the store is asked, and how often a silent stream says that it is alive, in seconds.
EVERY, ALIVE = 1.0, 20.0
TELL_EVERY = 30.0
#: Live pages that one person may have open.
MOST_STREAMS = 20


class Pulse:
    """Ask the store once a second whether anything is new, for all who listen together."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.beats = 0
        self.listeners: Counter[str] = Counter()
        self._news = asyncio.Condition()

    async def beat(self) -> None:
        """Go on until cancelled. Nobody listening, nobody asks."""
        seen = ""
        while True:
            if self.listeners.total():
                try:
                    found = await asyncio.to_thread(self._look)
                except OomrlError:
                    found = seen
                if seen and found != seen:
                    async with self._news:
                        self.beats += 1
                        self._news.notify_all()
                seen = found
            else:
                seen = ""
            await asyncio.sleep(EVERY)

    async def next(self, known: int) -> int:
        """Return the number of the newest beat once it is another than `known`."""
        async with self._news:
            await self._news.wait_for(lambda: self.beats != known)
            return self.beats

    def _look(self) -> str:
        with self.site.store.read() as view:
            return view.reading.pulse(self.site.run)


async def telling(site: Site) -> None:
    """Send the notifications that are due, for as long as the page is served, where there is anybody to tell."""
    notifier = Notifier(site.state, site.store, site.run, site.settings, site.now)
    while notifier.addresses:
        with suppress(OomrlError):
            # What could not be sent stays due, and is tried again.
            await asyncio.to_thread(notifier.tell)
        await asyncio.sleep(TELL_EVERY)


@router.get("/events")
async def events(request: Request, entry: Annotated[Entry, Depends(page_needs(Right.SEE))]) -> StreamingResponse:
    """Stream `changed` events for as long as the browser listens."""
    pulse: Pulse = request.app.state.pulse
    name = entry.person.name
    if pulse.listeners[name] >= MOST_STREAMS:
        raise HTTPException(429, f"Expected at most {MOST_STREAMS} live pages of one person: close some.")
    return StreamingResponse(_stream(pulse, request, name), media_type="text/event-stream")


async def _stream(pulse: Pulse, request: Request, name: str) -> AsyncIterator[str]:
    pulse.listeners[name] += 1
    known = pulse.beats
    try:
        yield "retry: 3000\n\n"
        while not await request.is_disconnected():
            try:
                known = await asyncio.wait_for(pulse.next(known), ALIVE)
                yield f"event: changed\ndata: {known}\n\n"
            except TimeoutError:
                yield ": alive\n\n"
    finally:
        pulse.listeners[name] -= 1
