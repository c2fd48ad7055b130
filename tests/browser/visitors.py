"""A person at a browser window. What goes wrong behind the page is collected: errors, refused content, strangers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request, expect

from tests.browser.services import PASSWORD

# An answer of 4xx or 5xx, which some stories ask for and whose text tells, or none while the network is away.
_ANSWER = re.compile(r"Failed to load resource: (the server responded with a status of \d+|net::ERR_INTERNET_DISCONN)")


class Visitor:
    """A browser window with a fresh profile, and everything that a page must not do."""

    def __init__(self, context: BrowserContext, base_url: str) -> None:
        self.base_url = base_url
        self.context = context
        self.faults: list[str] = []
        context.on("request", self._check_host)
        context.on("console", self._check_console)
        context.on("weberror", lambda error: self.faults.append(f"{error.page and error.page.url}: {error.error}"))
        self.page: Page = context.new_page()

    def sign_in(self, email: str) -> Visitor:
        """Signs in by the form, and lands on the first page."""
        self.page.goto("/sign-in")
        self.page.get_by_label("E-mail").fill(email)
        self.page.get_by_label("Password").fill(PASSWORD)
        self.page.get_by_role("button", name="Sign in").click()
        expect(self.page.get_by_role("heading", level=1)).not_to_have_text(re.compile("Sign in"))
        return self

    def _check_host(self, request: Request) -> None:
        address = urlsplit(request.url)
        is_live = address.hostname == urlsplit(self.base_url).hostname and address.path.startswith("/live/")
        if address.scheme not in ("data", "blob") and f"{address.scheme}://{address.netloc}" != self.base_url:
            if is_live:  # `realtime` has a port of its own
                return
            self.faults.append(f"asked {request.url}")

    def _check_console(self, message: ConsoleMessage) -> None:
        # Chromium reports refused scripts, styles and frames here.
        if message.type == "error" and not _ANSWER.match(message.text):
            self.faults.append(f"{message.page and message.page.url}: {message.text}")


@contextmanager
def visiting(browser: Browser, base_url: str, **options: Any) -> Iterator[Visitor]:
    """A visitor during the block; `options` are those of a Playwright context. Fails if a page did anything amiss."""
    context = browser.new_context(base_url=base_url, **options)
    visitor = Visitor(context, base_url)
    try:
        yield visitor
    finally:
        context.close()
    if visitor.faults:
        raise AssertionError("\n".join(visitor.faults))
