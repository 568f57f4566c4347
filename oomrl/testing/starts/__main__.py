"""Measure which of the strategy's tests notice each kind of fault, and write noticed_by.toml.

A maintainer's tool, needed after the strategy or its tests have changed: `python -m oomrl.testing.starts [KIND ...]`.
It takes some ten minutes for all kinds.
"""

from __future__ import annotations

import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Collection
from pathlib import Path

from oomrl.testing.starts.generator import KINDS, NOTICED_BY, draw
from oomrl.testing.starts.suite import failed_tests
from oomrl.testing.starts.tree import changed, read_tree, shipped_repository

#: Seeds that are looked through for draws of every site of a kind, and the draws that are tried at each.
SEEDS = range(1_000_000, 1_000_040)
DRAWS = 2


def main(kinds: Collection[str]) -> None:
    """Plant faults of these kinds at every site and note every test that failed at least once."""
    table: dict[str, dict[str, list[str]]] = {}
    if NOTICED_BY.is_file():
        table = {kind: sites for kind, sites in tomllib.loads(NOTICED_BY.read_text("utf-8")).items() if kind in KINDS}
    tree = read_tree(shipped_repository())
    for kind in kinds:
        noticed: dict[str, set[str]] = {}
        times: Counter[str] = Counter()
        for seed in SEEDS:
            _, fault = draw(seed, kind)
            times[fault.site] += 1
            if times[fault.site] <= DRAWS:
                with tempfile.TemporaryDirectory() as folder:
                    failed = failed_tests(changed(tree, fault.changes), Path(folder))
                noticed.setdefault(fault.site, set()).update(failed)
        table[kind] = {site: sorted(tests) for site, tests in noticed.items()}
        write(table)


def write(table: dict[str, dict[str, list[str]]]) -> None:
    """Write the whole table, sorted."""
    lines = ["# Which tests notice which fault. Written by `python -m oomrl.testing.starts`; do not edit.\n"]
    for kind, sites in sorted(table.items()):
        lines.append(f"\n[{kind}]\n")
        for site, tests in sorted(sites.items()):
            lines.append(f'"{site}" = [\n' + "".join(f'    "{test}",\n' for test in tests) + "]\n")
    NOTICED_BY.write_text("".join(lines), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:] or KINDS)
