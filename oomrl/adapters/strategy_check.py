"""Judge a strategy code base before a repair of it is ever asked for: what the gate would refuse, why, what to do.

Over 300 lines, because each part (layout, what code says, dependencies, data, parameters, evidence) is a short question
to the same tree. Reading runs nothing; tests and properties run in the sandbox that the gate uses.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

from guardrails.acceptance import failing_cases, failing_properties, failing_scenarios, parameters_of, read_cases
from guardrails.bench import NoBench, open_bench
from guardrails.checks.index import Module, build_index
from guardrails.checks.names import names
from guardrails.checks.parameters import judge_parameters, read_parameters
from guardrails.checks.source import judge_source
from guardrails.environment import GateEnvironment
from guardrails.policy import Layout, Policy, PolicyError, parse_policy
from guardrails.runs import judge_coverage, judge_run, shares
from guardrails.tree import Tree
from guardrails.verdict import Finding
from oomrl.adapters import environments
from oomrl.adapters.repository import read_folder
from oomrl.adapters.strategies import configuration
from oomrl.errors import Mistake

SKELETON = Path(__file__).with_name("skeleton")
#: Files that a strategy cannot open, by what they usually are.
DATA = re.compile(
    r".*\.(pkl|pickle|joblib|npy|npz|h5|hdf5|parquet|feather|csv|tsv|xlsx|db|sqlite|pt|pth|onnx|bin|so|pyd|zip|gz)",
    re.I,
)
#: Import roots whose package has another name.
PACKAGES = {"sklearn": "scikit-learn", "talib": "ta-lib", "yaml": "pyyaml", "dateutil": "python-dateutil"}
#: What a frame or an array may never be granted: it reads, writes, or evaluates text.
REACHING = re.compile(r"read_\w+|to_(csv|pickle|parquet|feather|hdf|sql|json|excel|clipboard|gbq|html|xml)|eval|query")


@dataclass(frozen=True, slots=True)
class Advice:
    """What is refused of one kind of import, why, and the way in (policy, lock or never)."""

    roots: tuple[str, ...]
    title: str
    way: str
    why: str
    mend: str


@dataclass(frozen=True, slots=True)
class Remark:
    """One thing found: the part that it belongs to, a code where the gate has one, where, what, and the way out."""

    part: str
    place: str
    what: str
    mend: str
    code: str = ""


@dataclass(frozen=True)
class Judged:
    """All remarks on a code base, what it imports that is refused, and the figures of its tests.

    `profile` is a policy's `[code]` that would let in what may be let in, `remaining` how many findings it leaves.
    """

    remarks: tuple[Remark, ...]
    imports: Mapping[str, tuple[str, ...]]
    profile: str
    remaining: int
    figures: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {"ready": not self.remarks, **asdict(self)}


@cache
def advice() -> dict[str, Advice]:
    """Return the advice by kind; `other` is for any root that no kind names."""
    rows = tomllib.loads(Path(__file__).with_name("strategy_advice.toml").read_text("utf-8"))
    return {kind: Advice(**row | {"roots": tuple(row["roots"])}) for kind, row in rows.items()}


def advice_on(root: str) -> Advice:
    """Return the advice on an import root."""
    return next((one for one in advice().values() if root in one.roots), advice()["other"])


def new(folder: Path) -> list[str]:
    """Write a skeleton repository into a folder that does not exist or is empty; return its files."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise Mistake(f"Expected a new or empty folder, was {folder}, which has something in it.")
    locks = environments.shipped("strategy_repo")
    tree = read_folder(SKELETON) | {
        name: (locks / name).read_bytes() for name in (environments.WORKER_LOCK, environments.GATE_LOCK)
    }
    try:
        Tree(tree).write(folder)
    except OSError as error:
        raise Mistake(f"Expected a folder that can be written at {folder}: {error.strerror}.") from error
    return sorted(tree)


