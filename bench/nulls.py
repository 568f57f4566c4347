"""Null models: strategies without skill in the shipped strategy's place, as trees to be judged like any candidate."""

from __future__ import annotations

from bench.market import Tree

PATH = "src/strategy/strategy.py"
CHOSEN = "        chosen = selection.select(scores.total, members, current > 0.0, self.parameters)\n"
MEASURED = "        measured = features.measure(self.history, self.parameters)\n"
RANDOM = (
    "        drawn = np.random.default_rng([{seed}, self.history.count // 63]).random(len(members))\n"
    "        chosen = selection.select(drawn, members, current > 0.0, self.parameters)\n"
)


def nulls(tree: Tree, seed: int) -> dict[str, dict[str, bytes]]:
    """Return by name: always cash, equal weight, the inverted signal, a portfolio drawn anew each quarter."""
    return {
        "always_cash": _edited(tree, MEASURED, '        return {"action": "target", "weights": {}}\n' + MEASURED),
        "equal_weight": _edited(tree, CHOSEN, "        chosen = members\n"),
        "inverted_signal": _edited(tree, "selection.select(scores.total", "selection.select(-scores.total"),
        "random_portfolio": _edited(tree, CHOSEN, RANDOM.format(seed=seed)),
    }


def _edited(tree: Tree, old: str, new: str) -> dict[str, bytes]:
    text = tree[PATH].decode()
    assert text.count(old) == 1, f"Expected {old.strip()!r} once in {PATH}: the shipped strategy changed"
    return {**tree, PATH: text.replace(old, new).encode()}
