"""Faults on purpose: what goes wrong where, by script or by seeded chance. The file's format is in docs/faults.md.

Each fault counts what it fits (requests, events, fills, orders) for itself and draws from a generator of its own, so
that adding one does not move the others.
"""

from __future__ import annotations

import random
import tomllib
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError, model_validator

from oomrl.errors import Mistake

#: Where each kind strikes, which of its settings it needs, and which endpoints it fits unless the file says so.
REQUEST, ANSWER, CANCEL, REPLACE = "request", "answer", "cancel", "replace"
EVENT, FILL, ORDER, INSTANT, CALENDAR = "event", "fill", "order", "instant", "calendar"
SITES = {
    "rate_limited": REQUEST,
    "accepted_then_504": ANSWER,
    "html_502": REQUEST,
    "slow": ANSWER,
    "reset": REQUEST,
    "unknown_enum": ANSWER,
    "null_field": ANSWER,
    "cancel_ignored": CANCEL,
    "cancel_late": CANCEL,
    "cancel_then_fill": CANCEL,
    "replace_too_late": REPLACE,
    "drop_event": EVENT,
    "duplicate_event": EVENT,
    "reorder_events": EVENT,
    "null_data": EVENT,
    "unknown_event": EVENT,
    "stream_silence": EVENT,
    "stream_drop": EVENT,
    "partial_fill": FILL,
    "order_state": ORDER,
    "reset_account": INSTANT,
    "untradable": INSTANT,
    "calendar": CALENDAR,
}
NEEDS = {
    "unknown_enum": "field",
    "null_field": "field",
    "order_state": "value",
    "reset_account": "at",
    "untradable": "at",
    "calendar": "day",
}
#: Kinds that may also strike after the request was carried out (`applied = true`).
MAY_APPLY = ("html_502", "reset")
DEFAULT_ENDPOINT = {ANSWER: {"accepted_then_504": "POST /v2/orders"}}


class Fault(BaseModel):
    """One entry of a fault file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal[tuple(SITES)]  # type: ignore[valid-type]
    endpoint: str | None = None
    symbol: str | None = None
    nth: tuple[Annotated[int, Field(ge=1)], ...] = ()
    probability: Annotated[float, Field(ge=0, le=1)] | None = None
    times: Annotated[int, Field(ge=1)] | None = None
    since: AwareDatetime | None = None
    until: AwareDatetime | None = None
    applied: bool = False
    seconds: Annotated[float, Field(ge=0, le=86_400 * 366)] = 1.0
    fraction: Annotated[float, Field(gt=0, lt=1)] = 0.5
    field: str | None = None
    value: str = "something_new"
    at: AwareDatetime | None = None
    day: date | None = None
    hours: Annotated[str, Field(pattern=r"^(closed|\d\d:\d\d-\d\d:\d\d)$")] = "closed"

    @model_validator(mode="after")
    def _complete(self) -> Fault:
        need = NEEDS.get(self.kind)
        if need and need not in self.model_fields_set:
            raise ValueError(f"a fault of kind {self.kind} needs {need}")
        if self.kind == "untradable" and not self.symbol:
            raise ValueError("a fault of kind untradable needs symbol")
        if self.nth and self.probability is not None:
            raise ValueError("nth and probability exclude each other")
        if self.applied and self.kind not in MAY_APPLY:
            raise ValueError(f"only {', '.join(MAY_APPLY)} may be applied")
        return self

    @property
    def site(self) -> str:
        return ANSWER if self.applied else SITES[self.kind]


class FaultFile(BaseModel):
    """A fault file: a seed, and the faults."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    seed: int = 0
    fault: tuple[Fault, ...] = ()


@dataclass
class Faults:
    """The faults in force, and how often each has struck."""

    file: FaultFile = field(default_factory=FaultFile)
    fitted: Counter[int] = field(default_factory=Counter)
    struck: Counter[int] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._chance = [random.Random(f"{self.file.seed}/{number}") for number in range(len(self.file.fault))]

    def at(self, site: str, now: datetime, endpoint: str = "", symbol: str | None = None) -> list[Fault]:
        """Return the faults that strike here and now, and count them."""
        found = []
        for number, fault in enumerate(self.file.fault):
            if fault.site == site and self._fits(fault, now, endpoint, symbol) and self._strikes(number, fault):
                found.append(fault)
        return found

    def due(self, now: datetime) -> list[Fault]:
        """Return the faults of an instant that has come; each strikes once."""
        found = []
        for number, fault in enumerate(self.file.fault):
            if fault.site == INSTANT and not self.struck[number] and fault.at is not None and fault.at <= now:
                self.struck[number] += 1
                found.append(fault)
        return found

    def calendar(self) -> dict[date, str]:
        """Return the days whose hours are shown wrong."""
        return {fault.day: fault.hours for fault in self.file.fault if fault.site == CALENDAR and fault.day is not None}

    def report(self) -> list[dict[str, Any]]:
        """Return each fault's kind, how often something fitted it, and how often it struck."""
        return [
            {"kind": fault.kind, "fitted": self.fitted[number], "struck": self.struck[number]}
            for number, fault in enumerate(self.file.fault)
        ]

    def _fits(self, fault: Fault, now: datetime, endpoint: str, symbol: str | None) -> bool:
        wanted = fault.endpoint or DEFAULT_ENDPOINT.get(fault.site, {}).get(fault.kind)
        if wanted is not None and fault.site in (REQUEST, ANSWER) and not fnmatchcase(endpoint, wanted):
            return False
        if fault.symbol is not None and fault.symbol != symbol:
            return False
        return (fault.since is None or now >= fault.since) and (fault.until is None or now < fault.until)

    def _strikes(self, number: int, fault: Fault) -> bool:
        self.fitted[number] += 1
        if fault.times is not None and self.struck[number] >= fault.times:
            return False
        if fault.nth:
            strikes = self.fitted[number] in fault.nth
        elif fault.probability is not None:
            strikes = self._chance[number].random() < fault.probability
        else:
            strikes = True
        self.struck[number] += strikes
        return strikes


def faults_of(text: str, where: str) -> Faults:
    """Read a fault file's text. Raises `Mistake` that names the first thing wrong."""
    try:
        return Faults(FaultFile.model_validate(_aware(tomllib.loads(text))))
    except tomllib.TOMLDecodeError as error:
        raise Mistake(f"{where}: expected TOML: {error}.") from error
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise Mistake(f"{where}: {place}: {first['msg']}. See docs/faults.md.") from error


def load_faults(path: Path) -> Faults:
    """Read a fault file."""
    try:
        return faults_of(path.read_text("utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise Mistake(f"Expected a fault file at {path}, could not read it: {error}.") from error


def _aware(value: Any) -> Any:
    """Take local date-times of TOML as UTC."""
    if isinstance(value, dict):
        return {key: _aware(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_aware(inner) for inner in value]
    if isinstance(value, datetime) and value.tzinfo is None:
        return value.replace(tzinfo=UTC)
    return value
