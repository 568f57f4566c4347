"""Bytes of a changed file: plain UTF-8 text that means to a machine what it shows to a reader."""

from __future__ import annotations

import io
import re
import tokenize
import unicodedata

from guardrails.checks.codes import finding
from guardrails.policy import Policy
from guardrails.verdict import Finding

COOKIE = re.compile(rb"coding[=:]\s*[-\w.]+")
UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"})


def judge_text(path: str, data: bytes, policy: Policy) -> list[Finding]:
    """Return the findings on one file's bytes."""
    if len(data) > policy.limits.file_bytes:
        return [finding("GR102", path, 0, f"{len(data)}", f"at most {policy.limits.file_bytes} bytes")]
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        return [finding("GR116", path, data[: error.start].count(b"\n") + 1, "a bad byte")]
    findings = []
    for number, line in enumerate(text.split("\n"), 1):
        if len(line) > policy.limits.line_length:
            most = f"at most {policy.limits.line_length} characters"
            findings.append(finding("GR123", path, number, f"{len(line)}", most))
        if number <= 2 and COOKIE.search(line.encode()) and line.lstrip().startswith("#"):
            findings.append(finding("GR118", path, number, "one"))
        fault = next((letter for letter in line if _unseen(letter)), None)
        if fault is not None:
            code = "GR117" if ord(fault) > 127 else "GR116"
            findings.append(finding(code, path, number, f"U+{ord(fault):04X}"))
        elif policy.code.non_ascii == "refuse" and not line.isascii():
            letter = next(letter for letter in line if ord(letter) > 127)
            findings.append(finding("GR117", path, number, f"U+{ord(letter):04X}"))
    if not text.isascii() and not findings and path.endswith(".py"):
        findings += _outside_text(path, data)
    return findings


def _unseen(letter: str) -> bool:
    return letter not in "\t " and unicodedata.category(letter) in UNSEEN


def _outside_text(path: str, data: bytes) -> list[Finding]:
    """Where the policy allows non-ASCII text, keep it inside strings and comments."""
    kinds = {tokenize.STRING, tokenize.COMMENT, getattr(tokenize, "FSTRING_MIDDLE", -1)}
    try:
        for token in tokenize.tokenize(io.BytesIO(data).readline):
            if token.type not in kinds and not token.string.isascii():
                return [finding("GR117", path, token.start[0], "a letter outside strings and comments")]
    except (tokenize.TokenError, SyntaxError):
        return [finding("GR117", path, 1, "unreadable Python around it")]
    return []
