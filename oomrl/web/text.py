"""Show foreign text as what it is: data. Escaped, with characters that hide or reorder made visible and counted.

Symbols, strategies' exceptions, models' replies, file names and comments come from elsewhere. Whoever reads them must
see what is there, not what it would like to look like.
"""

from __future__ import annotations

import unicodedata

from markupsafe import Markup, escape

#: Characters that are fine in a text of several lines.
_PLAIN = frozenset("\n\t")
#: Printable by Python's word, and yet nothing to see: fillers, blanks and variation selectors.
_UNSEEN = frozenset("\u115f\u1160\u3164\uffa0\u034f\u17b4\u17b5\u2800\U0001d159") | {
    chr(c) for c in (*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))
}


def odd(character: str) -> bool:
    """Say whether a character hides, reorders or cannot be seen."""
    return character in _UNSEEN or not (character in _PLAIN or character.isprintable())


def oddities(text: str) -> list[str]:
    """Return the names of the odd characters in a text, each once."""
    return sorted({_name(character) for character in text if odd(character)})


def inert(text: object, most: int = 200_000) -> Markup:
    """Return text for a page: escaped, odd characters as marked code points, cut after `most` characters."""
    words = "" if text is None else str(text)
    cut = len(words) > most
    words = words[:most].replace("\r\n", "\n")
    if not any(odd(character) for character in words):
        shown = escape(words)
    else:
        parts: list[Markup] = []
        run: list[str] = []
        for character in words:
            if odd(character):
                parts.append(escape("".join(run)))
                run.clear()
                parts.append(mark(character))
            else:
                run.append(character)
        parts.append(escape("".join(run)))
        shown = Markup("").join(parts)
    if cut:
        shown += Markup('<span class="cut"> … cut after {} characters</span>').format(f"{most:,}")
    return shown


def escaped(text: str) -> str:
    """Return text for a file: odd characters as escapes that can be read."""
    return "".join(f"\\u{ord(c):04x}" if odd(c) else c for c in text)


def mark(character: str) -> Markup:
    """Return the mark that stands for one odd character."""
    return Markup('<span class="odd" title="{}">U+{}</span>').format(_name(character), f"{ord(character):04X}")


def _name(character: str) -> str:
    return unicodedata.name(character, f"CONTROL U+{ord(character):04X}")
