"""HTML and script in every field that a contact, a receiver or a member controls: pages show it, none runs it."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser

from tests.browser import seeds
from tests.browser.addresses import addresses
from tests.browser.services import SUPPORT, Service, Workspace
from tests.browser.visitors import visiting
from tests.browser.walks import show


@pytest.fixture(scope="module")
def hostile(service: Service) -> Workspace:
    return seeds.hostile(service)


@pytest.mark.parametrize("has_policy", [True, False], ids=["with the policy", "without the policy"])
def test_no_script_of_a_stranger_runs_on_any_page(
    service: Service, browser: Browser, hostile: Workspace, has_policy: bool, subtests: pytest.Subtests
) -> None:
    ran: list[str] = []
    shown = 0
    for email in (hostile.email("owner"), SUPPORT):
        # Without the policy too: it is the second lock. With it, a refused script is a fault that fails the walk.
        with visiting(browser, service.base_url, bypass_csp=not has_policy) as visitor:
            visitor.context.expose_function("ran", lambda where=visitor: ran.append(where.page.url))
            visitor.sign_in(email)
            for address in addresses(service.stack.environment, service.query, hostile.id):
                if address.audience == "everybody" or (address.audience == "staff") != (email == SUPPORT):
                    continue
                with subtests.test(f"{address.name} {email}"):
                    page = show(visitor, address.path)
                    page.evaluate("() => document.querySelectorAll('details').forEach((each) => (each.open = true))")
                    page.wait_for_load_state("networkidle")
                    shown += "ran()" in page.inner_text("body")
                    assert page.locator("main img[src='x'], main svg[onload], main script").count() == 0

    assert ran == []
    assert shown >= 8
