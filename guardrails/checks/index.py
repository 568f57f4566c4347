"""What a tree of modules defines: read by `ast` from bytes, never imported."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from guardrails.checks.codes import finding
from guardrails.policy import Limits, Policy
from guardrails.tree import Tree
from guardrails.verdict import Finding

Function = ast.FunctionDef | ast.AsyncFunctionDef
Scope = Function | ast.Lambda | ast.ClassDef | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass(frozen=True)
class Module:
    """One parsed file.

    `bound` maps each module-level name to every statement that binds it; `classes`, their `methods` and all their
    `attributes` are those of the whole file.
    """

    name: str
    path: str
    tree: ast.Module
    bound: dict[str, list[ast.stmt]]
    attributes: frozenset[str]
    methods: frozenset[str]
    classes: frozenset[str]

    def defines(self, name: str) -> bool:
        """Say whether the module itself makes this name (an import of somebody else's does not)."""
        return any(not isinstance(node, (ast.Import, ast.ImportFrom)) for node in self.bound.get(name, ()))


@dataclass
class Index:
    """The importable package: its modules, and every attribute that its classes define.

    `support` are locked modules beside the tests that generated tests may import from.
    """

    package: str
    modules: dict[str, Module] = field(default_factory=dict)
    attributes: set[str] = field(default_factory=set)
    methods: set[str] = field(default_factory=set)
    classes: set[str] = field(default_factory=set)
    support: tuple[Module, ...] = ()

    def add(self, module: Module) -> None:
        """Take in one module."""
        self.modules[module.name] = module
        self.attributes |= module.attributes
        self.methods |= module.methods
        self.classes |= module.classes


def is_self(node: ast.AST) -> bool:
    """Say whether an expression is the name `self`."""
    return isinstance(node, ast.Name) and node.id == "self"


def module_name(path: str, source: str) -> str:
    """Return the dotted name of a file below the source folder."""
    parts = path.removeprefix(source.rstrip("/") + "/").removesuffix(".py").split("/")
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@lru_cache(maxsize=512)
def parse_module(path: str, data: bytes, limits: Limits, name: str = "") -> Module | Finding:
    """Parse bytes into a module, or say why they cannot be judged. Trees are shared: nobody changes them."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(data, filename=path)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return finding("GR200", path, getattr(error, "lineno", 0) or 0, f"{type(error).__name__}")
    attributes, methods, classes = set[str](), set[str](), set[str]()
    count, stack = 0, [(tree, 0)]  # type: tuple[int, list[tuple[ast.AST, int]]]
    while stack:
        node, depth = stack.pop()
        count += 1
        if depth > limits.syntax_depth or count > limits.syntax_nodes:
            expected = f"at most {limits.syntax_nodes} nodes, {limits.syntax_depth} deep"
            return finding("GR201", path, getattr(node, "lineno", 0), "more", expected)
        stack += [(child, depth + 1) for child in ast.iter_child_nodes(node)]
        if isinstance(node, ast.ClassDef):
            classes.add(node.name)
            attributes.update(*map(bound_names, node.body))
            methods |= {part.name for part in node.body if isinstance(part, ast.FunctionDef)}
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and is_self(node.value):
            attributes.add(node.attr)
    bound: dict[str, list[ast.stmt]] = {}
    for statement in tree.body:
        for item in sorted(bound_names(statement)):
            bound.setdefault(item, []).append(statement)
    return Module(name, path, tree, bound, frozenset(attributes), frozenset(methods), frozenset(classes))


def build_index(tree: Tree, policy: Policy) -> tuple[Index, list[Finding]]:
    """Parse every module of the package; the findings are those of files that cannot be read."""
    index, findings = Index(policy.layout.package), []
    for path, data in tree.under(policy.package_folder).items():
        if path.endswith(".py"):
            module = parse_module(path, data, policy.limits, module_name(path, policy.layout.source))
            if isinstance(module, Finding):
                findings.append(module)
            else:
                index.add(module)
    return index, findings


def assigned(node: ast.stmt, name: str) -> ast.expr | None:
    """Return what a statement gives this very name, or none where it gives several or something else."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    single = [target.id for target in targets if isinstance(target, ast.Name)] == [name] and len(targets) == 1
    return getattr(node, "value", None) if single else None


def bound_names(node: ast.AST) -> set[str]:
    """Return the names that a statement, or the body of a function, binds in its own scope."""
    names: set[str] = set()
    for item in own_scope(node):
        if isinstance(item, ast.Name) and isinstance(item.ctx, (ast.Store, ast.Del)):
            names.add(item.id)
        elif isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(item.name)
        elif isinstance(item, (ast.Import, ast.ImportFrom)):
            names |= {(alias.asname or alias.name).split(".")[0] for alias in item.names}
        elif isinstance(item, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and item.name:
            names.add(item.name)
        elif isinstance(item, ast.MatchMapping) and item.rest:
            names.add(item.rest)
    return names


def own_scope(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and what runs in its own scope; of nested scopes only what they leave behind."""
    stack = [node]
    while stack:
        item = stack.pop()
        yield item
        if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef)):
            stack += item.decorator_list + item.args.defaults + [d for d in item.args.kw_defaults if d]
        elif isinstance(item, ast.ClassDef):
            stack += item.decorator_list + item.bases + list(item.keywords)
        elif isinstance(item, ast.Lambda):
            stack += item.args.defaults
        elif isinstance(item, COMPREHENSIONS):
            # Only a walrus binds outside; its target is found below without the comprehension's own.
            stack += [sub.target for sub in ast.walk(item) if isinstance(sub, ast.NamedExpr)]
        else:
            stack += ast.iter_child_nodes(item)


def parameters(arguments: ast.arguments) -> list[str]:
    """Return all parameter names, in order."""
    rest = [item for item in (arguments.vararg, arguments.kwarg) if item]
    return [item.arg for item in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *rest]]
