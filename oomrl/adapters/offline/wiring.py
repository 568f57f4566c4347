"""Rules about what is there and not used: settings that a literal stands for, steps that nothing calls.

A function that is defined, documented and never called is a step that somebody took out. Where all that it needs is at
hand under the names of its own arguments, it is put back: a filter of weights round the weights, a cap on the caps.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from oomrl.adapters.offline.edits import Edit, Module, name_of, replace

#: Names under which a strategy passes on the weights that it wants.
WEIGHTS = ("ideal", "target", "wanted", "weights", "wished")


def literal_settings(module: Module, _all: Mapping[str, Module]) -> Iterator[Edit]:
    """Read a setting where a dictionary gives a number under the setting's own name."""
    for function in module.functions():
        holder = _holder(function, module)
        if not holder:
            continue
        for node in ast.walk(function):
            if not isinstance(node, ast.Dict):
                continue
            for key, value in zip(node.keys, node.values, strict=True):
                if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
                    continue
                plain = isinstance(value, ast.Constant) and type(value.value) in (int, float)
                if plain and key.value in module.fields:
                    yield replace(value, f"{holder}.{key.value}", f"a number stands where {key.value} is meant")


def dropped_steps(module: Module, everything: Mapping[str, Module]) -> Iterator[Edit]:
    """Call again what nothing calls: caps on the caps, filters on the weights."""
    idle = _idle(everything)
    if not idle:
        return
    for function in module.functions():
        scene = _Scene(function, module, idle)
        yield from scene.caps()
        yield from scene.filters()


@dataclass(frozen=True, slots=True)
class _Idle:
    """A function that nothing calls: where it is, and what it takes."""

    module: str
    node: ast.FunctionDef

    @property
    def arguments(self) -> list[ast.arg]:
        return self.node.args.args


class _Scene:
    """One function of the strategy as a place where idle steps could be called."""

    def __init__(self, function: ast.FunctionDef, module: Module, idle: list[_Idle]) -> None:
        self.function = function
        self.module = module
        imported = {
            alias.asname or alias.name
            for node in module.tree.body
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        self.idle = [step for step in idle if step.module in imported]
        self.assigned = {
            target.id: node
            for node in ast.walk(function)
            if isinstance(node, ast.Assign) and len(node.targets) == 1
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        self.known = set(self.assigned) | {one.arg for one in function.args.args}
        self.holder = _holder(function, module)

    def caps(self) -> Iterator[Edit]:
        """Lower `caps` to what an idle function named ..._caps allows."""
        if "caps" not in self.assigned:
            return
        for step in self.idle:
            call = self.call(step, 0, "")
            if step.node.name.endswith("_caps") and call:
                value = self.assigned["caps"].value
                why = f"{step.module}.{step.node.name} is called by nothing"
                yield replace(value, f"np.minimum({self.module.text(value)}, {call})", why)

    def filters(self) -> Iterator[Edit]:
        """Wrap the last use of the wanted weights in the idle functions that take them and the current ones."""
        weights = next((name for name in WEIGHTS if name in self.assigned), "")
        if not weights or "current" not in self.known:
            return
        after = self.assigned[weights].lineno
        uses = [
            node
            for node in ast.walk(self.function)
            if isinstance(node, ast.Name)
            and node.id == weights
            and isinstance(node.ctx, ast.Load)
            and node.lineno > after
        ]
        if not uses:
            return
        made, used = weights, []
        for step in sorted(self.idle, key=lambda one: [a.arg for a in one.arguments][0:1] != [weights]):
            takes = [one.arg for one in step.arguments]
            if len(takes) > 1 and takes[0] in WEIGHTS and takes[1] == "current":
                call = self.call(step, 1, made)
                if call:
                    made = call
                    used.append(f"{step.module}.{step.node.name}")
        if used:
            last = max(uses, key=lambda node: (node.lineno, node.col_offset))
            yield replace(last, made, f"{' and '.join(used)} called by nothing")

    def call(self, step: _Idle, given: int, first: str) -> str:
        """Return a call of an idle function with what is at hand, empty where something is missing."""
        found = [first] if given else []
        for argument in step.arguments[given:]:
            value = self.value(argument, step)
            if not value:
                return ""
            found.append(value)
        return f"{step.module}.{step.node.name}({', '.join(found)})"

    def value(self, argument: ast.arg, step: _Idle) -> str:
        """Return what to pass: the same name, the one of that type, the setting so named, or an idle step's result."""
        if argument.arg in self.known:
            return argument.arg
        kind = name_of(argument.annotation) if argument.annotation else ""
        if kind == "Parameters" and self.holder:
            return self.holder
        typed = [one.arg for one in self.function.args.args if one.annotation and name_of(one.annotation) == kind]
        if kind not in ("", "ndarray", "float", "int", "bool") and len(typed) == 1:
            return typed[0]
        fields = [field for field in sorted(self.module.fields) if field.endswith(f"_{argument.arg}")]
        if len(fields) == 1 and self.holder:
            return f"{self.holder}.{fields[0]}"
        makers = [
            one
            for one in self.idle
            if one.module == step.module and one.node is not step.node and not one.node.name.endswith("_caps")
        ]
        calls = [self.call(one, 0, "") for one in makers if not any(a.arg in WEIGHTS for a in one.arguments)]
        return calls[0] if len(calls) == 1 else ""


def _idle(everything: Mapping[str, Module]) -> list[_Idle]:
    """Return the functions of modules, not methods, that no code names."""
    named = {
        name
        for one in everything.values()
        for node in ast.walk(one.tree)
        if isinstance(node, ast.Name | ast.Attribute)
        for name in [name_of(node)]
    }
    return [
        _Idle(PurePosixPath(path).stem, node)
        for path, one in sorted(everything.items())
        for node in one.tree.body
        if isinstance(node, ast.FunctionDef) and node.name not in named and not node.name.startswith("_")
    ]


def _holder(function: ast.FunctionDef, module: Module) -> str:
    """Return how a function reaches the settings."""
    own = next((one.arg for one in function.args.args if one.arg in ("parameters", "params")), "")
    is_method = bool(function.args.args) and function.args.args[0].arg == "self"
    return own or ("self.parameters" if is_method and "self.parameters" in module.source else "")
