"""The inbox in a browser: an agent answers visitors of a web chat, live, by keyboard, offline, on a phone."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import FilePayload, Page, expect

from tests.browser.conftest import Visit
from tests.browser.services import Workspace
from tests.browser.shop import Chat, Widget
from tests.journeys.waiting import wait_until

PICTURE = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c49444154789c63f8cfc0000003010100c9fe92ef"
    "0000000049454e44ae426082"
)


class Inbox:
    """The inbox in a window of somebody."""

    def __init__(self, page: Page, workspace: Workspace) -> None:
        self.page = page
        self.path = workspace.path("inbox")
        self.rows = page.locator("#rows > li")
        self.thread = page.locator("#thread .text")
        self.box = page.get_by_label("Your answer or note")

    def open(self, query: str = "") -> Inbox:
        self.page.goto(self.path + query)
        return self

    def choose(self, text: str) -> Inbox:
        """Clicks the row with that text, and waits for its conversation."""
        self.rows.filter(has_text=text).get_by_role("link").click()
        expect(self.thread.filter(has_text=text).first).to_be_visible()
        return self

    def answer(self, text: str) -> None:
        self.box.fill(text)
        self.box.press("Enter")

    def expect_sent(self) -> None:
        """Waits until nothing waits to be sent."""
        expect(self.page.locator("#thread [data-pending]")).to_have_count(0)

    def count(self, view: str) -> str:
        return str(self.page.locator(f"[data-count={view}]").inner_text())


@pytest.fixture
def inbox(visit: Visit, workspace: Workspace, chat: Chat) -> Inbox:
    """The inbox of an agent, in a workspace with a web chat."""
    return Inbox(visit(workspace.email("agent")).page, workspace).open()


@pytest.fixture
def talk(inbox: Inbox, widget: Widget) -> Inbox:
    """The same, with a visitor who has written."""
    widget.open().say("Do you have tulips?")
    widget.expect_sent()
    expect(inbox.rows).to_have_count(1)
    return inbox.choose("Do you have tulips?")


def test_a_conversation_begins_and_goes_on_without_a_reload(inbox: Inbox, widget: Widget, chat: Chat) -> None:
    expect(inbox.page.get_by_text("When somebody writes, it appears here by itself.")).to_be_visible()
    inbox.page.evaluate("window.isSame = true")

    widget.open().say("Do you have tulips?")
    expect(inbox.rows).to_contain_text(["Do you have tulips?"])
    inbox.choose("Do you have tulips?").answer("Yes, red ones.")
    widget.expect("Do you have tulips?", "Yes, red ones.")
    expect(inbox.page.locator("#thread .status")).to_contain_text(re.compile("Sent|Delivered|Read"))
    widget.say("Two bunches, please.")

    expect(inbox.thread).to_have_text(["Do you have tulips?", "Yes, red ones.", "Two bunches, please."])
    wait_until(lambda: chat.service.query("SELECT 1 FROM conversations WHERE unread = 0"), 30, "it is read")
    assert inbox.page.evaluate("window.isSame")


def test_colleagues_see_each_others_answers_and_notes(talk: Inbox, visit: Visit, workspace: Workspace) -> None:
    other = Inbox(visit(workspace.email("admin")).page, workspace).open().choose("Do you have tulips?")
    expect(other.page.get_by_text("Also looking: agent")).to_be_visible()
    expect(talk.page.get_by_text("Also looking: admin")).to_be_visible()

    talk.answer("Yes, red ones.")
    talk.page.get_by_label("Note", exact=True).check()
    talk.answer("@admin: are there yellow ones too?")
    talk.expect_sent()

    said = ["Do you have tulips?", "Yes, red ones.", "@admin: are there yellow ones too?"]
    for each in (talk, other):
        expect(each.thread).to_have_text(said)
    expect(other.page.get_by_text("agent wrote a note: @admin: are there")).to_be_attached()
    expect(other.page.get_by_role("link", name="Notifications: 1 unread")).to_be_visible()
    drawn = other.page.locator("#thread .note")
    alive = drawn.inner_text()
    other.page.reload()
    expect(other.thread).to_have_text(said)
    assert drawn.inner_text() == alive
    expect(other.page.get_by_role("link", name="Notifications", exact=True)).to_be_visible()
    other.page.get_by_role("button", name="Delete this note").click()
    expect(talk.thread).to_have_text(said[:2])


def test_an_hour_of_an_agent_by_keyboard_alone(talk: Inbox, chat: Chat) -> None:
    keyboard = talk.page.keyboard
    talk.open()
    keyboard.press("j")
    keyboard.press("Enter")
    expect(talk.thread).to_have_text(["Do you have tulips?"])

    keyboard.press("r")
    expect(talk.box).to_be_focused()
    keyboard.type("Yes.")
    keyboard.press("Shift+Enter")
    keyboard.type("Red ones.")
    keyboard.press("Enter")
    expect(talk.thread).to_have_text(["Do you have tulips?", "Yes.\nRed ones."])
    talk.expect_sent()
    keyboard.press("Escape")
    keyboard.press("h")
    keyboard.type("in 1 hour")
    keyboard.press("Enter")
    expect(talk.page.get_by_role("status").filter(has_text="The conversation is snoozed")).to_be_visible()
    expect(talk.page.get_by_role("log", name="Messages")).to_be_focused()  # no further row is left
    keyboard.press("e")
    expect(talk.page.get_by_role("status").filter(has_text="The conversation is closed.")).to_be_visible()

    assert chat.service.query("SELECT status FROM conversations WHERE channel_id = %s", chat.id) == [("closed",)]


def test_what_is_written_while_the_network_is_away_arrives_once_and_in_order(
    talk: Inbox, widget: Widget, chat: Chat
) -> None:
    talk.page.context.set_offline(True)
    for number in range(4):
        talk.answer(f"Answer {number}")
    expect(talk.page.locator("#thread [data-pending]")).to_have_count(4)
    talk.page.wait_for_timeout(3_000)
    talk.page.context.set_offline(False)
    talk.expect_sent()

    said = ["Do you have tulips?", *(f"Answer {number}" for number in range(4))]
    expect(talk.thread).to_have_text(said)
    widget.expect(*said)
    assert len(chat.service.query("SELECT 1 FROM messages WHERE channel_id = %s", chat.id)) == 5


def test_a_closed_window_loses_no_answer(talk: Inbox, visit: Visit, widget: Widget, chat: Chat) -> None:
    talk.page.context.set_offline(True)
    talk.answer("Yes, red ones.")
    talk.box.fill("And")
    address = talk.page.url
    talk.page.context.set_offline(False)
    talk.page.goto(address)

    talk.expect_sent()
    expect(talk.box).to_have_value("And")
    widget.expect("Do you have tulips?", "Yes, red ones.")
    assert len(chat.service.query("SELECT 1 FROM messages WHERE channel_id = %s", chat.id)) == 2


def test_what_is_refused_is_back_in_the_box(talk: Inbox) -> None:
    talk.box.evaluate("box => { box.maxLength = 20000; }")
    talk.box.fill("x" * 4_097)
    talk.box.press("Enter")

    expect(talk.page.get_by_role("alert")).to_contain_text("4,097")
    expect(talk.box).to_have_value("x" * 4_097)
    expect(talk.page.locator("#thread [data-pending]")).to_have_count(0)


def test_a_picture_is_sent_and_shown(talk: Inbox, widget: Widget) -> None:
    talk.page.locator("#f-files").set_input_files(FilePayload(name="tulip.png", mimeType="image/png", buffer=PICTURE))
    talk.answer("Like these?")

    expect(talk.page.get_by_role("img", name="tulip.png")).to_be_visible()
    expect(widget.log.get_by_role("img", name="tulip.png")).to_be_visible()


def test_older_messages_come_at_the_top_and_nothing_moves(talk: Inbox, chat: Chat) -> None:
    chat.fill(120)
    talk.page.reload()
    expect(talk.thread).to_have_count(50)
    first = talk.thread.first.inner_text()

    talk.page.locator("#scrolled").evaluate("pane => { pane.scrollTop = 60; }")

    expect(talk.thread).to_have_count(100)
    expect(talk.thread.filter(has_text=re.compile(f"^{first}$"))).to_be_in_viewport()
    assert talk.thread.first.inner_text() == "Answer 22"
    talk.page.locator("#scrolled").evaluate("pane => { pane.scrollTop = 0; }")
    expect(talk.thread).to_have_count(121)
    expect(talk.page.locator("#older")).to_have_count(0)


def test_days_stand_above_their_first_message_in_the_readers_zone(
    talk: Inbox, visit: Visit, workspace: Workspace, widget: Widget, chat: Chat
) -> None:
    chat.fill(120)
    # Half of them on one day in UTC, and on two in Tokyo, where midnight is at 15:00.
    chat.service.query(
        "UPDATE messages SET provider_time = date_trunc('day', now() - interval '3 days', 'UTC') + interval '15 hours'"
        " + (split_part(text, ' ', 2)::int - 60) * interval '1 minute' WHERE channel_id = %s AND direction = 'out'",
        chat.id,
    )
    far = visit(workspace.email("agent"), timezone_id="Asia/Tokyo")
    tokyo = Inbox(far.page, workspace).open().choose("Do you have tulips?")
    days = far.page.locator("#thread .day")
    expect(days).to_have_count(2)
    expect(days.last).to_have_text("Today")
    today = days.last.element_handle()

    far.page.locator("#scrolled").evaluate("pane => { pane.scrollTop = 0; }")
    expect(tokyo.thread).to_have_count(100)
    far.page.locator("#scrolled").evaluate("pane => { pane.scrollTop = 0; }")
    expect(tokyo.thread).to_have_count(121)
    widget.say("Two bunches, please.")
    expect(tokyo.thread.last).to_have_text("Two bunches, please.")

    assert far.page.locator("#thread > *:has(+ .day) .text, #thread .day + * .text").all_inner_texts() == [
        *("Answer 1", "Answer 59", "Answer 60"),
        *("Answer 120", "Do you have tulips?"),
    ]
    expect(days).to_have_count(3)
    assert today is not None
    assert today.evaluate("day => day.isConnected"), "what is right is not drawn anew"


def test_on_a_phone_one_pane_is_shown_at_a_time(visit: Visit, workspace: Workspace, widget: Widget, chat: Chat) -> None:
    widget.open().say("Do you have tulips?")
    widget.expect_sent()
    phone = visit(workspace.email("agent"), viewport={"width": 390, "height": 800}, has_touch=True)
    inbox = Inbox(phone.page, workspace).open()
    panes = [phone.page.locator(f".{pane}") for pane in ("list", "talk", "side-pane")]

    def shown() -> list[bool]:
        return [pane.is_visible() for pane in panes]

    wait_until(lambda: inbox.open().rows.count(), 30, "the conversation is there")
    assert shown() == [True, False, False]
    inbox.choose("Do you have tulips?")
    assert shown() == [False, True, False]
    phone.page.get_by_role("link", name="Contact", exact=True).first.click()
    expect(panes[2]).to_be_visible()
    assert shown() == [False, False, True]
    phone.page.get_by_role("link", name="Conversation").click()
    expect(inbox.box).to_be_visible()
    phone.page.get_by_role("link", name="List").click()
    expect(inbox.rows).to_have_count(1)
    assert phone.page.evaluate("document.documentElement.scrollWidth") == 390


def test_without_the_script_it_is_forms(visit: Visit, workspace: Workspace, widget: Widget) -> None:
    widget.open().say("Do you have tulips?")
    widget.expect_sent()
    plain = visit(java_script_enabled=False)
    plain.sign_in(workspace.email("agent"))
    inbox = Inbox(plain.page, workspace)
    wait_until(lambda: inbox.open().rows.count(), 30, "the conversation is there")

    inbox.choose("Do you have tulips?")
    inbox.box.fill("Yes, red ones.")
    plain.page.get_by_role("button", name="Send", exact=True).click()

    expect(inbox.thread).to_have_text(["Do you have tulips?", "Yes, red ones."])
    widget.expect("Do you have tulips?", "Yes, red ones.")
