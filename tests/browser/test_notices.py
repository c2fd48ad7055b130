"""Notifications in a browser: turned on by a press, shown once for all tabs, gone once the conversation is read."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.browser.conftest import Visit
from tests.browser.services import Workspace
from tests.browser.shop import Chat, Widget
from tests.journeys.waiting import wait_until

# The browser's notifications, which nobody sees here: they are kept in the storage that the tabs share.
SHOWN = """
window.Notification = class extends EventTarget {
  static get permission() { return localStorage.getItem("permission") ?? "default"; }
  static async requestPermission() { localStorage.setItem("permission", "granted"); return "granted"; }
  constructor(title, { body }) {
    super();
    window.latest = this;
    const before = JSON.parse(localStorage.getItem("shown") ?? "[]");
    localStorage.setItem("shown", JSON.stringify([...before, [title, body]]));
  }
  close() {}
};
"""


def shown(page: Page) -> list[list[str]]:
    return list(page.evaluate("JSON.parse(localStorage.getItem('shown') ?? '[]')"))


def test_one_tab_shows_what_is_new_and_looking_at_it_reads_it_in_all(
    visit: Visit, workspace: Workspace, chat: Chat, widget: Widget
) -> None:
    visitor = visit(workspace.email("agent"))
    visitor.context.add_init_script(SHOWN)
    page, other = visitor.page, visitor.context.new_page()
    page.goto(workspace.path("notifications/choices"))
    expect(page.get_by_text("This browser shows none yet.")).to_be_visible()
    page.get_by_role("button", name="Turn on").click()
    expect(page.get_by_text("This browser shows them.")).to_be_visible()
    page.goto(workspace.path("contacts"))
    other.goto(workspace.path("inbox"))

    widget.open().say("Do you have tulips?")
    widget.expect_sent()
    find = "SELECT id FROM conversations WHERE channel_id = %s"
    wait_until(lambda: chat.service.query(find, chat.id), 30, "the conversation begins")
    [(conversation_id,)] = chat.service.query(find, chat.id)
    member_id = chat.service.member_id(workspace, "agent")
    workspace.caller().apply("PATCH", f"conversations/{conversation_id}", {"assignee_id": member_id})
    wait_until(lambda: len(shown(page)) == 1, 30, "the assignment is shown")
    widget.say("Red ones?")

    for each in (page, other):
        expect(each).to_have_title(re.compile(r"^\(2\) "))
    wait_until(lambda: len(shown(page)) == 2, 30, "both are shown")
    assert [body for _, body in shown(page)] == ["Do you have tulips?", "Red ones?"]
    page.get_by_role("link", name="Notifications: 2 unread").click()
    expect(page.locator(".bell-list")).to_contain_text("has written")
    page.keyboard.press("Escape")
    expect(page.locator(".bell-list")).to_be_hidden()

    other.locator("#rows a").first.click()

    expect(other.locator("#thread .text")).to_have_text(["Do you have tulips?", "Red ones?"])
    for each in (page, other):
        expect(each).not_to_have_title(re.compile(r"^\("))
    assert len(shown(page)) == 2
