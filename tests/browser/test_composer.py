"""Writing an answer in a browser: saved replies, macros, messages for later, drafts, and colleagues who are faster."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Visit
from tests.browser.services import Workspace
from tests.browser.shop import Chat, Widget
from tests.browser.test_inbox import Inbox
from tests.journeys.waiting import wait_until


@pytest.fixture
def talk(visit: Visit, workspace: Workspace, chat: Chat, widget: Widget) -> Inbox:
    """A visitor has written, and an agent has opened the conversation."""
    workspace.caller().apply(
        "POST",
        "saved-replies",
        {"shortcut": "refund", "text": "On its way, {{ contact.first_name }}! {{ member.email }}"},
    )
    actions = [{"kind": "label", "labels": ["refund"]}, {"kind": "note", "text": "Refunded."}]
    workspace.caller().apply("POST", "macros", {"name": "Refund", "actions": actions})
    widget.open().say("Where is my money?")
    widget.expect_sent()
    inbox = Inbox(visit(workspace.email("agent")).page, workspace)
    wait_until(lambda: inbox.open().rows.count(), 30, "the conversation is there")
    return inbox.choose("Where is my money?")


def test_an_answer_is_put_together_by_keyboard_and_goes_on_elsewhere(
    talk: Inbox, visit: Visit, workspace: Workspace, chat: Chat
) -> None:
    page, keyboard = talk.page, talk.page.keyboard
    keyboard.press("r")
    keyboard.type("Hello! /ref")
    expect(page.locator("#replies").get_by_role("option")).to_be_visible()
    keyboard.press("Escape")
    expect(page.locator("#replies").get_by_role("option")).to_have_count(0)
    expect(talk.box).to_have_value("Hello! /ref")
    keyboard.type("u")
    expect(page.locator("#replies").get_by_role("option")).to_have_count(1)
    keyboard.press("Tab")
    filled = f"Hello! On its way, ! {workspace.email('agent')}"
    expect(talk.box).to_have_value(filled)
    expect(page.get_by_text("Nothing is known for contact.first_name.")).to_be_visible()

    elsewhere = Inbox(visit(workspace.email("agent")).page, workspace)
    wait_until(lambda: chat.service.query("SELECT 1 FROM drafts WHERE text = %s", filled), 30, "the draft is kept")
    elsewhere.open()
    expect(elsewhere.rows).to_contain_text(["Draft"])
    elsewhere.choose("Where is my money?")
    expect(elsewhere.box).to_have_value(filled)
    elsewhere.box.press("Enter")
    elsewhere.expect_sent()
    expect(elsewhere.page.locator(".draft")).to_have_count(0)
    page.reload()
    expect(talk.thread).to_have_text(["Where is my money?", filled])
    expect(talk.box).to_have_value("")

    keyboard.press("m")
    expect(page.get_by_role("button", name="Refund", exact=True)).to_be_focused()
    keyboard.press("Enter")
    expect(page.locator("#told")).to_have_text("Refund is applied.")
    expect(talk.thread.last).to_have_text("Refunded.")

    talk.box.fill("Did it arrive?")
    page.get_by_text("Send later").click()
    page.get_by_label("When").fill("tomorrow 9")
    page.get_by_label("When").press("Enter")
    later = page.get_by_role("region", name="Sent later")
    expect(later).to_contain_text("Did it arrive?")
    expect(later).to_contain_text("unless they answer first")
    later.get_by_text("Change").click()
    later.get_by_label("Text", exact=True).fill("Has it arrived?")
    later.get_by_role("button", name="Send now").click()
    expect(later).to_be_hidden()
    expect(talk.thread.last).to_have_text("Has it arrived?")


def test_who_is_slower_reads_the_other_answer_before_their_own_goes_out(
    talk: Inbox, visit: Visit, workspace: Workspace, widget: Widget, chat: Chat
) -> None:
    other = Inbox(visit(workspace.email("admin")).page, workspace).open().choose("Where is my money?")
    talk.box.press_sequentially("Ask Ada.")
    other.answer("You get it back.")
    other.expect_sent()
    expect(talk.thread.last).to_have_text("You get it back.")

    talk.box.press("Enter")
    question = talk.page.locator("#newer")
    expect(question).to_contain_text("admin has answered since you began to write: You get it back.")
    question.get_by_role("button", name="Edit").click()
    expect(talk.box).to_have_value("Ask Ada.")
    talk.box.press("Enter")
    talk.expect_sent()

    talk.page.context.set_offline(True)
    for text in ("One", "Two"):
        talk.answer(text)
    other.answer("Three")
    other.expect_sent()
    talk.page.context.set_offline(False)
    expect(question).to_contain_text("Three")
    assert len(chat.service.query("SELECT 1 FROM messages WHERE channel_id = %s", chat.id)) == 4
    question.get_by_role("button", name="Send anyway").click()
    talk.expect_sent()

    said = ["Where is my money?", "You get it back.", "Ask Ada.", "Three", "One", "Two"]
    widget.expect(*said)
    expect(talk.thread).to_have_text(said)
