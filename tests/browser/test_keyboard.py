"""The whole dashboard by keyboard: no story here touches the mouse."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser import seeds
from tests.browser.conftest import Visit
from tests.browser.services import PASSWORD, Service, Workspace

FOCUSED = "document.activeElement.innerText || document.activeElement.value || document.activeElement.ariaLabel || ''"


@pytest.fixture(scope="module")
def usual(service: Service) -> Workspace:
    return seeds.usual(service)


def tab_to(page: Page, name: str | re.Pattern[str]) -> None:
    """Presses Tab until something with that text has the focus."""
    for _ in range(120):
        page.keyboard.press("Tab")
        if re.search(name, page.evaluate(FOCUSED)):
            return
    raise AssertionError(f"Tab does not lead to {name} on {page.url}")


def press(page: Page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def arrive(page: Page, address: str) -> None:
    """Waits until the page with that address has loaded: before that its script hears no keys."""
    expect(page).to_have_url(re.compile(address))
    page.wait_for_load_state()


@pytest.fixture
def page(visit: Visit, usual: Workspace) -> Page:
    """The dashboard of an owner, who has signed in by keyboard."""
    page = visit().page
    page.goto(usual.path())
    expect(page.get_by_label("E-mail")).to_be_focused()
    page.keyboard.type(usual.email("owner"))
    page.keyboard.press("Tab")
    page.keyboard.type(PASSWORD)
    page.keyboard.press("Enter")
    expect(page.get_by_role("navigation", name="Main")).to_be_visible()
    arrive(page, "/dashboard$")
    return page


def test_every_place_of_the_menu_has_its_letters(page: Page, usual: Workspace) -> None:
    places = {
        link.get_attribute("data-go"): link.get_attribute("href")
        for link in page.get_by_role("navigation", name="Main").get_by_role("link").all()
    }
    assert len(places) >= 13

    for key, address in places.items():
        press(page, "g", str(key))
        arrive(page, f"{re.escape(str(address))}$")
        expect(page.get_by_role("heading", level=1)).to_be_visible()


def test_the_keys_are_listed_at_the_question_mark(page: Page) -> None:
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("Keyboard shortcuts")
    press(page, "g", "d")
    expect(page.get_by_role("dialog")).to_be_visible()

    page.keyboard.press("Escape")

    expect(page.get_by_role("dialog")).to_be_hidden()


def test_a_delivery_is_found_in_the_list_opened_and_resent(page: Page) -> None:
    press(page, "g", "d")
    arrive(page, "/deliveries$")
    tab_to(page, "Any state|All states|failed")
    page.keyboard.type("failed")  # applies by itself
    arrive(page, "status=failed")
    press(page, "j", "j", "k", "Enter")
    arrive(page, "/deliveries/dlv_")

    tab_to(page, "^Resend")
    page.keyboard.press("Enter")

    expect(page.get_by_role("main").get_by_role("status").first).to_be_visible()


def test_anything_is_found_from_the_search_box(page: Page, service: Service, usual: Workspace) -> None:
    [(event_id,)] = service.query("SELECT max(id) FROM events WHERE workspace_id = %s", usual.id)
    page.keyboard.press("/")
    page.keyboard.type(event_id)
    page.keyboard.press("Enter")
    expect(page.get_by_role("main")).to_contain_text(event_id)
    page.wait_for_load_state()
    if "/events/" not in page.url:
        press(page, "j", "Enter")

    arrive(page, f"/dashboard/events/{event_id}")


def test_a_failed_group_is_replayed(page: Page) -> None:
    press(page, "g", "f")
    arrive(page, "/failures$")
    page.keyboard.press("j")
    tab_to(page, "^Replay$")
    page.keyboard.press("Enter")
    arrive(page, "/replays/new")
    tab_to(page, r"^Replay \d+ deliver")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Replay of")
    expect(page.get_by_role("main").get_by_role("button", name="Send the rest")).to_be_visible()
    page.wait_for_load_state()
    page.keyboard.press("a")

    expect(page.get_by_role("main")).to_contain_text(re.compile("done|running"))


def test_the_first_tab_skips_to_the_content(page: Page) -> None:
    page.goto(page.url)
    page.keyboard.press("Tab")
    assert "Skip" in page.evaluate(FOCUSED)

    page.keyboard.press("Enter")

    assert page.evaluate("document.activeElement.id") == "main"
