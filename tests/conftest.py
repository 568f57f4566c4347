"""Tests run beside one another, so numpy gets one thread in each process: more would only wait for each other."""

import os

import pytest

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --database: what the stores of pages and of accounts are kept in. Some tests run on both in any case."""
    parser.addoption("--database", choices=("sqlite", "postgresql"), default="sqlite")
