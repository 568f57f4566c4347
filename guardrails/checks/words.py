"""Texts and numbers that tell: what code may not test for, and what it may not have learnt by heart."""

from __future__ import annotations

import ast
import re

from guardrails.checks.index import Index, Module
from guardrails.checks.scopes import Form, Scopes
from guardrails.policy import Policy

HARNESS = re.compile(
    r"pytest|unittest|conftest|sitecustomize|sys\.modules|/proc/|__\w+__|\bcoverage\b.*\brun", re.IGNORECASE
)
STAGE = re.compile(
    r"(is_|on_)?(paper|live|sandbox(ed)?|backtest(ing)?|simulat(ed|ion|or)|under_test|mock(ed)?)", re.IGNORECASE
)
TICKER = re.compile(r"[A-Z]{1,5}([./-][A-Z]{1,2})?")
#: Words of a message begin with one capital and stand alone; names of securities are capitals wherever they hide.
MESSAGE = re.compile(r"(?<![A-Za-z0-9_])([A-Z][a-z]+|A(?= [a-z]))(?![A-Za-z0-9_])")
#: What numpy reads as this very day, and its kinds of dates.
CLOCK = re.compile(r"now|today|[<>=|]?m8(\[.*)?|(datetime|timedelta)64(\[.*)?", re.IGNORECASE)
#: Methods that make a text of others; of constants they hide what they say.
JOINING = frozenset(["join", "ljust", "lstrip", "removeprefix", "removesuffix", "replace", "rjust", "rstrip", "strip"])
ACCOUNT = re.compile(r"PA[0-9A-Z]{8,12}|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-.*", re.ASCII)
CALENDAR = re.compile(r"(?<!\d)(19|20)\d{2}([-/.]\d{1,2}([-/.]\d{1,2})?|[01]\d[0-3]\d)(?!\d)")
YEAR = re.compile(r"\s*(1[89]|20|21)\d{2}\s*|(19|20)\d?")
DATE_WORD = re.compile(
    r"(^|_)(date|dates|day|days|year|month|week|weekday|today|now|session|ordinal|timestamp|time)(_|s?$)", re.I
)
YEAR_WORD = re.compile(r"(^|_)(date|year)s?($|_)", re.I)


class Words(Scopes):
    """Judge constants, and where code compares or looks up with them. Docstrings are spared."""

    def __init__(self, module: Module, index: Index, policy: Policy, form: Form) -> None:
        super().__init__(module, index, policy, form)
        self.docstrings: set[int] = set()
        self.dated = any(YEAR_WORD.search(word) for node in ast.walk(module.tree) for word in _words(node))

    def _on_Constant(self, node: ast.Constant) -> None:
        value, limits = node.value, self.policy.limits
        if id(node) in self.docstrings:
            return
        if isinstance(value, (str, bytes)) and len(value) > (
            limits.literal_characters if isinstance(value, str) else 32
        ):
            self.find("GR234", node, f"{len(value)} characters")
        if isinstance(value, int) and abs(value) > 10**16:
            self.find("GR234", node, "a packed one")
        if isinstance(value, str):
            self._text(node, value)

    def _text(self, node: ast.AST, value: str) -> None:
        if CLOCK.fullmatch(value):
            self.find("GR216", node, f"{value[:40]!r}", "no text that numpy reads as a date or its kind")
        if self.form == "code":
            if HARNESS.search(value):
                self.find("GR231", node, f"{value[:40]!r}")
            self.securities(node, value)
            if ACCOUNT.fullmatch(value):
                self.find("GR231", node, "a string of that form")
        if self.form == "code" and (CALENDAR.search(value) or YEAR.fullmatch(value)):
            self.find("GR232", node, f"{value[:40]!r}")

    def securities(self, node: ast.AST, text: str) -> None:
        """Judge what is left of a text, or of a name that can be read back, without words of messages."""
        words = re.sub("[A-Za-z]+", lambda found: "" if found[0] in self.names.plain_words else found[0], text)
        if self.form == "code" and len(re.findall("[A-Z]", MESSAGE.sub("", words))) > 1:
            self.find("GR233", node, f"{text[:40]!r}")

    def _telling(self, node: ast.expr) -> None:
        """Judge a string where code compares or looks up with it."""
        for item in ast.walk(node):
            text = item.value if isinstance(item, ast.Constant) else None
            if self.form == "code" and isinstance(text, str):
                if STAGE.fullmatch(text.strip()):
                    self.find("GR231", item, f"{text!r}")
                elif TICKER.fullmatch(text) and text not in self.names.plain_words:
                    self.find("GR233", item, f"{text!r}")

    def _on_BinOp(self, node: ast.BinOp) -> None:
        folded = _folded(node)
        if folded is not None:
            self._text(node, folded)
            if self.form == "code" and STAGE.fullmatch(folded.strip()):
                self.find("GR231", node, f"{folded!r}")
        self.children(node)

    def _on_JoinedStr(self, node: ast.JoinedStr) -> None:
        parts = [item.value for item in node.values if isinstance(item, ast.FormattedValue)]
        if parts and all(isinstance(item, ast.Constant) for item in parts):
            self.find("GR234", node, "a string in pieces")
        self.children(node)

    def _on_Compare(self, node: ast.Compare) -> None:
        sides = [node.left, *node.comparators]
        for side in sides:
            self._telling(side)
        words = {w for side in sides for item in ast.walk(side) for w in _words(item)}
        numbers = {item.value for side in sides for item in ast.walk(side) if isinstance(item, ast.Constant)}
        near = any(DATE_WORD.search(word) for word in words)
        for value in numbers if self.form == "code" else ():
            if isinstance(value, int) and ((near and value >= 1900) or (self.dated and _calendar(value))):
                self.find("GR232", node, f"a comparison with {value}")
            exact = any(isinstance(op, (ast.Eq, ast.NotEq, ast.In, ast.NotIn)) for op in node.ops)
            if exact and isinstance(value, float) and len(re.sub(r"\D", "", repr(value)).strip("0")) > 3:
                self.find("GR234", node, f"a value recalled to the digit, {value}")
        self.children(node)

    def _collection(self, node: ast.List | ast.Tuple | ast.Set | ast.Dict) -> None:
        items = node.keys if isinstance(node, ast.Dict) else node.elts
        if len(items) > self.policy.limits.literal_items:
            self.find("GR234", node, f"{len(items)}", f"at most {self.policy.limits.literal_items} items")
        for item in items:
            if isinstance(item, ast.Constant):
                self._telling(item)
        self.children(node)

    _on_List = _on_Tuple = _on_Set = _on_Dict = _collection


def _calendar(value: int) -> bool:
    """Say whether a number can be a year, a date written together, or an ordinal of these times."""
    return 1900 <= value <= 2100 or 19_000_101 <= value <= 21_001_231 or 693_000 <= value <= 767_000


def _words(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Name):
        return [node.id]
    if isinstance(node, ast.Attribute):
        return [node.attr]
    return [node.value] if isinstance(node, ast.Constant) and isinstance(node.value, str) else []


def hides(node: ast.expr) -> bool:
    """Say whether an expression makes a text of constant texts: by a method, or by an index or slice."""
    if isinstance(node, ast.Subscript):
        return _folded(node.value) is not None
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in JOINING):
        return False
    parts = [part for item in node.args for part in getattr(item, "elts", [item])]
    return bool(parts) and all(_folded(part) is not None for part in [node.func.value, *parts])


def _folded(node: ast.expr) -> str | None:
    """Return the text of constant strings added together."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = _folded(node.left), _folded(node.right)
        return left + right if left is not None and right is not None else None
    return None
