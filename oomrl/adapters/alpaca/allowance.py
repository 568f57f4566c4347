"""The broker's rate limit, kept from our side: never one request too many, and none left unused."""

from __future__ import annotations

from collections import deque
from datetime import UTC, datetime, timedelta
from threading import Condition

from oomrl.ports import Timer

#: Kept between two windows, for clocks that count time in coarse steps.
MARGIN = timedelta(milliseconds=10)


class Allowance:
    """Let through at most `limit` requests in any `window`, by the times at which earlier ones were answered.

    A request counts from its answer on, which is never earlier than when the broker saw it, so the broker sees at most
    `limit` in any window of its own, whether it counts by the minute or by a sliding window, and however slow the
    line is. Requests under way count as well. Safe to use from several threads.
    """

    def __init__(self, timer: Timer, limit: int = 200, window: timedelta = timedelta(minutes=1)) -> None:
        self.timer, self.limit, self.window = timer, limit, window
        self.taken = 0
        self._answered: deque[datetime] = deque()
        self._under_way = 0
        self._not_before = datetime.min.replace(tzinfo=UTC)
        self._changed = Condition()

    def take(self) -> None:
        """Return once another request may go out; `answered` must follow."""
        while True:
            with self._changed:
                ready = self._ready(self.timer.now())
                if ready is None:
                    self._under_way += 1
                    self.taken += 1
                    return
            self.timer.wait(ready)

    def answered(self, remaining: int | None = None, reset: datetime | None = None) -> None:
        """Count a request that `take` let through, as answered now.

        `remaining` and `reset` are what the broker says of its own count: where it says zero and we counted fewer,
        somebody else uses the same key, and nothing goes out before the reset.
        """
        with self._changed:
            self._under_way -= 1
            self._answered.append(self.timer.now())
            if remaining == 0 and reset is not None and len(self._answered) + self._under_way < self.limit:
                self._not_before = max(self._not_before, reset)

    def refused(self, until: datetime) -> None:
        """Let nothing through before an instant: the broker answered 429."""
        with self._changed:
            self._not_before = max(self._not_before, until)

    def _ready(self, now: datetime) -> datetime | None:
        """Return None where a request may go out now, else when to ask again."""
        while self._answered and now - self._answered[0] >= self.window + MARGIN:
            self._answered.popleft()
        if now < self._not_before:
            return self._not_before
        if len(self._answered) + self._under_way < self.limit:
            return None
        return self._answered[0] + self.window + MARGIN if self._answered else now + MARGIN
