"""What comes back and what is shared out: snoozes, mentions, capacity with its queue, and a window that is closed."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import expect

from tests.browser.bots import TalkingBot
from tests.browser.conftest import Visit
from tests.browser.services import Service, Workspace
from tests.browser.test_accessibility import faults
from tests.browser.test_inbox import Inbox
from tests.journeys.waiting import wait_until
from tests.providers import whatsapp
from tests.providers.telegram_people import Person
from tests.providers.whatsapp import WhatsAppServer

PEOPLE = [Person(7_200_000 + number, f"Person{number}", None) for number in range(3)]
PHONE, DAY_SECONDS = "15550000025", 86_400
Open = Callable[[str, str], Inbox]


@pytest.fixture
def open_inbox(visit: Visit, workspace: Workspace) -> Open:
    """Opens the inbox of the member with that role, at that query."""
    return lambda role, query: Inbox(visit(workspace.email(role)).page, workspace).open(query)


@pytest.fixture
def phone(service: Service) -> Iterator[WhatsAppServer]:
    """WhatsApp, which is there during the story."""
    played = WhatsAppServer(service.stack.certificates.ca_file.parent, service.whatsapp_port)
    played.start()
    yield played
    played.stop()


def test_a_snoozed_conversation_is_back_when_they_write_and_when_its_time_is_over(
    bot: TalkingBot, service: Service, workspace: Workspace, open_inbox: Open
) -> None:
    bot.hear(PEOPLE[0], "Do you have tulips?")
    agent = open_inbox("agent", "").choose("Do you have tulips?")
    snoozed = agent.page.locator("[data-count=snoozed]")

    def snooze() -> None:
        agent.page.keyboard.press("h")
        expect(agent.page.locator("#f-until")).to_be_focused()
        agent.page.keyboard.type("in 2 hours")
        agent.page.keyboard.press("Enter")
        expect(snoozed).to_have_text("1")

    snooze()
    bot.hear(PEOPLE[0], "Are you there?")
    expect(snoozed).to_have_text("0")
    expect(agent.thread).to_have_text(["Do you have tulips?", "Are you there?"])
    expect(agent.page.locator("#talk > header")).not_to_contain_text("snoozed until")
    snooze()
    agent.open()
    expect(agent.rows).to_have_count(0)

    service.query("UPDATE conversations SET snoozed_until = now() WHERE workspace_id = %s", workspace.id)

    expect(agent.rows.filter(has_text="Are you there?")).to_have_count(1)
    expect(snoozed).to_have_text("0")


def test_who_is_mentioned_in_a_note_is_told_and_led_there(bot: TalkingBot, open_inbox: Open) -> None:
    bot.hear(PEOPLE[0], "My order is broken.")
    other = open_inbox("admin", "?view=snoozed").page
    agent = open_inbox("agent", "").choose("My order is broken.")

    agent.page.keyboard.press("n")
    expect(agent.box).to_be_focused()
    agent.page.keyboard.type("@admin may I refund this?")
    agent.page.keyboard.press("Enter")
    agent.expect_sent()

    expect(other).to_have_title(re.compile(r"^\(1\) "))
    other.get_by_role("link", name="Notifications: 1 unread").click()
    told = other.locator(".bell-list")
    expect(told).to_contain_text("You were mentioned")
    told.get_by_role("link").filter(has_text="You were mentioned").click()
    expect(other.locator("#thread .note")).to_contain_text("@admin may I refund this?")
    expect(other).not_to_have_title(re.compile(r"^\("))
    assert bot.said() == {}


def test_what_others_do_is_seen_but_not_under_somebodys_hands(
    bot: TalkingBot, service: Service, workspace: Workspace, open_inbox: Open
) -> None:
    bot.hear(PEOPLE[0], "My order is broken.")
    one, other = (open_inbox(role, "").choose("My order is broken.") for role in ("agent", "admin"))
    [(talk,)] = service.query("SELECT id FROM conversations WHERE workspace_id = %s", workspace.id)
    for each in (one, other):
        expect(each.page.locator("#viewers")).to_be_visible()
    one.page.keyboard.press("l")
    one.page.keyboard.type("bro")

    changes = {"labels": ["refund"], "assignee_id": service.member_id(workspace, "admin")}
    workspace.caller().apply("PATCH", f"conversations/{talk}", changes)

    marks = "Assigned to admin"
    expect(other.page.locator("#talk .marks")).to_contain_text(marks)
    expect(other.page.locator("#talk .marks")).to_contain_text("refund")
    expect(one.rows.first).to_contain_text("refund")
    expect(one.page.locator("#f-label")).to_have_value("bro")
    expect(one.page.locator("#talk .marks")).to_have_count(0)
    one.page.locator("#talk summary", has_text="Label").click()
    expect(one.page.locator("#talk .marks")).to_contain_text(marks)

    workspace.caller().apply("PATCH", f"conversations/{talk}", {"status": "closed"})
    for each in (one, other):
        expect(each.page.get_by_role("button", name="Open again")).to_be_visible()


def test_who_has_room_again_gets_the_one_who_waits(
    bot: TalkingBot, service: Service, workspace: Workspace, open_inbox: Open
) -> None:
    caller = workspace.caller()
    sharing = [service.member_id(workspace, role) for role in ("agent", "admin")]
    for member_id in sharing:
        caller.apply("PATCH", f"members/{member_id}", {"availability": "available", "capacity": 1})
    balanced = {"settings": {"assignment": "balanced", "member_ids": sharing}}
    caller.apply("PATCH", f"channels/{bot.id}", balanced)
    agent, admin = (open_inbox(role, "?view=mine") for role in ("agent", "admin"))

    for person in PEOPLE:
        bot.hear(person, f"{person.first_name} waits.")

    for each in (agent, admin):
        expect(each.rows).to_have_count(1)
        expect(each.page.locator("[data-count=unassigned]")).to_have_text("1")
    [last] = service.query(
        "SELECT conversation_id FROM messages JOIN conversations ON conversations.id = conversation_id"
        " WHERE text = %s AND assignee_id IS NULL",
        f"{PEOPLE[2].first_name} waits.",
    )
    agent.choose("waits.")
    agent.page.keyboard.press("e")

    expect(agent.rows.filter(has_text=f"{PEOPLE[2].first_name} waits.")).to_have_count(1)
    for each in (agent, admin):
        expect(each.page.locator("[data-count=unassigned]")).to_have_text("0")
    assignee = "SELECT assignee_id FROM conversations WHERE id = %s"
    assert service.query(assignee, *last) == [(sharing[0],)]


def test_outside_the_window_only_a_template_goes_out(
    phone: WhatsAppServer, workspace: Workspace, open_inbox: Open
) -> None:
    caller = workspace.caller()
    settings = {"phone_number_id": whatsapp.NUMBER}
    channel = {"kind": "whatsapp", "name": "Phone", "credentials": whatsapp.CREDENTIALS, "settings": settings}
    channel_id = caller.apply("POST", "channels", channel).data["id"]
    wait_until(lambda: caller.get(f"channels/{channel_id}")["state"] == "connected", 60, "the phone is connected")

    def write(text: str, at: float) -> None:
        wrote = whatsapp.message(f"wamid.{channel_id}-{at}", at, PHONE, text=text)
        body = whatsapp.webhook(contacts=[whatsapp.person(PHONE, None, "Ada")], messages=[wrote])
        assert phone.push(f"{workspace.base_url}/hooks/whatsapp/{channel_id}", body, whatsapp.signed(body))[0] == 200

    write("When does it arrive?", time.time() - DAY_SECONDS - 60)
    inbox = open_inbox("agent", "")
    expect(inbox.rows).to_have_count(1)
    inbox.choose("When does it arrive?")
    page = inbox.page

    expect(page.get_by_role("group", name="The window for free text is closed")).to_be_visible()
    assert faults(page) == []
    page.get_by_label("Template").fill("order_update")
    page.get_by_label("Parameters, one a line").fill("Friday")
    inbox.box.fill("It arrives on Friday.")
    page.get_by_role("button", name="Send", exact=True).click()

    wait_until(lambda: phone.messages, 60, "the template is sent")
    [sent] = phone.messages.values()
    assert (sent["type"], sent["template"]["name"]) == ("template", "order_update")
    assert "Friday" in str(sent["template"]["components"])
    expect(inbox.thread).to_have_text(["When does it arrive?", "It arrives on Friday."])
    inbox.expect_sent()
    inbox.box.fill("Anything else?")
    write("Thank you!", time.time())
    expect(page.get_by_text("Free text until")).to_be_visible()
    expect(page.get_by_role("group", name="The window for free text is closed")).to_have_count(0)
    expect(inbox.box).to_have_value("Anything else?")
