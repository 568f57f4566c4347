"""The locked policy: what a patch may touch, what code may say, and how much evidence it needs.

`policy.toml` is read into frozen records with strict keys: a misspelt key is an error, never a default.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
import tomllib
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

PhaseName = Literal["logic", "tests"]
Scalar = int | float | str | bool

# Whatever the globs of a policy say, these steer interpreters, test runners or builds and stay locked.
LOCKED_NAMES = re.compile(
    r"(conftest|sitecustomize|usercustomize|setup|noxfile|__main__)\.py$|(\.?pytest|tox|mypy|pyrightconfig)\.(ini|json)$"
    r"|(pyproject|policy|pdm|poetry|ruff|\.ruff|\.?coverage|uv)\.(toml|lock)$|setup\.cfg$|\.(coveragerc.*|coverage.*)$"
    r"|(requirements|constraints).*\.(txt|in)$|Pipfile.*$|Makefile$|Dockerfile$|\.(env|git).*$"
    r"|.*\.(pth|pyc|pyo|pyd|so|dylib|dll|zip|whl|egg|pkl|pickle|npy|npz|json|csv|parquet|sh|cfg|ini)$",
    re.IGNORECASE,
)


class PolicyError(Exception):
    """The policy file cannot be used; nothing was judged."""


@dataclass(frozen=True)
class Layout:
    """Where things are in the judged repository."""

    package: str
    source: str = "src"
    tests: str = "tests"
    baseline: str = "baseline"
    parameters: str = ""


@dataclass(frozen=True)
class Phase:
    """Globs of one phase (`**` spans folders). Every other path is locked."""

    editable: tuple[str, ...]
    create: tuple[str, ...] = ()
    delete: tuple[str, ...] = ()


@dataclass(frozen=True)
class Limits:
    """Sizes beyond which a patch or a file is refused unread."""

    patch_bytes: int = 200_000
    files: int = 12
    hunks: int = 60
    changed_lines: int = 1_000
    rewrite_share: float = 0.8
    rewrite_lines: int = 40
    file_bytes: int = 200_000
    line_length: int = 200
    syntax_nodes: int = 30_000
    syntax_depth: int = 100
    literal_items: int = 64
    literal_characters: int = 400
    statements_on_constants: int = 25
    attempts: int = 8


@dataclass(frozen=True)
class Code:
    """What source code may say, beyond the built-in lists.

    Each grant allows one class, one special name, or one kind of what is refused when new, as GR236 calls it (`try`).
    """

    imports: Mapping[str, tuple[str, ...]]
    non_ascii: Literal["refuse", "text"] = "refuse"
    attributes: tuple[str, ...] = ()
    builtins: tuple[str, ...] = ()
    decorators: tuple[str, ...] = ()
    bases: tuple[str, ...] = ()
    grants: tuple[str, ...] = ()


@dataclass(frozen=True)
class Tests:
    """What generated tests may say and must show.

    `test_defect_` claims a defect of today's code; in a pair failing today is the claim. `kill_share` is of the mutants
    that new tests reach in what they name, or in a pair in what its logic changes. `may_change` names what stands in
    files of tests (`tests/test_a.py::test_b`) and a patch may change, to be judged as new: a person's word.
    """

    imports: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: {"pytest": ("*",), "math": ("*",)})
    defect_prefix: str = "test_defect_"
    repeats: int = 2
    kill_share: float = 0.5
    relative_tolerance: float = 0.05
    absolute_tolerance: float = 0.05
    may_change: tuple[str, ...] = ()


@dataclass(frozen=True)
class Protected:
    """Functions (`package.module:qualified.name`) that may not change, vanish, move or be shadowed."""

    functions: tuple[str, ...] = ()


@dataclass(frozen=True)
class Bound:
    """What one key of the parameters file may become. `price` marks one measured in dollars a share."""

    type: Literal["int", "float", "str", "bool"]
    min: float | None = None
    max: float | None = None
    choices: tuple[Scalar, ...] = ()
    max_relative_change: float | None = None
    price: bool = False


@dataclass(frozen=True)
class Coverage:
    """Least shares, each of statements and of branches; `probes` claimed lines are checked from outside."""

    total: float = 0.95
    per_file: float = 0.95
    changed: float = 0.95
    probes: int = 30


@dataclass(frozen=True)
class Mutation:
    """Least share of the mutants of changed functions that must die by an assertion."""

    minimum: float = 0.6
    most: int = 40


@dataclass(frozen=True)
class Sandbox:
    """The least profile, and the limits of whatever runs inside.

    Processor seconds bound what is judged; `seconds` on the clock are for what only waits, and generous, so that a
    busy machine refuses nothing.
    """

    minimum: Literal["S2", "S3"] = "S2"
    seconds: float = 900.0
    cpu_seconds: int = 120
    memory_mb: int = 2_048
    processes: int = 32
    file_mb: int = 64
    tmp_mb: int = 64
    output_bytes: int = 4_000_000


@dataclass(frozen=True)
class Acceptance:
    """Golden cases and hidden properties over the worker pipe. `waived` maps a property to its reason; `alike` is that
    code which no test tells from the code before trades as it did (GR603)."""

    strategy: str = ""
    sessions: int = 90
    symbols: int = 8
    capital: float = 1_000_000.0
    waived: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Policy:
    """One repository's whole policy."""

    schema: int
    layout: Layout
    phases: Mapping[str, Phase]
    code: Code
    tests: Tests = field(default_factory=Tests)
    protected: Protected = field(default_factory=Protected)
    bounds: Mapping[str, Bound] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    coverage: Coverage = field(default_factory=Coverage)
    mutation: Mutation = field(default_factory=Mutation)
    sandbox: Sandbox = field(default_factory=Sandbox)
    acceptance: Acceptance = field(default_factory=Acceptance)
    digest: str = ""

    @property
    def package_folder(self) -> str:
        """Return the folder of the importable package, for example `src/strategy`."""
        return f"{self.layout.source}/{self.layout.package}".lstrip("./")

    def may(self, action: Literal["edit", "create", "delete"], path: str, phase: PhaseName) -> bool:
        """Say whether a phase may do this to a path. Locked names stay locked whatever the globs say."""
        rules = self.phases[phase]
        globs = {"edit": rules.editable, "create": rules.create, "delete": rules.delete}[action]
        return not locked(path) and any(matches(path, glob) for glob in globs)


