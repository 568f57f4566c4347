"""A small repository to judge, made in memory."""

from __future__ import annotations

from guardrails.policy import Policy, parse_policy
from guardrails.tree import Tree

SIGNAL = '''"""A signal."""

from strategy.returns import total_return


def change(first, last):
    """Return the change."""
    return last - first


def ratio(first, last):
    """Return the ratio."""
    return first / last


def gain(before, price):
    """Return the gain."""
    return total_return(price, 0.0, before)
'''
RETURNS = '''"""Returns of a holding."""


def total_return(price, dividend, before):
    """Return the total return."""
    return (price + dividend) / before - 1.0
'''
WINDOW = '''"""The window."""


class Parameters:
    """Hold the parameters."""

    lookback: int


def window(parameters):
    """Return the window."""
    return parameters.lookback
'''
LOCKED = """from strategy.signal import change


def test_change():
    assert change(1.0, 3.0) == 2.0
"""
STANDING = """from strategy.signal import change


def test_standing():
    assert change(2.0, 3.0) == 1.0
"""
POLICY = b"""
schema = 1

[layout]
package = "strategy"
parameters = "strategy.toml"

[phases.logic]
editable = ["src/strategy/**/*.py", "strategy.toml"]
create = ["src/strategy/**/*.py"]

[phases.tests]
editable = ["tests/generated/test_*.py"]
create = ["tests/generated/test_*.py"]

[code]
grants = ["try", "match", "zip without strict"]

[code.imports]
"__future__" = ["*"]
math = ["*"]
dataclasses = ["*"]
typing = ["*"]
enum = ["*"]
functools = ["*"]
numpy = ["*"]

[protected]
functions = ["strategy.returns:total_return"]

[bounds.cadence]
type = "str"
choices = ["daily", "weekly"]

[bounds."parameters.lookback"]
type = "int"
min = 5
max = 252
max_relative_change = 0.5
"""
TABLE = [f"ROW_{at} = {at}" for at in range(60)]


def policy(extra: bytes = b"") -> Policy:
    return parse_policy(POLICY + extra)


def tree() -> Tree:
    files = {
        "src/strategy/__init__.py": '"""The strategy."""\n',
        "src/strategy/returns.py": RETURNS,
        "src/strategy/signal.py": SIGNAL,
        "src/strategy/window.py": WINDOW,
        "src/strategy/table.py": "\n".join(TABLE) + "\n",
        "strategy.toml": 'cadence = "daily"\n[parameters]\nlookback = 20\n',
        "tests/test_signal.py": LOCKED,
        "tests/generated/test_standing.py": STANDING,
        "pyproject.toml": "[project]\nname = 'small'\n",
    }
    return Tree({path: text.encode() for path, text in files.items()})
