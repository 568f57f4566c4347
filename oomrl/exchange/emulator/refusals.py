"""What the exchange says no with: Alpaca's HTTP statuses and codes."""

from __future__ import annotations

from typing import Any


class Refusal(Exception):
    """A request that the exchange does not accept. `body` is the JSON answer: code, message, and what helps."""

    def __init__(self, status: int, code: int, message: str, **more: Any) -> None:
        super().__init__(message)
        self.status = status
        self.body: dict[str, Any] = {"code": code, "message": message, **more}


def malformed(message: str) -> Refusal:
    """Return a refusal of a request that is not even well formed."""
    return Refusal(400, 40010000, message)


def invalid(message: str) -> Refusal:
    """Return a refusal of a value that is missing or out of range."""
    return Refusal(422, 40010001, message)


def unprocessable(message: str, **more: Any) -> Refusal:
    """Return a refusal of an order that the market's rules do not allow."""
    return Refusal(422, 42210000, message, **more)


def forbidden(message: str, **more: Any) -> Refusal:
    """Return a refusal that the account's means or protections ask for."""
    return Refusal(403, 40310000, message, **more)


def not_found(message: str) -> Refusal:
    """Return a refusal for something that is not there."""
    return Refusal(404, 40410000, message)
