"""What models cost: a price for every token, a bill for every reply, and an endowment that ends (RLFCB)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_HALF_EVEN, ROUND_UP, Decimal

from oomrl.domain.ledger import Book, Entry, Kind
from oomrl.errors import Mistake

MILLION = Decimal(1_000_000)
#: The smallest amount that a bill knows, in dollars.
UNIT = Decimal("0.00000001")
CENT = Decimal("0.01")


@dataclass(frozen=True, slots=True)
class Price:
    """Dollars for a million tokens, read and written."""

    prompt: Decimal
    completion: Decimal

    def cost(self, prompt_tokens: int, completion_tokens: int) -> Decimal:
        """Return the price of a reply in dollars, rounded up to 1e-8."""
        if prompt_tokens < 0 or completion_tokens < 0:
            raise ValueError(f"Expected token counts of at least 0, was {prompt_tokens} and {completion_tokens}")
        exact = (self.prompt * prompt_tokens + self.completion * completion_tokens) / MILLION
        return exact.quantize(UNIT, rounding=ROUND_UP)


FREE = Price(Decimal(0), Decimal(0))


@dataclass(frozen=True, slots=True)
class PriceTable:
    """Prices by model. `strict` (live and paper trading) makes an unknown model a mistake instead of free."""

    prices: Mapping[str, Price]
    strict: bool = True

    def price(self, model: str) -> Price:
        """Return a model's price; the longest name that the model's begins with counts (gpt-5-2026-01-01: gpt-5)."""
        known = [name for name in self.prices if model == name or model.startswith(f"{name}-")]
        if known:
            return self.prices[max(known, key=len)]
        if self.strict:
            raise Mistake(
                f"Expected a price for the model {model!r}, was none: set model.prompt_price and "
                "model.completion_price (dollars for a million tokens)"
            )
        return FREE


def price_table(
    prompt: Decimal | None, completion: Decimal | None, models: Iterable[str], strict: bool = True
) -> PriceTable:
    """Return one price for some models, in dollars for a million tokens; an empty table where one is missing."""
    if prompt is None or completion is None:
        return PriceTable({}, strict)
    return PriceTable(dict.fromkeys(models, Price(prompt, completion)), strict)


@dataclass(frozen=True, slots=True)
class Compute:
    """What was given for models and what they have used, in dollars. Once spent, no prompt is asked before a person
    gives more (`oomrl endow --compute`). A bill counts in full even where it overdraws: it was used."""

    endowment: Decimal
    spent: Decimal = Decimal(0)

    @property
    def out(self) -> bool:
        """Return whether nothing is left. An endowment of 0 allows free models alone."""
        return self.spent > 0 and self.spent >= self.endowment

    @property
    def left(self) -> Decimal:
        return max(self.endowment - self.spent, Decimal(0))


def bill_entry(prompt: str, day: date, spent_before: Decimal, cost: Decimal, model: str) -> Entry | None:
    """Return the ledger line of one reply, in whole cents; None where it moves no cent.

    Each line is the change of the rounded total, so that all lines together are never more than half a cent from
    the exact total. The line counts in the economic book alone: the broker knows nothing of it.
    """
    before = spent_before.quantize(CENT, rounding=ROUND_HALF_EVEN)
    after = (spent_before + cost).quantize(CENT, rounding=ROUND_HALF_EVEN)
    if after == before:
        return None
    return Entry(
        key=f"model:{prompt}",
        day=day,
        kind=Kind.MODEL_BILL,
        book=Book.ECONOMIC,
        amount=before - after,
        note=f"{model}: {cost} dollars",
    )
