"""Logs as one JSON object a line, with the ids of run, session and proposal bound to it, and no secret in any."""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Mapping
from typing import Any, TextIO

import structlog
from pydantic import SecretBytes, SecretStr
from sqlalchemy import URL

HIDDEN = "**********"
_SECRET_NAME = re.compile(r"(?i)(secret|password|passwd|token|api_?key|authorization|cookie|private)")
_URL_PASSWORD = re.compile(r"(?<=://)([^/\s:@]*):([^@/\s]+)@")
_BEARER = re.compile(r"(?i)\b(bearer|basic)\s+[a-z0-9._~+/=-]{8,}")


def secrets_of(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the values of variables whose names say that they are secrets, longest first."""
    found = {value for name, value in environment.items() if _SECRET_NAME.search(name) and len(value) >= 8}
    return tuple(sorted(found, key=len, reverse=True))


def scrub(value: Any, known: tuple[str, ...] = ()) -> Any:
    """Return a value without secrets: by type, by the name of its key, by what a URL or header looks like, by value."""
    if isinstance(value, (SecretStr, SecretBytes)):
        return HIDDEN
    if isinstance(value, URL):
        return value.render_as_string(hide_password=True)
    if isinstance(value, Mapping):
        return {
            key: HIDDEN if _SECRET_NAME.search(str(key)) and item else scrub(item, known) for key, item in value.items()
        }
    if isinstance(value, (list, tuple, set, frozenset)):
        return [scrub(item, known) for item in value]
    if isinstance(value, bytes):
        return f"<{len(value)} bytes>"
    if isinstance(value, str):
        for secret in known:
            value = value.replace(secret, HIDDEN)
        return _BEARER.sub(rf"\1 {HIDDEN}", _URL_PASSWORD.sub(rf"\1:{HIDDEN}@", value))
    if value is None or isinstance(value, (bool, int, float)):
        return value
    return scrub(str(value), known)


def configure(stream: TextIO | None = None, environment: Mapping[str, str] | None = None) -> None:
    """Send all logs of this process, the libraries' too, to a stream as JSON lines."""
    known = secrets_of(os.environ if environment is None else environment)

    def scrubbed(_logger: object, _name: str, event: structlog.types.EventDict) -> structlog.types.EventDict:
        return {key: scrub({key: item}, known)[key] for key, item in event.items()}

    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="at"),
        structlog.processors.format_exc_info,
        scrubbed,
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.JSONRenderer(),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)
    logging.getLogger("apscheduler").setLevel(logging.WARNING)
    logging.getLogger("alembic").setLevel(logging.WARNING)
