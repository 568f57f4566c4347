"""What model code may and may not say."""

from __future__ import annotations

import pytest

from oomrl.arenas.research import references
from oomrl.arenas.research.code_policy import MAX_BYTES, review
from oomrl.arenas.research.probes import CONSTANT, LEAKS

GOOD = """import math
import numpy as np
import pandas as pd
from sklearn.linear_model import ElasticNet
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

WINDOWS = (5, 20)


def build():
    return Pipeline([("scale", StandardScaler()), ("net", ElasticNet(alpha=0.01))])


def features(panel):
    close = panel["close"]
    out = {}
    for window in WINDOWS:
        out[f"mean_{window}"] = close.pct_change(fill_method=None).rolling(window).mean()
    try:
        out["rank"] = panel["a1"].rank(axis=1, pct=True).to_numpy()
    except KeyError:
        out["rank"] = np.log(close)
    return {name: value for name, value in out.items() if math.pi > 3}
"""


def test_ordinary_model_code_passes() -> None:
    assert review(GOOD) == []
    for code in (*LEAKS.values(), CONSTANT, references.noise_model(1).code):
        assert review(code) == []


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("import os", "import"),
        ("import sys, numpy", "import"),
        ("from numpy import *", "import"),
        ("from numpy import ctypeslib", "import"),
        ("import numpy.ctypeslib", "import"),
        ("from sklearn.datasets import fetch_openml", "import"),
        ("from sklearn import datasets", "import"),
        ("from pandas import read_csv", "import"),
        ("from . import secrets", "import"),
        ("STATE = []", "module"),
        ("STATE = {}", "module"),
        ("print(1)", "module"),
        ("class A:\n    pass", "node"),
        ("async def f():\n    pass", "node"),
        ("def f(x=[]):\n    return x", "state"),
        ("@property\ndef f():\n    return 1", "function"),
        ("def f():\n    global STATE\n    return 1", "node"),
        ("def f():\n    with open('x') as g:\n        return g", "node"),
        ("def f():\n    return open('x')", "name"),
        ("def f():\n    return eval('1')", "name"),
        ("def f():\n    return getattr(1, 'a')", "name"),
        ("def f():\n    return __import__('os')", "name"),
        ("def f():\n    return type(1)", "name"),
        ("def f(x):\n    return x.__class__", "attribute"),
        ("def f(x):\n    return x._data", "attribute"),
        ("def f(x):\n    return '{0.a}'.format(x)", "attribute"),
        ("def f(x):\n    return x.f_globals", "attribute"),
        ("def f(x):\n    return x.to_csv('a')", "attribute"),
        ("def f():\n    return np.load('a')", "attribute"),
        ("def f(x):\n    return x.query('a > 1')", "attribute"),
        ("def f(x):\n    x.memory = 1", "state"),
        ("def f():\n    return 'a__class__b'", "text"),
        ("def f():\n    yield 1", "node"),
    ],
)
def test_what_reaches_further_is_refused(line: str, code: str) -> None:
    findings = review(GOOD + "\n\n" + line + "\n")
    assert code in {finding.code for finding in findings}, findings


def test_size_shape_and_bytes() -> None:
    assert review(GOOD + "#" * MAX_BYTES)[0].code == "size"
    assert review("x = 1\n")[0].code == "shape"
    assert review("def build(:\n")[0].code == "syntax"
    assert review(GOOD + "# \u202e\n")[0].code == "text"
    assert review(GOOD + "# a\x00b\n")[0].code == "text"
    assert review("(" * 5000)[0].code == "syntax"
    assert review(GOOD.replace("def features(panel)", "def features(panel, more)"))[0].code == "shape"
