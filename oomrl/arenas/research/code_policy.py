"""What model code may say, judged from its bytes before anything runs it.

An allow-list over the syntax tree. It is the first layer, never the only one: whatever passes still runs in
the sandbox alone, and what it answers is untrusted.
"""

from __future__ import annotations

import ast
import builtins
from dataclasses import dataclass

MAX_BYTES = 20_000
MODULES = ("math", "statistics", "numpy", "pandas", "sklearn")
_CLOSED_MODULES = ("sklearn.datasets", "sklearn.externals", "sklearn.utils", "numpy.ctypeslib", "numpy.f2py")
_OPEN_SUBMODULES = {
    "numpy": ("linalg", "fft", "polynomial"),
    "pandas": (),
    "sklearn": (
        "linear_model",
        "pipeline",
        "preprocessing",
        "decomposition",
        "impute",
        "kernel_approximation",
        "feature_selection",
        "compose",
        "cluster",
    ),
}
BUILTINS = frozenset(
    [
        "abs",
        "all",
        "any",
        "bool",
        "dict",
        "divmod",
        "enumerate",
        "filter",
        "float",
        "frozenset",
        "int",
        "isinstance",
        "len",
        "list",
        "map",
        "max",
        "min",
        "print",
        "range",
        "reversed",
        "round",
        "set",
        "slice",
        "sorted",
        "str",
        "sum",
        "tuple",
        "zip",
        "True",
        "False",
        "None",
        "ValueError",
        "TypeError",
        "KeyError",
        "IndexError",
        "ZeroDivisionError",
        "ArithmeticError",
    ]
)
_CLOSED_ATTRIBUTES = frozenset(
    [
        "format",
        "format_map",
        "eval",
        "query",
        "load",
        "loads",
        "save",
        "savez",
        "savez_compressed",
        "savetxt",
        "loadtxt",
        "genfromtxt",
        "fromfile",
        "tofile",
        "memmap",
        "DataSource",
        "ctypeslib",
        "ctypes",
        "f2py",
        "testing",
        "test",
        "os",
        "sys",
        "io",
        "lib",
        "core",
        "compat",
        "util",
        "api",
        "errors",
        "fromregex",
        "open_memmap",
        "pipe",
        "base",
        "data",
        "plotting",
        "style",
        "flags",
        "setflags",
        "tobytes",
        "dump",
        "dumps",
        "frompyfunc",
        "vectorize",
        "apply_along_axis",
        "fetch_openml",
        "option_context",
        "set_option",
        "get_option",
        "HDFStore",
        "ExcelFile",
        "ExcelWriter",
        "set_output",
        "register_cython",
        "seterrcall",
        "seterr",
        "setbufsize",
        "set_printoptions",
        "clear_cache",
    ]
)
_CLOSED_FRAMES = frozenset(
    ["f_back", "f_builtins", "f_code", "f_globals", "f_locals", "gi_frame", "cr_frame", "tb_frame", "tb_next"]
)
_CLOSED_PREFIXES = ("_", "read_", "to_", "fetch_", "load_", "co_")
_OPEN_PREFIXED = frozenset(("to_numpy", "to_list", "to_dict", "to_frame", "to_datetime", "to_series"))
_NODES = (
    ast.Module, ast.Import, ast.ImportFrom, ast.alias, ast.FunctionDef, ast.arguments, ast.arg, ast.Return,
    ast.Assign, ast.AnnAssign, ast.AugAssign, ast.For, ast.While, ast.If, ast.IfExp, ast.Break, ast.Continue,
    ast.Pass, ast.Expr, ast.Raise, ast.Try, ast.ExceptHandler, ast.Assert, ast.Delete, ast.BoolOp, ast.BinOp,
    ast.UnaryOp, ast.Lambda, ast.Dict, ast.Set, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp,
    ast.comprehension, ast.Compare, ast.Call, ast.keyword, ast.JoinedStr, ast.FormattedValue, ast.Constant,
    ast.Attribute, ast.Subscript, ast.Slice, ast.Starred, ast.Name, ast.List, ast.Tuple, ast.expr_context,
    ast.boolop, ast.operator, ast.unaryop, ast.cmpop,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Finding:
    """Say what model code may not do, on which line and what to write instead."""

    code: str
    line: int
    message: str


def review(source: str) -> list[Finding]:
    """Return all findings on model code; an empty list lets it into the sandbox."""
    raw = source.encode("utf-8", "replace")
    if len(raw) > MAX_BYTES:
        return [Finding("size", 0, f"Expected at most {MAX_BYTES} bytes, was {len(raw)}")]
    if not source.isascii() or any(ord(c) < 32 and c not in "\n\t" for c in source):
        return [Finding("text", 0, "Expected plain ASCII text with newlines and tabs")]
    try:
        tree = ast.parse(raw)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return [Finding("syntax", getattr(error, "lineno", 0) or 0, f"Expected Python, was: {error}"[:300])]
    findings: list[Finding] = []
    bound = _bound(tree)
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        if not isinstance(node, _NODES):
            findings.append(Finding("node", line, f"{type(node).__name__} is not allowed; write plain functions"))
            continue
        findings.extend(Finding(code, line, message) for code, message in _judge(node, bound))
    findings.extend(_top_level(tree))
    return findings


def _bound(tree: ast.Module) -> set[str]:
    """Return every name the code itself defines."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.alias):
            names.add((node.asname or node.name).split(".")[0])
        elif isinstance(node, ast.ExceptHandler) and node.name:
            names.add(node.name)
    return names


def _judge(node: ast.AST, bound: set[str]) -> list[tuple[str, str]]:
    if isinstance(node, ast.Import):
        return [finding for alias in node.names for finding in _module(alias.name)]
    if isinstance(node, ast.ImportFrom):
        found = _module(node.module or "") if not node.level else [("import", "Relative imports are not allowed")]
        for alias in node.names:
            if alias.name == "*" or _closed(alias.name):
                found.append(("import", f"{alias.name} may not be imported"))
            elif node.module in ("numpy", "pandas", "sklearn"):
                found.extend(_submodule(node.module, alias.name))
        return found
    if isinstance(node, ast.Attribute):
        if _closed(node.attr):
            return [("attribute", f"The attribute {node.attr} is not allowed")]
        if not isinstance(node.ctx, ast.Load):
            return [("state", "Attributes may not be assigned: features keep no state between calls")]
    if isinstance(node, ast.Name):
        if node.id.startswith("_"):
            return [("name", f"The name {node.id} is not allowed")]
        if isinstance(node.ctx, ast.Load) and node.id not in bound and node.id not in BUILTINS:
            what = "builtin" if hasattr(builtins, node.id) else "name"
            return [("name", f"The {what} {node.id} is not allowed or not defined")]
    if isinstance(node, ast.FunctionDef):
        if node.decorator_list or node.name.startswith("_"):
            return [("function", "Functions have no decorators and no leading underscore")]
        if any(
            not isinstance(d, ast.Constant | ast.UnaryOp) for d in (*node.args.defaults, *node.args.kw_defaults) if d
        ):
            return [("state", "Default arguments must be constants: features keep no state between calls")]
    if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
        text = node.value if isinstance(node.value, str) else node.value.decode("latin-1")
        if "__" in text:
            return [("text", "Texts may not hold two underscores in a row")]
    if isinstance(node, ast.keyword) and node.arg and node.arg.startswith("_"):
        return [("name", f"The keyword {node.arg} is not allowed")]
    return []


def _module(name: str) -> list[tuple[str, str]]:
    parts = name.split(".")
    if parts[0] not in MODULES:
        return [("import", f"Expected imports of {', '.join(MODULES)} alone, was {name or 'nothing'}")]
    if len(parts) > 1:
        return _submodule(parts[0], parts[1])
    return []


def _submodule(root: str, name: str) -> list[tuple[str, str]]:
    """Refuse a submodule that is not open; a plain function or class of the package passes."""
    open_ones = _OPEN_SUBMODULES.get(root, ())
    if name in open_ones:
        return []
    if f"{root}.{name}" in _CLOSED_MODULES or root == "sklearn" or _closed(name):
        return [
            (
                "import",
                f"{root}.{name} may not be imported; open are {', '.join(open_ones) or 'no submodules'}",
            )
        ]
    return []


def _closed(name: str) -> bool:
    if name in _OPEN_PREFIXED:
        return False
    return name in _CLOSED_ATTRIBUTES or name in _CLOSED_FRAMES or name.startswith(_CLOSED_PREFIXES)


def _top_level(tree: ast.Module) -> list[Finding]:
    findings = []
    for node in tree.body:
        documented = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if isinstance(node, ast.Import | ast.ImportFrom | ast.FunctionDef) or documented:
            continue
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None and _literal(node.value):
            continue
        findings.append(
            Finding("module", node.lineno, "Expected imports, functions and constant numbers or texts at the top")
        )
    defined = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    for name, count in (("build", 0), ("features", 1)):
        if name not in defined or len(defined[name].args.args) != count:
            findings.append(Finding("shape", 0, f"Expected a function {name} with {count} arguments"))
    return findings


def _literal(node: ast.expr) -> bool:
    """Allow numbers, texts and tuples of them: a list or mapping at the top would be state between calls."""
    if isinstance(node, ast.Tuple):
        return all(_literal(item) for item in node.elts)
    if isinstance(node, ast.UnaryOp):
        return _literal(node.operand)
    return isinstance(node, ast.Constant)
