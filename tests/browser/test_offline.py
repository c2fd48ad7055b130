"""While the network is away, pages say so and stay; what was typed is saved by itself afterwards."""

from __future__ import annotations

import re
from typing import Any

from playwright.sync_api import Page, expect

from tests.browser.conftest import Visit
from tests.browser.services import Workspace
from tests.browser.test_keys import Desk, desk  # noqa: F401
from tests.journeys.waiting import wait_until

SAID = "Offline: what you write is kept here, and sent when you are back."
STEPS: list[dict[str, Any]] = [{"id": "hello", "kind": "send_message", "text": "Hello"}]


def expect_offline(page: Page) -> None:
    expect(page.locator("#offline")).to_have_text(SAID, timeout=5_000)
    expect(page.locator("#offline")).to_be_visible(timeout=5_000)


def test_the_inbox_says_that_it_is_offline_and_saves_the_draft_afterwards(desk: Desk) -> None:  # noqa: F811
    page = desk.page
    desk.open("Mary Jackson")
    page.context.set_offline(True)
    expect_offline(page)
    desk.press("r")
    desk.keyboard.type("Half an answer")
    address = page.url

    desk.row("Grace Hopper").get_by_role("link").click()
    expect(page.locator("#offline")).to_contain_text("The conversation opens then.")
    page.get_by_role("link", name="Contacts", exact=True).click()
    expect(page.locator("#offline")).to_contain_text("No other page can be opened")
    expect(desk.box).to_have_value("Half an answer")
    assert page.url == address

    page.context.set_offline(False)
    expect(page.locator("#offline")).to_be_hidden()
    desk.expect_open("Grace Hopper")
    drafts = "SELECT 1 FROM drafts WHERE text = 'Half an answer'"
    wait_until(lambda: desk.service.query(drafts), 30, "the draft is saved")


def test_the_editor_says_that_it_is_offline_and_saves_the_step_afterwards(visit: Visit, workspace: Workspace) -> None:
    made = workspace.caller().apply("POST", "automations", {"name": "Greeting", "definition": {"steps": STEPS}})
    page = visit(workspace.email("admin")).page
    page.goto(workspace.path(f"automations/{made.data['id']}/edit"))
    page.locator("#step-hello a").first.click()
    page.context.set_offline(True)
    expect_offline(page)
    page.get_by_label("Text", exact=True).fill("Hello again")
    page.get_by_role("link", name="JSON").click()
    expect(page.get_by_label("Text", exact=True)).to_have_value("Hello again")

    page.context.set_offline(False)
    expect(page.locator("#offline")).to_be_hidden()
    automation = f"automations/{made.data['id']}"
    wait_until(
        lambda: workspace.caller().get(automation)["definition"]["steps"][0]["text"] == "Hello again",
        *(30, "the step is saved"),
    )


def test_a_written_broadcast_survives_a_click_on_the_menu(visit: Visit, workspace: Workspace) -> None:
    page = visit(workspace.email("admin")).page
    page.goto(workspace.path("broadcasts/new"))
    message = page.get_by_role("textbox", name="Message")
    page.get_by_label("Name").fill("Tulips")
    message.fill("Half the price until Sunday.")
    page.get_by_label("Send one first").check()
    page.get_by_role("link", name="Contacts", exact=True).click()
    expect(page).to_have_url(re.compile("/contacts$"))
    page.goto(workspace.path("broadcasts/new"))

    expect(page.get_by_text("What you began to write is here again.")).to_be_visible()
    expect(page.get_by_label("Name")).to_have_value("Tulips")
    expect(message).to_have_value("Half the price until Sunday.")
    expect(page.get_by_label("Send one first")).to_be_checked()

    page.get_by_role("button", name="Begin anew").click()
    expect(message).to_have_value("")
    page.reload()
    expect(message).to_have_value("")