def locked(path: str) -> bool:
    """Say whether a path's name alone locks it."""
    return any(LOCKED_NAMES.fullmatch(part) for part in path.split("/"))


@lru_cache(maxsize=512)
def _pattern(glob: str) -> re.Pattern[str]:
    parts = re.split(r"(\*\*/|\*\*|\*|\?)", glob)
    table = {"**/": r"(?:[^/]+/)*", "**": r".*", "*": r"[^/]*", "?": r"[^/]"}
    return re.compile("".join(table.get(part, re.escape(part)) for part in parts))


def matches(path: str, glob: str) -> bool:
    """Match a POSIX path against a glob; `*` stays within a folder, `**/` spans any number, also none."""
    return _pattern(glob).fullmatch(path) is not None


def parse_policy(data: bytes) -> Policy:
    """Read a policy from the bytes of its file.

    Raises:
        PolicyError: not UTF-8 TOML, an unknown or missing key, a value of the wrong type, or a phase missing.
    """
    try:
        raw = tomllib.loads(data.decode("utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise PolicyError(f"Expected UTF-8 TOML, was unreadable: {error}.") from None
    if "digest" in raw:
        raise PolicyError("Expected no key 'digest' in the policy file, was one: it is computed.")
    policy = typing.cast(Policy, _build(Policy, raw, "policy"))
    if policy.schema != 1:
        raise PolicyError(f"Expected schema = 1, was {policy.schema}.")
    if set(policy.phases) != {"logic", "tests"}:
        raise PolicyError(f"Expected phases 'logic' and 'tests', was {sorted(policy.phases)}.")
    return dataclasses.replace(policy, digest=hashlib.sha256(data).hexdigest())


def load_policy(path: Path) -> Policy:
    """Read a policy file; see `parse_policy`."""
    try:
        return parse_policy(path.read_bytes())
    except OSError as error:
        raise PolicyError(f"Expected a readable policy file, was {str(path)!r}: {error.strerror}.") from None


def _build(kind: Any, value: Any, where: str) -> Any:
    """Turn parsed TOML into a typed record, strictly."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if dataclasses.is_dataclass(kind):
        return _record(kind, value, where)
    if origin is tuple:
        if not isinstance(value, list):
            raise PolicyError(f"Expected a list at {where}, was {value!r}.")
        return tuple(_build(arguments[0], item, f"{where}[{at}]") for at, item in enumerate(value))
    if origin is Mapping:
        if not isinstance(value, dict):
            raise PolicyError(f"Expected a table at {where}, was {value!r}.")
        return {key: _build(arguments[1], item, f"{where}.{key}") for key, item in value.items()}
    if origin is Literal:
        if value not in arguments:
            raise PolicyError(f"Expected one of {list(arguments)} at {where}, was {value!r}.")
        return value
    allowed = arguments if origin in (types.UnionType, typing.Union) else (kind,)
    if float in allowed and type(value) is int:
        return value if int in allowed else float(value)
    if type(value) not in allowed:
        raise PolicyError(f"Expected {' or '.join(k.__name__ for k in allowed)} at {where}, was {value!r}.")
    return value


def _record(kind: Any, value: Any, where: str) -> Any:
    if not isinstance(value, dict):
        raise PolicyError(f"Expected a table at {where}, was {value!r}.")
    hints, fields = typing.get_type_hints(kind), {item.name: item for item in dataclasses.fields(kind)}
    for key in value:
        if key not in fields:
            raise PolicyError(f"Expected one of {sorted(fields)} in {where}, was {key!r}.")
    for name, item in fields.items():
        required = item.default is dataclasses.MISSING and item.default_factory is dataclasses.MISSING
        if required and name not in value:
            raise PolicyError(f"Expected a key {name!r} in {where}, was none.")
    return kind(**{key: _build(hints[key], item, f"{where}.{key}") for key, item in value.items()})
