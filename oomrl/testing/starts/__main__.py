"""Measure which of the strategy's tests notice each kind of fault, and write noticed_by.toml.

A maintainer's tool, needed after the strategy or its tests have changed: `python -m oomrl.testing.starts [DRAWS]`.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from pathlib import Path

from oomrl.testing.starts.generator import KINDS, NOTICED_BY, draw
from oomrl.testing.starts.suite import failed_tests
from oomrl.testing.starts.tree import changed, read_tree, shipped_repository

#: Seeds that are looked through for draws of every site of a kind.
SEEDS = range(1_000_000, 1_000_060)


def main(draws: int) -> None:
    """Plant up to `draws` faults at each site and note every test that failed at least once."""
    tree = read_tree(shipped_repository())
    lines = ["# Which tests notice which fault. Written by `python -m oomrl.testing.starts`; do not edit.\n"]
    for kind in KINDS:
        noticed: dict[str, set[str]] = {}
        times: Counter[str] = Counter()
        for seed in SEEDS:
            _, fault = draw(seed, kind)
            times[fault.site] += 1
            if times[fault.site] > draws:
                continue
            with tempfile.TemporaryDirectory() as folder:
                failed = failed_tests(changed(tree, fault.changes), Path(folder))
            noticed.setdefault(fault.site, set()).update(failed)
        lines.append(f"\n[{kind}]\n")
        for site, tests in sorted(noticed.items()):
            lines.append(f'"{site}" = [\n' + "".join(f'    "{test}",\n' for test in sorted(tests)) + "]\n")
        NOTICED_BY.write_text("".join(lines), "utf-8")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
