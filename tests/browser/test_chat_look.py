"""What a visitor of a web chat sees of the workspace, and when messages were sent and read."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from app.channels.web_chat import DAYS
from app.lib import json
from tests.browser.shop import Chat, Shop, Widget
from tests.browser.test_accessibility import AXE, GRAVE
from tests.journeys.waiting import wait_until

HOSTILE = "Hello <img src=x onerror=ran()>, how can we help?"


def dress(chat: Chat, shop: Shop, widget: Widget, **settings: object) -> None:
    """Gives the chat these settings, and opens it on a page whose browser has not kept the script."""
    chat.service.query(
        "UPDATE channels SET settings = (settings::jsonb || %s)::json WHERE id = %s RETURNING id",
        *(json.dumps(settings).decode(), chat.id),
    )
    shop.script += "?dressed"
    widget.page.reload()
    widget.open()


def test_a_visitor_is_greeted_and_sees_that_the_question_was_read(widget: Widget, chat: Chat, shop: Shop) -> None:
    always = {day: [{"from": "00:00", "to": "00:00"}] for day in DAYS}
    picture = f"{shop.origin}/logo.png"  # not there
    dress(chat, shop, widget, greeting=HOSTILE, color="#ffee00", opening_hours=always, picture=picture)

    expect(widget.panel.get_by_text(HOSTILE)).to_be_visible()
    expect(widget.panel.get_by_text("We are here now")).to_be_visible()
    expect(widget.panel.locator("header img")).to_have_count(0)
    assert widget.stored() == "{}"
    assert chat.count("visitors") == 0
    widget.page.evaluate(AXE)
    found = widget.page.evaluate("axe.run()")["violations"]
    assert [each["id"] for each in found if each["impact"] in GRAVE] == []

    widget.say("Do you have tulips?")
    widget.expect_sent()
    receipt = widget.panel.locator(".receipt")
    expect(receipt).to_have_text("Sent")
    expect(widget.log.locator("time")).to_have_text(re.compile(r"\d:\d\d"))
    assert "T" in (widget.log.locator("time").get_attribute("datetime") or "")
    read = "UPDATE conversations SET unread = 0 WHERE channel_id = %s AND unread > 0 RETURNING id"
    wait_until(lambda: chat.service.query(read, chat.id), 30, "the message arrived")
    expect(receipt).to_have_text("Read")
    chat.answer("Yes.")
    expect(receipt).to_be_hidden()


def test_who_comes_when_it_is_closed_sees_when_it_opens(widget: Widget, chat: Chat, shop: Shop) -> None:
    today = chat.service.query("SELECT extract(isodow FROM now() AT TIME ZONE 'UTC')::int")[0][0]
    in_three_days = DAYS[(today + 2) % 7]
    dress(chat, shop, widget, opening_hours={in_three_days: [{"from": "09:00", "to": "17:00"}]})

    expect(widget.panel.get_by_text(re.compile(rf"Away\. Back {in_three_days.capitalize()}.* 9:00"))).to_be_visible()
