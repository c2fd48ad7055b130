"""The Chromium that `make browser` found or installed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Browser, sync_playwright

from tests.browser import TOOLS

OWN = TOOLS / "chromium"
# It looks up nobody's hosts; Playwright gives each start an empty profile.
ARGUMENTS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]


def launching() -> dict[str, Any]:
    """What Playwright is told to start it."""
    found = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    environment = {"LD_LIBRARY_PATH": str(OWN / "al2023" / "lib"), "FONTCONFIG_PATH": str(OWN / "fonts")}
    return {
        "executable_path": found or OWN / "chromium",
        "args": ARGUMENTS,
        "env": {**os.environ, **({} if found else environment)},
    }


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser that ends with the block."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(**launching())
        try:
            yield browser
        finally:
            browser.close()
