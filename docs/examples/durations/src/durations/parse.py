"""From text to seconds."""

from durations.units import SECONDS


def parse(text: str) -> int:
    """Return the seconds of a duration, for example 5400 for "1h30m"; ValueError for anything else."""
    total, digits, left = 0, "", list(SECONDS)
    for letter in text.strip().lower():
        if letter.isdigit():
            digits = digits + letter
            continue
        if not digits or letter not in left:
            raise ValueError(f"Expected a duration such as 1h30m, was {text!r}")
        total = total + int(digits) * SECONDS[letter]
        left = left[left.index(letter) + 1 :]
        digits = ""
    if digits or len(left) == len(SECONDS):
        raise ValueError(f"Expected a duration such as 1h30m, was {text!r}")
    return total
