"""Column types that lose nothing: exact decimals and aware UTC instants, on SQLite as on PostgreSQL."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import BigInteger, DateTime, Numeric
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator, TypeEngine


def scaled(value: Decimal, scale: int) -> int:
    """Return value * 10**scale as an integer; raise ValueError where that would round."""
    shifted = value.scaleb(scale)
    whole = int(shifted)
    if whole != shifted:
        raise ValueError(f"Expected a multiple of {Decimal(1).scaleb(-scale)}, was {value}")
    return whole


def unscaled(whole: int, scale: int) -> Decimal:
    """Return whole / 10**scale with exactly `scale` decimals."""
    return Decimal(whole).scaleb(-scale)


class Exact(TypeDecorator[Decimal]):
    """A decimal with `scale` digits after the point.

    NUMERIC on PostgreSQL; on SQLite, which has no decimal of its own and would hand floats back, a 64-bit
    integer of 10**-scale units, so that sums in SQL are exact too. A value between two units is refused,
    never rounded.
    """

    impl = Numeric
    cache_ok = True

    def __init__(self, scale: int) -> None:
        super().__init__(24, scale)
        self.scale = scale

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        if dialect.name == "sqlite":
            return dialect.type_descriptor(BigInteger())
        return dialect.type_descriptor(Numeric(24, self.scale))

    def process_bind_param(self, value: Decimal | None, dialect: Dialect) -> object:
        if value is None:
            return None
        whole = scaled(value, self.scale)
        return whole if dialect.name == "sqlite" else unscaled(whole, self.scale)

    def process_result_value(self, value: object, dialect: Dialect) -> Decimal | None:
        if value is None:
            return None
        if isinstance(value, int):
            return unscaled(value, self.scale)
        assert isinstance(value, Decimal)
        return value.quantize(Decimal(1).scaleb(-self.scale))


class Utc(TypeDecorator[datetime]):
    """An aware instant, stored in UTC and returned aware. A naive datetime is refused."""

    impl = DateTime
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return dialect.type_descriptor(DateTime(timezone=dialect.name != "sqlite"))

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"Expected an aware instant, was {value!r} without a time zone")
        value = value.astimezone(UTC)
        return value.replace(tzinfo=None) if dialect.name == "sqlite" else value

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
