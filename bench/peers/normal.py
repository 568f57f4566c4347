"""The form of a function in which mutants of different tools are compared: its syntax tree, without a docstring."""

from __future__ import annotations

import ast


def normal_form(source: str, function: str, name: str | None = None) -> str:
    """Return the form of a function at the top of a module, or of what stands there under another `name`.

    Raises:
        LookupError: no such function stands there.
    """
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef) and node.name == (name or function):
            node.name = function
            if ast.get_docstring(node) is not None:
                node.body = node.body[1:] or [ast.Pass()]
            return ast.dump(ast.parse(ast.unparse(node)))
    raise LookupError(f"Expected a function {name or function}, was none.")
