"""The causal audit: change the future, and see whether the past's forecasts change.

For a cut c all rows after c are replaced by each name's low quantile, its high quantile, or rows drawn from
the past. A causal model's forecasts up to c cannot tell. The same is done on a panel with gaps just before c,
since backfill shows only where something is missing, and on a panel that simply ends at c.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from oomrl.domain.market import Floats

RTOL, ATOL = 1e-7, 1e-9
CUTS = 3
SUFFIXES = ("low quantile", "high quantile", "bootstrap")
Fields = Mapping[str, Floats]


@dataclass(frozen=True, slots=True)
class Leak:
    """Say which probe changed the forecasts of rows that came before it."""

    cut: int
    probe: str

    @property
    def message(self) -> str:
        return (
            f"Expected forecasts up to a row to stay the same when later rows change, but the {self.probe} probe "
            "changed them: use no negative shift, centred window, backfill or whole-sample statistic"
        )


def replace_suffix(fields: Fields, cut: int, how: str, rng: np.random.Generator) -> dict[str, Floats]:
    """Return the panel with rows after `cut` replaced; the rows up to it are untouched."""
    out = {}
    days = len(next(iter(fields.values())))
    drawn = rng.integers(0, cut + 1, size=days - cut - 1)
    for name, values in fields.items():
        changed = values.copy()
        past = values[: cut + 1]
        if how == "bootstrap":
            changed[cut + 1 :] = past[drawn]
        else:
            level = np.nanquantile(np.where(np.isfinite(past), past, np.nan), 0.01 if how == "low quantile" else 0.99)
            changed[cut + 1 :] = level * (0.9 if how == "low quantile" else 1.1)
        out[name] = changed
    return out


def punch(fields: Fields, cut: int, rng: np.random.Generator) -> dict[str, Floats]:
    """Return the panel with gaps in the last rows up to `cut`: half the names, up to four rows each."""
    out = {name: values.copy() for name, values in fields.items()}
    width = next(iter(out.values())).shape[1]
    for values in out.values():
        for column in rng.permutation(width)[: max(1, width // 2)]:
            values[cut - int(rng.integers(0, 4)) : cut + 1, column] = np.nan
    return out


def find_leak(
    predict: Callable[[Fields], Floats], fields: Fields, forecast: Floats, seed: int, first: int = 60
) -> Leak | None:
    """Probe a fitted model; return the first leak or None. `forecast` is its answer on `fields` as they are."""
    rng = np.random.default_rng([seed, 5])
    days = len(forecast)
    for cut in sorted(rng.choice(np.arange(first, days - 20), size=CUTS, replace=False).tolist()):
        for probe, panel, reference in _cases(predict, fields, forecast, cut, rng):
            answer = predict(panel)[: cut + 1]
            if not np.allclose(answer, reference[: cut + 1], rtol=RTOL, atol=ATOL, equal_nan=True):
                return Leak(cut, probe)
    return None


def _cases(
    predict: Callable[[Fields], Floats], fields: Fields, forecast: Floats, cut: int, rng: np.random.Generator
) -> Iterator[tuple[str, dict[str, Floats], Floats]]:
    for how in SUFFIXES:
        yield how, replace_suffix(fields, cut, how, rng), forecast
    yield "truncation", {name: values[: cut + 1] for name, values in fields.items()}, forecast
    gapped = punch(fields, cut, rng)
    reference = predict(gapped)
    for how in SUFFIXES[:2]:
        yield f"{how} after a gap", replace_suffix(gapped, cut, how, rng), reference
