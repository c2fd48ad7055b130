"""HTML and script in every field that a contact, a receiver or a member controls: pages show it, none runs it."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser

from app.web import create_pages
from tests.browser import hostile
from tests.browser.addresses import NO_PAGES, Address, addresses
from tests.browser.services import SUPPORT, Service, Workspace
from tests.browser.visitors import visiting
from tests.browser.walks import show

MARKUP = "img[src='x'], svg[onload], body script:not([src])"


@pytest.fixture(scope="module")
def workspace(service: Service) -> Workspace:
    return hostile.make(service)


@pytest.fixture(scope="module")
def shown(service: Service, workspace: Workspace) -> list[Address]:
    return list(addresses(service.stack.environment, service.query, workspace.id))


def test_no_page_is_left_out(shown: list[Address]) -> None:
    pages = {rule.endpoint for rule in create_pages().url_map.iter_rules() if "GET" in (rule.methods or ())}

    assert {address.endpoint for address in shown} == pages - NO_PAGES


def test_all_text_is_hostile(service: Service, workspace: Workspace) -> None:
    for table, columns in hostile.COLUMNS.items():
        for column in columns:
            found = service.query(f"SELECT count(*) FROM {table} WHERE {column}::text LIKE '%%ran()%%'")
            assert found[0][0] > 0, f"{table}.{column}"


@pytest.mark.parametrize(
    "has_policy",
    [pytest.param(True, id="with the policy", marks=pytest.mark.nightly), pytest.param(False, id="without the policy")],
)
def test_no_script_of_a_stranger_runs_on_any_page(
    service: Service,
    browser: Browser,
    workspace: Workspace,
    shown: list[Address],
    has_policy: bool,
    subtests: pytest.Subtests,
) -> None:
    ran: list[str] = []
    told = 0
    people = {"members": workspace.email("owner"), "staff": SUPPORT, "everybody": None}
    for audience, email in people.items():
        # Without the policy too: it is the second lock. With it, a refused script is a fault that fails the walk.
        with visiting(browser, service.base_url, bypass_csp=not has_policy, user_agent=hostile.TEXT) as visitor:
            visitor.context.expose_function("ran", lambda where=visitor: ran.append(where.page.url))
            if email:
                visitor.sign_in(email)
            for address in shown:
                # Staff on their visit see the pages of the workspace as well: one shows what is around all of them.
                is_around = audience == "staff" and address.endpoint == "overviews.show"
                if address.audience != audience and not is_around:
                    continue
                with subtests.test(f"{address.name} {email}"):
                    page = show(visitor, address.path)
                    page.evaluate("() => document.querySelectorAll('details').forEach((each) => (each.open = true))")
                    page.wait_for_load_state("networkidle")
                    told += "ran()" in page.inner_text("body")
                    assert page.locator(MARKUP).count() == 0

    assert ran == []
    assert told > 40