def judge(folder: Path, *, run: bool = True, seed: int = 0) -> Judged:
    """Judge a code base. With `run`, its tests, golden cases and properties too, in the sandbox."""
    tree = Tree(read_folder(folder))
    remarks = list(_layout(tree))
    policy, own_policy = _policy(tree, remarks)
    arranged, places = _arranged(tree, policy)
    policy = replace(policy, layout=replace(policy.layout, package=_package(arranged, policy.layout)))
    found = _static(arranged, policy)
    remarks += [_remark("code", finding, places) for finding in found]
    imports = _refused_imports(arranged, policy)
    remarks += _dependencies(tree, imports)
    remarks += _data(tree, policy)
    if own_policy and policy.layout.parameters in tree:
        remarks += [_remark("parameters", finding, places) for finding in _parameters(tree, policy)]
    profile, remaining = _profile(arranged, policy, imports)
    figures: dict[str, Any] = {}
    if run and own_policy and not any(remark.part == "layout" for remark in remarks):
        figures = _evidence(folder, tree, policy, seed, remarks)
    return Judged(tuple(remarks), imports, profile, remaining, figures)


def _remark(part: str, finding: Finding, places: Mapping[str, str]) -> Remark:
    path = places.get(finding.path, finding.path)
    place = f"{path}:{finding.line}" if finding.line else path
    return Remark(part, place, finding.reason, finding.fix, finding.code)


# -- layout


def _layout(tree: Tree) -> Iterator[Remark]:
    written = "`oomrl strategy new` writes one to start from"
    needed = {
        "src/strategy/__init__.py": "move the package there, with `class Strategy` (see the how-to: own strategy)",
        "strategy.toml": f"cadence, warm-up and parameters; {written}",
        "policy.toml": f"what a repair may touch; {written}",
        environments.WORKER_LOCK: "uv pip compile --generate-hashes requirements.in -o requirements.lock",
        environments.GATE_LOCK: "uv pip compile --generate-hashes requirements-test.in -o requirements-test.lock",
    }
    for path, mend in needed.items():
        if path not in tree:
            yield Remark("layout", path, "Expected this file, found none.", mend)
    if not any(path.startswith("tests/") and PurePosixPath(path).name.startswith("test_") for path in tree):
        yield Remark("layout", "tests/", "Expected tests, found none.", "write them; below 95 % no repair is let in")
    if "strategy.toml" in tree:
        try:
            configuration(tree["strategy.toml"])
        except Mistake as error:
            yield Remark("layout", "strategy.toml", str(error), "see the how-to: own strategy")


def _policy(tree: Tree, remarks: list[Remark]) -> tuple[Policy, bool]:
    """Return the repository's policy, else the skeleton's, and whether it is its own."""
    if "policy.toml" in tree:
        try:
            return parse_policy(tree["policy.toml"]), True
        except PolicyError as error:
            remarks.append(
                Remark(
                    "layout",
                    "policy.toml",
                    str(error),
                    "see guardrails/example_policy.toml; every key is in guardrails/policy.py",
                )
            )
    return parse_policy((SKELETON / "policy.toml").read_bytes()), False


def _arranged(tree: Tree, policy: Policy) -> tuple[Tree, Mapping[str, str]]:
    """Return the tree with its package where the policy wants it, and the true place of what was moved in thought."""
    if any(path.startswith(policy.package_folder + "/") for path in tree):
        return tree, {}
    code = [path for path in tree if path.endswith(".py") and not _is_test(path)]
    roots = sorted({path.rpartition("/")[0] for path in code if path.endswith("__init__.py")}, key=len)
    root = next((place for place in roots if place), "")
    package = root.rpartition("/")[2] or policy.layout.package
    moved = {
        f"{policy.layout.source}/{package}/{path.removeprefix(root + '/') if root else path}": path
        for path in code
        if not root or path.startswith(root + "/")
    }
    return Tree({place: tree[path] for place, path in moved.items()}), moved


