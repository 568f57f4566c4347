"""The request limit: so many requests a minute for each key, on the virtual clock."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import datetime, timedelta

MINUTE = timedelta(minutes=1)


@dataclass
class RateLimit:
    """Count requests in windows of a minute that begin with a key's first request. `most` 0 sets no limit."""

    most: int = 200
    windows: dict[str, tuple[datetime, int]] = field(default_factory=dict)

    def take(self, key: str, now: datetime) -> tuple[bool, dict[str, str]]:
        """Return whether a request may pass, and the headers that say what is left. Refused ones do not count."""
        if not self.most:
            return True, {}
        begun, used = self.windows.get(key, (now, 0))
        if now >= begun + MINUTE:
            begun, used = now, 0
        passes = used < self.most
        used += passes
        self.windows[key] = begun, used
        return passes, {
            "X-Ratelimit-Limit": str(self.most),
            "X-Ratelimit-Remaining": str(self.most - used),
            "X-Ratelimit-Reset": str(math.ceil((begun + MINUTE).timestamp())),
        }
