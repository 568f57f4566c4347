from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oomrl.agents.billing import FREE, Compute, Price, PriceTable, bill_entry, price_table
from oomrl.domain.ledger import Book, Kind
from oomrl.errors import Mistake

DAY = date(2020, 1, 2)
COSTS = st.decimals(min_value=0, max_value=3, places=8, allow_nan=False)


def test_a_price_is_for_a_million_tokens_and_rounds_up() -> None:
    price = Price(Decimal("1.25"), Decimal("10"))
    assert price.cost(1_000_000, 0) == Decimal("1.25") and price.cost(0, 1_000_000) == Decimal(10)
    assert price.cost(1, 0) == Decimal("0.00000125")
    assert Price(Decimal("0.001"), Decimal(0)).cost(1, 0) == Decimal("0.00000001")
    with pytest.raises(ValueError, match="at least 0"):
        price.cost(-1, 0)


def test_the_longest_name_that_fits_has_the_price() -> None:
    one, two = Price(Decimal(1), Decimal(1)), Price(Decimal(2), Decimal(2))
    table = PriceTable({"gpt-5": one, "gpt-5-mini": two})
    assert table.price("gpt-5") == table.price("gpt-5-2026-01-01") == one
    assert table.price("gpt-5-mini") == table.price("gpt-5-mini-2026-01-01") == two


@pytest.mark.parametrize("model", ["gpt-50", "gpt", "", "local"])
def test_an_unknown_price_is_a_mistake_where_money_is_real(model: str) -> None:
    with pytest.raises(Mistake, match="model.prompt_price"):
        PriceTable({"gpt-5": FREE}).price(model)
    assert PriceTable({"gpt-5": FREE}, strict=False).price(model) == FREE
    with pytest.raises(Mistake):
        price_table(Decimal(1), None, ["gpt-5"]).price("gpt-5")
    assert price_table(Decimal(1), Decimal(2), ["gpt-5"]).price("gpt-5") == Price(Decimal(1), Decimal(2))


def test_spent_is_spent() -> None:
    left = Compute(Decimal("1.00"), Decimal("0.99"))
    assert left.left == Decimal("0.01") and not left.out
    over = Compute(Decimal("1.00"), Decimal("1.49"))
    assert over.out and over.left == 0
    assert not Compute(Decimal("2.00"), Decimal("1.49")).out


def test_without_an_endowment_free_models_go_on() -> None:
    assert not Compute(Decimal(0)).out
    assert Compute(Decimal(0), Decimal("0.00000001")).out


@given(st.lists(COSTS, max_size=30))
def test_lines_of_whole_cents_sum_to_the_exact_bill(costs: list[Decimal]) -> None:
    spent, booked = Decimal(0), Decimal(0)
    for number, cost in enumerate(costs):
        entry = bill_entry(f"p{number}", DAY, spent, cost, "m-1")
        spent += cost
        if entry is not None:
            assert entry.kind is Kind.MODEL_BILL and entry.book is Book.ECONOMIC and entry.key == f"model:p{number}"
            assert entry.amount == entry.amount.quantize(Decimal("0.01")) and entry.amount < 0
            booked += entry.amount
    assert abs(booked + spent) <= Decimal("0.005")
