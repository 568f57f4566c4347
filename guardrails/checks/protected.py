"""Protected functions: compared by syntax tree, with everything of the package that their names lead to."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator

from guardrails.checks.codes import finding
from guardrails.checks.index import Index, Module
from guardrails.policy import Policy
from guardrails.verdict import Finding

Place = tuple[str, str]


def judge_protected(base: Index, result: Index, policy: Policy) -> list[Finding]:
    """Refuse a protected function that changed, vanished, moved, or has a namesake to stand in for it."""
    findings: list[Finding] = []
    for name in policy.protected.functions:
        module, _, qualified = name.partition(":")
        before, after = closure_digest(base, module, qualified), closure_digest(result, module, qualified)
        place = result.modules.get(module) or base.modules.get(module)
        path = place.path if place else ""
        if before is None or after is None:
            findings.append(finding("GR301", path, 0, "absent", f"{name} to be defined"))
        elif before != after:
            line = _line(result.modules[module], qualified)
            findings.append(finding("GR301", path, line, "changed", f"{name} and all that it uses to stay"))
        findings += _namesakes(base, result, module, qualified)
    return findings


def closure_digest(index: Index, module: str, qualified: str) -> str | None:
    """Return a digest of a function and of what it uses within the package; None where it is not defined.

    Docstrings, comments, format and positions do not count. A second binding of any name on the way does.
    """
    source = index.modules.get(module)
    first, _, rest = qualified.partition(".")
    if source is None or not source.defines(first):
        return None
    parts: dict[Place, str] = {}
    waiting = [(module, first)]
    if rest:
        method = _method(source, first, rest)
        if method is None:
            return None
        parts[module, qualified] = method[1]
        waiting = [(module, item) for item in sorted(_loads(method[0]) & set(source.bound))]
    while waiting:
        place = waiting.pop()
        if place in parts or place[0] not in index.modules:
            continue
        owner = index.modules[place[0]]
        statements = owner.bound.get(place[1], [])
        parts[place] = "|".join(_binding(node, place[1]) for node in statements)
        for node in statements:
            waiting += list(_leads(index, owner, node, place[1]))
    text = "\n".join(f"{place}={parts[place]}" for place in sorted(parts))
    return hashlib.sha256(text.encode()).hexdigest()


def normalised(node: object) -> str:
    """Return a syntax tree as text, without docstrings, positions and the spelling of literals."""
    if isinstance(node, list):
        return f"[{','.join(map(normalised, node))}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    parts = []
    for name, value in ast.iter_fields(node):
        documented = isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Module)) and name == "body"
        if documented and ast.get_docstring(node, clean=False) is not None:  # type: ignore[arg-type]
            value = value[1:]
        if name not in ("kind", "type_comment"):
            parts.append(normalised(value))
    return f"{type(node).__name__}({','.join(parts)})"


def _method(source: Module, owner: str, rest: str) -> tuple[ast.AST, str] | None:
    found = [node for node in source.bound[owner] if isinstance(node, ast.ClassDef)]
    methods = [node for item in found for node in item.body if isinstance(node, ast.FunctionDef) and node.name == rest]
    if len(found) != 1 or len(methods) != 1:
        return None
    header = [ast.dump(item) for item in [*found[0].bases, *found[0].decorator_list, *found[0].keywords]]
    return methods[0], f"{header}{normalised(methods[0])}"


def _binding(node: ast.stmt, name: str) -> str:
    if isinstance(node, ast.ImportFrom):
        return f"from {node.level} {node.module} {[a.name for a in node.names if (a.asname or a.name) == name]}"
    if isinstance(node, ast.Import):
        return f"import {[a.name for a in node.names if (a.asname or a.name).split('.')[0] == name]}"
    return normalised(node)


def _loads(node: ast.AST) -> set[str]:
    return {item.id for item in ast.walk(node) if isinstance(item, ast.Name)}


def _leads(index: Index, owner: Module, node: ast.stmt, name: str) -> Iterator[Place]:
    if isinstance(node, ast.ImportFrom):
        parts = owner.name.split(".")[: None if owner.path.endswith("/__init__.py") else -1]
        base = node.module or ""
        if node.level:
            base = ".".join([*parts[: len(parts) - node.level + 1], *([node.module] if node.module else [])])
        for alias in node.names:
            if (alias.asname or alias.name) == name:
                yield base, alias.name
        return
    for item in _loads(node) & set(owner.bound):
        yield owner.name, item
    for part in ast.walk(node):
        if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name):
            for source in owner.bound.get(part.value.id, ()):
                if isinstance(source, ast.ImportFrom):
                    for module, imported in _leads(index, owner, source, part.value.id):
                        yield f"{module}.{imported}", part.attr


def _line(module: Module, qualified: str) -> int:
    return next((node.lineno for node in module.bound.get(qualified.split(".")[0], ())), 0)


def _namesakes(base: Index, result: Index, module: str, qualified: str) -> Iterator[Finding]:
    """Find new definitions of the same name elsewhere, and imports under that name of something else."""
    for other in result.modules.values():
        before = base.modules.get(other.name)
        if other.name == module or "." in qualified or (before and before.defines(qualified)):
            continue
        for node in other.bound.get(qualified, ()):
            leads = list(_leads(result, other, node, qualified)) if isinstance(node, ast.ImportFrom) else []
            if leads != [(module, qualified)]:
                expected = f"one {qualified!r}, the protected one of {module}"
                yield finding("GR302", other.path, node.lineno, "another", expected)
