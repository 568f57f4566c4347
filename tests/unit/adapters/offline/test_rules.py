"""Each rule finds the fault it is for, puts it right, and finds nothing in a strategy that keeps its word."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oomrl.adapters.offline import edits, parameters, rules, wiring
from oomrl.adapters.offline.edits import Rule
from oomrl.adapters.repository import read_folder

SHIPPED = read_folder(Path(__file__).parents[4] / "strategy_repo")


def mend(source: str, rule: Rule, fields: frozenset[str] = frozenset()) -> str:
    changes, _ = edits.repaired({"src/strategy/x.py": source.encode()}, fields, rule)
    return changes.get("src/strategy/x.py", source.encode()).decode()


EVERY = (*rules.ALL, ("steps", wiring.dropped_steps), ("settings", wiring.literal_settings))


@pytest.mark.parametrize(("name", "rule"), EVERY)
def test_the_shipped_strategy_keeps_its_word(name: str, rule: Rule) -> None:
    values = parameters.read(SHIPPED["strategy.toml"].decode())
    fields = frozenset(key.removeprefix("parameters.") for key in values if key.startswith("parameters."))
    assert fields
    assert edits.repaired(SHIPPED, fields, rule) == ({}, []), name


@pytest.mark.parametrize(
    ("rule", "good", "faulty"),
    [
        (rules.factor_signs, "s = r.rank(f.momentum, m)\n", "s = r.rank(-f.momentum, m)\n"),
        (rules.factor_signs, "s = rank(-f.volatility)\n", "s = rank(f.volatility)\n"),
        (rules.factor_signs, "s = rank(-recent_return(h))\n", "s = rank(recent_return(h))\n"),
        (
            rules.best_first,
            'def pick(x):\n    """Return the best names first."""\n    return np.argsort(-x[i], kind="stable")\n',
            'def pick(x):\n    """Return the best names first."""\n    return np.argsort(x[i], kind="stable")\n',
        ),
        (
            rules.bound_directions,
            "m = f.open & (f.close >= p.min_price) & (f.gap <= p.max_gap)\n",
            "m = f.open & (f.close < p.min_price) & (f.gap > p.max_gap)\n",
        ),
        (rules.inverse_volatility, "w = volatility ** (-power)\n", "w = volatility ** power\n"),
        (
            rules.paired_weights,
            "def f(p):\n    return c((momentum, reversal), (p.momentum_weight, p.reversal_weight))\n",
            "def f(p):\n    return c((momentum, reversal), (p.reversal_weight, p.momentum_weight))\n",
        ),
        (
            rules.unread_arguments,
            "def f(h, window, skip):\n    return g(h.before(skip), h.before(window))\n",
            "def f(h, window, skip):\n    return g(h.before(0), h.before(window))\n",
        ),
        (
            rules.unread_arguments,
            "def capped(w, caps):\n    return np.minimum(w, caps)\n",
            "def capped(w, caps):\n    return w\n",
        ),
        (
            rules.named_statistics,
            "def median_dollars(h):\n    return np.median(h.d, axis=0)\n",
            "def median_dollars(h):\n    return np.max(h.d, axis=0)\n",
        ),
        (rules.bare_numbers, "def f(x):\n    return x\n", "def f(x):\n    return x * 1.37\n"),
        (rules.bare_numbers, "def f(h, n):\n    return h.before(n)\n", "def f(h, n):\n    return h.before(n + 17)\n"),
    ],
)
def test_a_rule_puts_its_fault_right(rule: Rule, good: str, faulty: str) -> None:
    assert mend(faulty, rule) == good
    assert mend(good, rule) == good


def test_a_parameter_that_nothing_reads_takes_the_place_of_its_literal() -> None:
    faulty = 'def places(n, parameters):\n    """Return n within max_holdings."""\n    return min(n, 60)\n'
    assert mend(faulty, rules.unread_parameters, frozenset({"max_holdings"})) == faulty.replace(
        "60", "parameters.max_holdings"
    )
    good = faulty.replace("60", "parameters.max_holdings")
    assert mend(good, rules.unread_parameters, frozenset({"max_holdings"})) == good


@pytest.mark.parametrize(
    "honest",
    [
        "def f(x):\n    return x * 2 / 100 + 252 - 0.5\n",
        'def f(x):\n    """Return x times 1.37."""\n    return x * 1.37\n',
        "FLOOR = 0.002\n",
        "s = rank(value)\n",
        "def order(x):\n    return np.argsort(x)\n",
        "def f(a, b):\n    return g(1, 2)\n",
        "def check(p):\n    if p.min_price > p.max_price:\n        raise ValueError\n",
        "m = mask & (x.close <= other)\n",
    ],
)
def test_honest_code_is_left_alone(honest: str) -> None:
    for _, rule in EVERY:
        assert mend(honest, rule) == honest


def test_code_that_does_not_parse_is_left_alone() -> None:
    tree = {"src/a.py": b"def f(:\n", "src/b.py": b"\xff", "tests/t.py": b"s = rank(-f.momentum)\n"}
    for _, rule in EVERY:
        assert edits.repaired(tree, frozenset(), rule) == ({}, [])


_NAMES = st.sampled_from(["momentum", "volatility", "x", "caps", "p.min_price", "f.close", "3", "1.5", "power"])
_EXPRESSIONS = st.recursive(
    _NAMES,
    lambda inner: st.one_of(
        st.builds("({} {} {})".format, inner, st.sampled_from(["+", "*", "**", "&", "<", ">="]), inner),
        st.builds("rank({}, {})".format, inner, inner),
        st.builds("np.argsort(-{})".format, inner),
        st.builds("np.max({})".format, inner),
    ),
    max_leaves=12,
)


@given(_EXPRESSIONS, _EXPRESSIONS)
def test_whatever_a_rule_writes_is_python(one: str, other: str) -> None:
    head = 'def median_best(momentum, caps):\n    """Return the best, \u00e9t\u00e9."""\n'
    source = f"{head}    a = {one}\n    return {other}\n"
    for _, rule in EVERY:
        ast.parse(mend(source, rule, frozenset({"min_price", "max_best"})))


def test_a_literal_under_a_setting_s_name_becomes_the_setting() -> None:
    faulty = 'def plan(parameters):\n    return {"max_share": 1.0, "sessions": 1, "limit": None}\n'
    good = faulty.replace("1.0", "parameters.max_share")
    fields = frozenset({"max_share", "max_sessions"})
    assert mend(faulty, wiring.literal_settings, fields) == good
    assert mend(good, wiring.literal_settings, fields) == good


STEPS = b"""
def band(ideal, current, size):
    return ideal