def _package(tree: Tree, layout: Layout) -> str:
    """Return the package's name: the policy's, or that of the only folder in the source folder."""
    found = {path.split("/")[1] for path in tree if path.startswith(f"{layout.source}/") and path.count("/") > 1}
    return layout.package if layout.package in found or not found else sorted(found)[0]


def _is_test(path: str) -> bool:
    return "tests/" in f"/{path}" or PurePosixPath(path).name in ("setup.py", "conftest.py", "noxfile.py")


# -- what the code says


def _static(tree: Tree, policy: Policy) -> list[Finding]:
    index, unread = build_index(tree, policy)
    found = list(unread)
    for module in index.modules.values():
        found += judge_source(module, tree[module.path], index, policy)
    return sorted(found, key=lambda item: (item.path, item.line, item.code))


def _refused_imports(tree: Tree, policy: Policy) -> dict[str, tuple[str, ...]]:
    """Return the import roots that the policy does not know, and the names of each that the code uses."""
    used: dict[str, set[str]] = {}
    own = {policy.layout.package}
    for module in build_index(tree, policy)[0].modules.values():
        for target, name in _used(module):
            listed = policy.code.imports.get(target)
            known = listed is not None and (not name or name in names().allowed(target, listed))
            if target.split(".")[0] not in own and not known:
                used.setdefault(target, set()).add(name)
    return {target: tuple(sorted(found - {""})) for target, found in sorted(used.items())}


