"""Finding one's work in the inbox in a browser: searching, changing several at once, and the palette, by keyboard."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.browser import seeds
from tests.browser.conftest import Visit
from tests.browser.services import Service, Workspace


@pytest.fixture
def page(service: Service, workspace: Workspace, visit: Visit) -> Page:
    """The inbox of an agent with three conversations: Mary's first, then Grace's, then Ada's."""
    caller = workspace.caller()
    channel = seeds.make_web_chat(caller, "Flowers")
    for hours_ago, name in ((1, "Mary Jackson"), (2, "Grace Hopper"), (3, "Ada Lovelace")):
        seeds.make_conversation(service, workspace, channel, seeds.make_contact(caller, name), hours_ago)
    page = visit(workspace.email("agent")).page
    page.goto(workspace.path("inbox"))
    return page


def test_several_are_found_and_closed_by_keyboard_alone(page: Page, service: Service, workspace: Workspace) -> None:
    keyboard, rows = page.keyboard, page.locator("#rows > li")
    keyboard.press("/")
    keyboard.type("hopper grace")
    keyboard.press("Enter")
    expect(rows).to_have_count(1)
    expect(rows.locator("mark").first).to_have_text("Grace")
    page.goto(workspace.path("inbox"))

    keyboard.press("j")
    keyboard.press("x")
    expect(page.get_by_text("1 chosen")).to_be_visible()
    keyboard.press("j")
    keyboard.press("Shift+X")
    expect(page.get_by_text("2 chosen")).to_be_visible()
    page.locator("#selection").get_by_role("button", name="Close").press("Enter")

    expect(page.locator("#selection-said")).to_have_text("Closed 2 conversations.")
    expect(rows).to_have_count(1)
    closed = service.query(
        "SELECT count(*) FROM conversations WHERE status = 'closed' AND workspace_id = %s", workspace.id
    )
    assert closed == [(2,)]


def test_the_palette_does_what_the_page_can(page: Page, workspace: Workspace) -> None:
    keyboard, palette = page.keyboard, page.get_by_role("dialog", name="What do you want to do?")
    options = palette.get_by_role("option")
    page.locator("#rows a").first.click()
    expect(page.get_by_role("button", name="Close", exact=True)).to_be_visible()

    keyboard.press("Control+k")
    expect(palette.get_by_role("combobox")).to_be_focused()
    keyboard.type("snooze hour")
    expect(options.first).to_contain_text("Snooze: In 1 hour")
    expect(options.last).to_contain_text("Search “snooze hour”")
    keyboard.press("ArrowDown")
    expect(options.nth(1)).to_have_attribute("aria-selected", "true")
    keyboard.press("Escape")
    expect(palette).to_be_hidden()

    keyboard.press("Control+k")
    keyboard.type("contacts")
    keyboard.press("Enter")
    page.wait_for_url("**/contacts")
    keyboard.press("Control+k")
    keyboard.type("ada@")
    keyboard.press("Enter")
    page.wait_for_url("**/dashboard/search?q=ada%40")
