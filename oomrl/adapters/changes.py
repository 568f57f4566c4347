"""What a proposal changes: files before and after, and the parameters of strategy.toml in plain words."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from oomrl.adapters.constants import changed_constants
from oomrl.adapters.patches import result_of
from oomrl.domain.records import Proposal
from oomrl.errors import Mistake

PARAMETERS = "strategy.toml"


@dataclass(frozen=True, slots=True)
class Parameter:
    """One number or word of strategy.toml: `section.key`, before and after (None: not there), and its comment.

    One of the code has the section `code`, and as its comment the place.
    """

    key: str
    before: object
    after: object
    comment: str = ""

    def in_words(self) -> str:
        """Return the change as a sentence: from what to what, how much more or less, and what it is for."""
        old, new = self.before, self.after
        section, _, bare = self.key.partition(".")
        name = bare if section == "code" else bare.replace("_", " ")
        about = f" ({self.comment})" if self.comment else ""
        if old is None:
            return f"{name} is new: {_shown(new)}{about}."
        if new is None:
            return f"{name} is gone; it was {_shown(old)}{about}."
        numbers = all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in (old, new))
        if not numbers:
            return f"{name} changes from {_shown(old)} to {_shown(new)}{about}."
        assert isinstance(old, (int, float)) and isinstance(new, (int, float))
        word = "rises" if new > old else "falls"
        if not old:
            how = "from nothing"
        elif new / old >= 2:
            how = f"{new / old:.3g} times as much"
        elif new / old < 0:
            how = "with the other sign"
        else:
            how = f"{(new / old - 1):+.0%}"
        return f"{name} {word} from {_shown(old)} to {_shown(new)}, {how}{about}."


@dataclass(frozen=True, slots=True)
class Changes:
    """Files by path, each before and after (None: not there); `trouble` says why a patch could not be applied."""

    files: Mapping[str, tuple[bytes | None, bytes | None]]
    parameters_changed: tuple[Parameter, ...] = ()
    constants_changed: tuple[Parameter, ...] = ()
    trouble: str = ""

    @property
    def paths(self) -> frozenset[str]:
        return frozenset(self.files)

    def in_words(self) -> list[str]:
        """Return what changes in numbers and words, each as a sentence: of strategy.toml first, then of the code."""
        return [one.in_words() for one in (*self.parameters_changed, *self.constants_changed)]

    @property
    def parameters(self) -> frozenset[str]:
        return frozenset(parameter.key for parameter in self.parameters_changed)


def changes_of(base: Mapping[str, bytes], proposal: Proposal) -> Changes:
    """Return what a proposal changes of its base. One that does not apply changes nothing, and says why."""
    try:
        after = result_of(base, proposal)
    except Mistake as error:
        return Changes({path: (base.get(path), None) for path in _named(proposal)}, trouble=str(error))
    return between(base, after)


def between(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> Changes:
    """Return what differs from one tree to another."""
    paths = sorted(path for path in {*before, *after} if before.get(path) != after.get(path))
    files = {path: (before.get(path), after.get(path)) for path in paths}
    parameters = tuple(_parameters(before.get(PARAMETERS, b""), after.get(PARAMETERS, b"")))
    code = tuple(
        constant
        for path, (old, new) in files.items()
        if path.endswith(".py") and not path.startswith("tests/")
        for constant in _constants(path, old, new)
    )
    return Changes(files, parameters, code)


def _constants(path: str, before: bytes | None, after: bytes | None) -> Iterator[Parameter]:
    for scope, old, new in changed_constants(before, after):
        there = new or old
        assert there is not None
        name = there.name or "a constant"
        place = f"{path}:{there.line}{f', {scope}' if scope else ''}"
        about = place if there.around in (there.name, "") else f"{place}: {there.around}"
        yield Parameter(f"code.{name}", old and old.value, new and new.value, about)


def _named(proposal: Proposal) -> Iterable[str]:
    for line in (proposal.tests_patch + proposal.logic_patch).split("\n"):
        if line.startswith("+++ b/"):
            yield line.removeprefix("+++ b/")


def _parameters(before: bytes, after: bytes) -> Iterator[Parameter]:
    old, new, comments = _flat(before), _flat(after), _comments(before) | _comments(after)
    for key in sorted({*old, *new}):
        if old.get(key) != new.get(key) or type(old.get(key)) is not type(new.get(key)):
            yield Parameter(key, old.get(key), new.get(key), comments.get(key, ""))


def _flat(data: bytes) -> dict[str, object]:
    try:
        raw = tomllib.loads(data.decode("utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError):
        return {}
    return {
        f"{section}.{key}": value
        for section, table in raw.items()
        if isinstance(table, dict)
        for key, value in table.items()
    }


def _comments(data: bytes) -> dict[str, str]:
    """Return what stands behind the # of each `key = value # words`."""
    section, found = "", {}
    for line in data.decode("utf-8", "replace").split("\n"):
        if line.startswith("["):
            section = line.strip("[] \t")
        elif "=" in line and "#" in line:
            key = line.partition("=")[0].strip()
            found[f"{section}.{key}"] = line.rpartition("#")[2].strip().strip(". ")
    return found


def _shown(value: object) -> str:
    if isinstance(value, float) and value == int(value) and abs(value) >= 1_000:
        return f"{int(value):,}"
    if isinstance(value, str) and not value.isidentifier():
        return repr(value[:60])
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