def _used(module: Module) -> Iterator[tuple[str, str]]:
    """Yield each imported module with the names that are used of it, dotted where they are reached through it."""
    aliases: dict[str, str] = {}
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                aliases[alias.asname or alias.name.split(".")[0]] = alias.name
                yield alias.name, ""
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            for alias in node.names:
                yield node.module, alias.name
    inner = {id(node.value) for node in ast.walk(module.tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Attribute) and id(node) not in inner:
            root, _, rest = ast.unparse(node).partition(".")
            if root in aliases and re.fullmatch(r"[\w.]+", rest):
                yield aliases[root], rest


# -- what it leans on


def _dependencies(tree: Tree, imports: Mapping[str, tuple[str, ...]]) -> Iterator[Remark]:
    lock = tree.get(environments.WORKER_LOCK, b"").decode("utf-8", "replace")
    locked = {_normal(name) for name in re.findall(r"(?m)^([A-Za-z0-9][\w.-]*)==", lock)}
    for root in sorted({target.split(".")[0] for target in imports}):
        if root in sys.stdlib_module_names or advice_on(root).way == "never":
            continue
        package = _normal(PACKAGES.get(root, root))
        if package not in locked:
            mend = f"add {package} to requirements.in and lock it again, with hashes; or do without it"
            yield Remark("dependencies", environments.WORKER_LOCK, f"Expected {package} to be locked, was not.", mend)


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _data(tree: Tree, policy: Policy) -> Iterator[Remark]:
    for path in tree:
        if DATA.fullmatch(path) and not path.startswith(f"{policy.layout.baseline}/"):
            mend = (
                "write few numbers as parameters of strategy.toml; put many as plain arrays into a package of your "
                "own, lock it with its hash, and grant its function in the policy; never a pickle"
            )
            yield Remark("data", path, "Expected no data file: the worker can open none.", mend)


def _parameters(tree: Tree, policy: Policy) -> list[Finding]:
    """Judge each parameter that has bounds against them; one without stays what it is, whatever a repair wants."""
    bounded = Tree({policy.layout.parameters: tree[policy.layout.parameters]})
    findings = judge_parameters(b"", bounded, policy)
    return [one for one in findings if "is not among the bounds" not in one.reason]


# -- what a policy could grant


def _profile(tree: Tree, policy: Policy, imports: Mapping[str, tuple[str, ...]]) -> tuple[str, int]:
    """Return a `[code]` that lets in what may be let in, as TOML, and how many findings are left under it."""
    granted: dict[str, tuple[str, ...]] = {}
    for target, wanted in imports.items():
        listed, never = names().modules.get(target, frozenset()), advice_on(target.split(".")[0]).way == "never"
        may = tuple(name for name in wanted if name in listed or not (never or REACHING.fullmatch(name.split(".")[-1])))
        if may:
            words = ("*",) if listed.issuperset(may) else may
            granted[target] = (*policy.code.imports.get(target, ()), *words)
    code = replace(policy.code, imports={**policy.code.imports, **granted})
    found = _static(tree, replace(policy, code=code))
    words = {match[1] for one in found if one.code == "GR211" and (match := re.search(r"'(\w+)'\.$", one.reason))}
    gone = {part for target in imports.keys() - granted for name in imports[target] for part in name.split(".")}
    attributes = sorted(word for word in words - gone if not REACHING.fullmatch(word))
    if not granted and not attributes:
        return "", len(found)
    code = replace(code, attributes=(*code.attributes, *attributes))
    lines = ["[code]", f"attributes = {_toml(code.attributes)}", "", "[code.imports]"]
    lines += [f"{_key(target)} = {_toml(code.imports[target])}" for target in granted]
    return "\n".join(lines), len(_static(tree, replace(policy, code=code)))


def _toml(words: Any) -> str:
    return "[" + ", ".join(f'"{word}"' for word in words) + "]"


def _key(target: str) -> str:
    return f'"{target}"' if "." in target else target


# -- evidence, in the sandbox


def _evidence(folder: Path, tree: Tree, policy: Policy, seed: int, remarks: list[Remark]) -> dict[str, Any]:
    found = environments.find(folder)
    try:
        bench = open_bench(GateEnvironment(found.gate, found.worker), policy)
    except NoBench as error:
        raise Mistake(str(error)) from error
    baseline = tree.under(policy.layout.baseline)
    run = bench.test(Tree({path: data for path, data in tree.items() if path not in baseline}), cover=True)
    statements, branches = shares(run)
    figures: dict[str, Any] = {
        "sandbox": bench.profile,
        "tests": len(run.outcomes),
        "passed": len(run.passed()),
        "statements": statements,
        "branches": branches,
    }
    remarks += [_remark("tests", finding, {}) for finding in judge_run(run, run.outcomes)]
    if not run.fault:
        remarks += [_remark("coverage", finding, {}) for finding in judge_coverage(run, {}, policy.coverage)]
    values = read_parameters(tree.get(policy.layout.parameters, b"")) or {}
    cases = read_cases(baseline, policy.layout.baseline)
    failing = failing_cases(cases, lambda: bench.worker(tree, {}))
    own = parameters_of(values)
    count, missed, _ = failing_scenarios(baseline, own, lambda params: bench.worker(tree, params), seed)
    figures |= {"cases": len(cases), "scenarios": count}
    for name in (*failing, *missed):
        remarks.append(Remark("baseline", name, "Expected this answer, was another.", "mend the code or the case"))
    if not cases and not count:
        told = "write what you worked out by hand: it is all that a repair cannot argue with"
        remarks.append(Remark("baseline", f"{policy.layout.baseline}/", "Expected golden cases, found none.", told))
    if policy.acceptance.strategy:
        held = failing_properties(policy, values, lambda params: bench.worker(tree, params), seed)
        figures["properties_failing"] = sorted(held)
        for name, seen in held.items():
            mend = f'mend the code, or waive it with a reason: [acceptance.waived] {name} = "..."'
            remarks.append(Remark("contract", name, seen, mend, "GR602"))
    return figures


def counted(remarks: tuple[Remark, ...]) -> dict[str, int]:
    """Return how many remarks each part has, in the order in which they were made."""
    return dict(Counter(remark.part for remark in remarks))
