"""Measure which of the strategy's tests notice each kind of fault, and write noticed_by.toml.

A maintainer's tool, needed after the strategy or its tests have changed: `python -m oomrl.testing.starts [SEEDS]`.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from oomrl.testing.starts.generator import KINDS, NOTICED_BY, draw
from oomrl.testing.starts.suite import failed_tests
from oomrl.testing.starts.tree import changed, read_tree, shipped_repository


def main(seeds: int) -> None:
    """Plant `seeds` faults of each kind and note every test that failed at least once, by kind and site."""
    tree = read_tree(shipped_repository())
    lines = ["# Which tests notice which fault. Written by `python -m oomrl.testing.starts`; do not edit.\n"]
    for kind in KINDS:
        noticed: dict[str, set[str]] = {}
        for seed in range(seeds):
            _, fault = draw(seed, kind)
            with tempfile.TemporaryDirectory() as folder:
                failed = failed_tests(changed(tree, fault.changes), Path(folder))
            noticed.setdefault(fault.site, set()).update(failed)
        lines.append(f"\n[{kind}]\n")
        for site, tests in sorted(noticed.items()):
            lines.append(f'"{site}" = [\n' + "".join(f'    "{test}",\n' for test in sorted(tests)) + "]\n")
        NOTICED_BY.write_text("".join(lines), "utf-8")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 6)
