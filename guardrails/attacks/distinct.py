"""Find attacks that are the same but for their constants.

python -m guardrails.attacks.distinct CORPUS --repo strategy_repo
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import re
import sys
import tempfile
from pathlib import Path

from guardrails.attacks import Attack, read_corpus
from guardrails.attacks.naive import applied


class _Erase(ast.NodeTransformer):
    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        return ast.copy_location(ast.Constant(type(node.value).__name__), node)


def signature(attack: Attack, repo: Path) -> str:
    """Return a digest of all files that an attack changes: syntax trees with constants erased, other files as they are.

    Attacks on the patch format (class J) are their patches, numbers erased.
    """
    if attack.kind == "J":
        return re.sub(rb"\d+", b"0", attack.patch).hex()
    with tempfile.TemporaryDirectory(prefix="distinct-") as folder:
        place = Path(folder, "tree")
        if not applied(repo, attack, place):
            return hashlib.sha256(attack.patch).hexdigest()
        parts = []
        names = {path.relative_to(root) for root in (repo, place) for path in root.rglob("*") if not path.is_dir()}
        for name in sorted(names):
            before, after = repo / name, place / name
            kept = name.parts[0] == ".git" and "hooks" not in name.parts
            if kept or "__pycache__" in name.parts and before.is_file() or ".sample" in name.name:
                continue
            one, two = (_read(path) for path in (before, after))
            if one != two:
                parts.append(f"{name}:{_form(name, two)}")
    return hashlib.sha256("\n".join(parts).encode("utf-8", "surrogateescape")).hexdigest()


def _read(path: Path) -> tuple[str, bytes]:
    if path.is_symlink():
        return "link", str(path.readlink()).encode()
    return (f"{path.stat().st_mode & 0o111:o}", path.read_bytes()) if path.is_file() else ("none", b"")


def _form(name: Path, found: tuple[str, bytes]) -> str:
    mode, data = found
    if name.suffix == ".py" and data:
        try:
            return mode + ast.dump(_Erase().visit(ast.parse(data)))
        except (SyntaxError, ValueError, RecursionError):
            pass
    return mode + hashlib.sha256(data).hexdigest()


def main() -> int:
    """Print groups of attacks that are not distinct."""
    parser = argparse.ArgumentParser("python -m guardrails.attacks.distinct", description=__doc__)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--repo", type=Path, required=True)
    options = parser.parse_args()
    groups: dict[str, list[str]] = {}
    for attack in read_corpus(options.corpus):
        groups.setdefault(signature(attack, options.repo), []).append(f"{attack.corpus}/{attack.id}")
    same = [names for names in groups.values() if len(names) > 1]
    sys.stdout.write(f"{len(groups)} distinct\n" + "".join(f"the same: {', '.join(names)}\n" for names in same))
    return 1 if same else 0


if __name__ == "__main__":
    sys.exit(main())
