"""Numbers and lives of orders that only look as if they had a form."""

from __future__ import annotations

from decimal import Decimal

import pytest

from oomrl.exchange.emulator.refusals import Refusal
from oomrl.exchange.emulator.tickets import number, ticket_of

ORDER = {"symbol": "AA", "side": "buy", "type": "market", "time_in_force": "day", "qty": "1"}


@pytest.mark.parametrize(
    "value",
    ["1e-1000000000", "1e-10", "0", "-1", "nan", "inf", "1_000", " 1 ", "١", "", "1e10", "0x1", "1.0000000001", True],
)
def test_what_is_no_positive_number_of_nine_places_is_refused(value: object) -> None:
    with pytest.raises(Refusal):
        ticket_of({**ORDER, "qty": value})


@pytest.mark.parametrize(("value", "expected"), [("1", 1), ("1.50", "1.5"), (".5", "0.5"), ("1e2", 100), (3, 3)])
def test_what_is_one_is_read_exactly(value: object, expected: object) -> None:
    assert number({"qty": value}, "qty") == Decimal(str(expected))


def test_an_order_with_a_price_of_nothing_is_refused() -> None:
    with pytest.raises(Refusal):
        ticket_of({**ORDER, "type": "limit", "limit_price": "1e-1000000000"})