def room(features: Features, parameters: Parameters):
    return 1


def within(target, current, space):
    return target


def position_caps(features: Features, parameters: Parameters):
    return 1
"""
DECIDE = """from strategy import steps


class Strategy:
    def wanted(self, measured: Features, current):
        caps = f(self.parameters.a)
        ideal = g(caps)
        return h(ideal)
"""


def test_steps_that_nothing_calls_are_called_again() -> None:
    tree = {"src/strategy/steps.py": STEPS, "src/strategy/x.py": DECIDE.encode()}
    changes, reasons = edits.repaired(tree, frozenset({"no_trade_size", "a"}), wiring.dropped_steps)
    mended = changes["src/strategy/x.py"].decode()
    assert "caps = np.minimum(f(self.parameters.a), steps.position_caps(measured, self.parameters))\n" in mended
    assert (
        "return h(steps.within(steps.band(ideal, current, self.parameters.no_trade_size), current, "
        "steps.room(measured, self.parameters)))\n"
    ) in mended
    assert len(reasons) == 2
    tree["src/strategy/x.py"] = mended.encode()
    assert edits.repaired(tree, frozenset({"no_trade_size", "a"}), wiring.dropped_steps) == ({}, [])


def test_a_step_whose_needs_are_not_at_hand_stays_out() -> None:
    tree = {
        "src/strategy/steps.py": b"def band(ideal, current, secret):\n    return ideal\n",
        "src/strategy/x.py": DECIDE.encode(),
    }
    assert edits.repaired(tree, frozenset(), wiring.dropped_steps) == ({}, [])
