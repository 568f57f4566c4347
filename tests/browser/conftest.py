"""A real Chromium on a real server; skipped, loudly, where this machine has none."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright


@pytest.fixture(scope="module")  # no longer: its loop runs in this thread, where other tests start theirs
def chromium() -> Iterator[Browser]:
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("Chromium is not installed on this machine: the page is NOT tested in a browser here")
    with sync_playwright() as play:
        # The tests may run as root in a container, where Chromium's own sandbox cannot start.
        browser = play.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-dev-shm-usage"])
        yield browser
        browser.close()
