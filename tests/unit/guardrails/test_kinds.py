"""Where functions of numpy take a kind of array is known from numpy itself."""

from __future__ import annotations

import inspect
from functools import reduce

import numpy as np
import pytest

from guardrails.checks.kinds import CLOSED, FOLDS, MAKERS
from guardrails.checks.names import names

LISTED = sorted(names().allowed("numpy", ("*",)))


@pytest.mark.parametrize("name", LISTED)
def test_a_place_for_a_kind_is_known(name: str) -> None:
    made = reduce(lambda owner, part: getattr(owner, part, None), name.split("."), np)
    if made is None or isinstance(made, (float, np.ufunc)) or f"numpy.{name}" in CLOSED or not callable(made):
        return
    try:
        taken = list(inspect.signature(made).parameters.values())
    except ValueError:
        taken = []
    places = [at for at, one in enumerate(taken) if one.name == "dtype" and one.kind is not one.KEYWORD_ONLY]
    known = (MAKERS | FOLDS).get(name)
    assert places == [] or name in ("finfo", "ndarray") or known in places


def test_a_date_of_today_is_made_by_a_kind_alone() -> None:
    assert np.array("today").dtype.kind == "U"
    assert np.array("today", "M8[D]").dtype.kind == "M"
