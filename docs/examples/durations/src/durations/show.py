"""From seconds to text."""

from durations.units import SECONDS


def show(seconds: int) -> str:
    """Return a duration in units, largest first; "0s" for none. ValueError below 0."""
    if seconds < 0:
        raise ValueError(f"Expected seconds of at least 0, was {seconds}")
    parts = []
    left = seconds
    for unit, size in SECONDS.items():
        count = left // size
        left = left % size
        if count:
            parts.append(f"{count}{unit}")
    if not parts:
        return "0s"
    return "".join(parts)
