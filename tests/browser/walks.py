"""A walk over all pages about a workspace, as the people who may see them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from playwright.sync_api import Browser, Page

from tests.browser.addresses import Address, addresses
from tests.browser.services import SUPPORT, Service, Workspace
from tests.browser.visitors import Visitor, visiting


def walk(service: Service, browser: Browser, workspace: Workspace, **options: object) -> Iterator[tuple[Address, Page]]:
    """Every page, opened: those of staff as support, those for everybody signed out, all others as an owner."""
    found: dict[str, list[Address]] = {"everybody": [], "staff": [], "members": []}
    for address in addresses(service.stack.environment, service.query, workspace.id):
        found[address.audience].append(address)
    people = {"everybody": None, "staff": SUPPORT, "members": workspace.email("owner")}
    for audience, email in people.items():
        with visiting(browser, service.base_url, **options) as visitor:
            if email:
                visitor.sign_in(email)
            for address in found[audience]:
                yield address, show(visitor, address.path)


def show(visitor: Visitor, path: str) -> Page:
    """The page at the path, loaded. An error page is a fault of the visit."""
    answer = visitor.page.goto(path, wait_until="load")
    if answer is None or answer.status >= 400:
        visitor.faults.append(f"{path}: {answer and answer.status}")
    return visitor.page


def main_text(page: Page) -> str:
    """What the page says."""
    return page.get_by_role("main").inner_text()


def reload_until(page: Page, condition: Callable[[], object], seconds: float = 60) -> None:
    """Reloads the page, as a person would without the script, until the condition is true."""
    ends = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends, f"{page.url} still says: {main_text(page)}"
        page.wait_for_timeout(300)
        page.reload()
