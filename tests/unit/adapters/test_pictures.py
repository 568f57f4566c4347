from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from collections.abc import Callable
from datetime import date, timedelta

import numpy as np
import pytest

from oomrl.adapters import pictures
from oomrl.adapters.pictures import Curve, DeploymentMark, Format, LossMark, Span
from oomrl.domain.loss import PARTS
from oomrl.domain.performance import Estimate

DAYS = [date(2003, 1, 1) + timedelta(days=n) for n in range(300)]
RNG = np.random.default_rng(0)
ACCOUNT = Curve("account", DAYS, 1e6 * np.cumprod(1 + RNG.normal(0, 0.01, 300)))
OTHER = Curve("<script>alert(1)</script> $x^2$", DAYS, 1e6 * np.cumprod(1 + RNG.normal(0, 0.01, 300)))
SURE = Estimate(0.5, -0.1, 1.1, "m")
NONE = Estimate(math.nan, math.nan, math.nan, "m")

PICTURES: dict[str, Callable[[Format], bytes]] = {
    "equity": lambda form: pictures.equity(
        [ACCOUNT, OTHER],
        [LossMark(DAYS[50]), LossMark(DAYS[90], shared=True)],
        [DeploymentMark(DAYS[60], "r\x1b2"), DeploymentMark(DAYS[62], "r3", rolled_back=True)],
        [Span(DAYS[0], DAYS[60], "phase 1"), Span(DAYS[60], DAYS[-1], "phase 2")],
        note="simulated",
        form=form,
    ),
    "bare equity": lambda form: pictures.equity([Curve("one day", DAYS[:1], np.ones(1))], form=form),
    "drawdown": lambda form: pictures.drawdown([ACCOUNT, OTHER], note="simulated", form=form),
    "waterfall": lambda form: pictures.waterfall(
        {name: 100.0 * (-1) ** n * n for n, name in enumerate(PARTS)}, form=form
    ),
    "empty waterfall": lambda form: pictures.waterfall({"market": 0.0}, form=form),
    "comparison": lambda form: pictures.comparison(
        ACCOUNT,
        OTHER,
        {"Sharpe ratio": (SURE, NONE), "return a year": (SURE, SURE)},
        percent=("return a year",),
        band=(ACCOUNT.values * 0.9, ACCOUNT.values * 1.1),
        form=form,
    ),
    "friction": lambda form: pictures.friction_by_name({"AAPL": {"spread": 5.0}, "$B": {"impact": 9.0}}, form=form),
    "no friction": lambda form: pictures.friction_by_name({}, form=form),
}


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_are_well_formed_and_inert(name: str) -> None:
    assert PICTURES[name]("png").startswith(b"\x89PNG\r\n\x1a\n")
    root = ET.fromstring(PICTURES[name]("svg"))
    tags = {element.tag.rsplit("}", 1)[-1] for element in root.iter()}
    assert "script" not in tags
    assert "image" not in tags
    links = [value for element in root.iter() for key, value in element.attrib.items() if key.endswith("href")]
    assert all(link.startswith("#") for link in links)


@pytest.mark.parametrize("name", ["equity", "comparison"])
def test_the_same_values_give_the_same_bytes(name: str) -> None:
    for form in ("png", "svg"):
        assert PICTURES[name](form) == PICTURES[name](form)  # type: ignore[arg-type]


def test_curves_of_unequal_length_are_refused() -> None:
    with pytest.raises(ValueError, match="as many days"):
        pictures.equity([Curve("x", DAYS[:3], np.ones(2))])
    with pytest.raises(ValueError, match="at least one curve"):
        pictures.equity([])
