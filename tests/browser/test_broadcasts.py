"""A broadcast in a browser: to whom, what, first to one, then to the rest, and what became of it."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, expect

from tests.browser import seeds
from tests.browser.bots import TalkingBot
from tests.browser.conftest import Visit
from tests.browser.services import Workspace
from tests.browser.test_accessibility import faults
from tests.providers.telegram_people import Person

ANSWERS = ("One bunch", "Two bunches", "Three bunches", "None")
PEOPLE = [Person(7_300_000 + number, name, None) for number, name in enumerate(("Ada", "Bob", "Cleo"))]


def test_a_message_goes_to_a_segment_first_to_one_and_then_to_the_rest(
    bot: TalkingBot, visit: Visit, workspace: Workspace
) -> None:
    for person in PEOPLE:
        bot.hear(person, f"Hello from {person.first_name}")
    page = visit(workspace.email("admin")).page
    main = page.get_by_role("main")

    page.goto(workspace.path("segments/new"))
    main.get_by_label("Name", exact=True).fill("People on Telegram")
    main.get_by_label("What", exact=True).select_option("contact.channel_kinds")
    main.get_by_label("Value").fill("telegram")
    main.get_by_role("button", name="Add a comparison").click()
    main.get_by_label("What", exact=True).nth(1).select_option("contact.opted_out")
    main.get_by_label("How").nth(1).select_option("equals")
    main.get_by_label("Value").nth(1).fill("false")
    main.get_by_role("button", name="Count").click()
    expect(main.get_by_role("status")).to_have_text("3 contacts are in it now.")
    assert faults(page) == []
    main.get_by_role("button", name="Create the segment").click()
    expect(main.get_by_role("link", name="People on Telegram")).to_be_visible()

    page.goto(workspace.path("broadcasts"))
    main.get_by_role("link", name="New broadcast …").click()
    main.get_by_label("Name", exact=True).fill("Autumn sale")
    main.get_by_label("Who", exact=True).select_option("People on Telegram")
    text = main.get_by_label("Message", exact=True)
    text.fill("Hello , tulips are half the price.")
    text.evaluate("text => text.setSelectionRange(6, 6)")
    main.get_by_text("Fields that are filled in").click()
    main.get_by_role("button", name="{{ contact.first_name }}").click()
    main.get_by_role("button", name="Preview").click()
    expect(main.get_by_label("The message for this contact")).to_have_text("Hello Cleo, tulips are half the price.")
    main.get_by_label("The message for", exact=True).select_option("Bob")
    main.get_by_role("button", name="Preview").click()
    expect(main.get_by_label("The message for this contact")).to_have_text("Hello Bob, tulips are half the price.")
    assert faults(page) == []
    see_it_on_each_channel(main, workspace)
    assert faults(page) == []

    main.get_by_text("Send one of 3 contacts …").click()
    expect(main.get_by_text("It reaches one of 3 contacts now. The rest waits for you.")).to_be_visible()
    main.get_by_role("button", name="Send one of 3 contacts").click()
    expect(main.get_by_text("One contact was reached first.")).to_be_visible()
    assert faults(page) == []
    main.get_by_role("button", name="Send the rest").click()
    expect(main.locator("#progress .state")).to_have_text("done", timeout=60_000)
    expect(main.locator("#progress")).to_contain_text("3 of 3 contacts are done")

    bot.hear(PEOPLE[1], "How nice!")
    page.goto(page.url + "?outcome=replied")
    expect(main.get_by_role("row").filter(has_text=re.compile("Bob"))).to_be_visible()
    expect(main.get_by_role("row").filter(has_text=re.compile("Ada"))).to_have_count(0)
    assert faults(page) == []


def see_it_on_each_channel(main: Locator, workspace: Workspace) -> None:
    """The preview with answers to pick from: Bob gets them on Telegram, and why he gets nothing in a web chat."""
    seeds.make_web_chat(workspace.caller(), "Flowers")
    main.get_by_text("Buttons, a template, or an automation instead").click()
    main.get_by_label("Answers to pick from", exact=True).fill("\n".join(ANSWERS))
    main.get_by_role("button", name="Preview").click()
    cards = main.get_by_role("list", name="The message on each kind of channel").locator("> li")
    expect(cards).to_have_count(2)
    telegram, chat = cards.filter(has_text="Telegram"), cards.filter(has_text="Flowers")
    expect(telegram).to_contain_text("They get it here")
    expect(telegram.get_by_role("list", name="Answers to pick from").get_by_role("listitem")).to_have_text(ANSWERS)
    expect(chat).to_contain_text("The contact has no address on this channel.")
    expect(chat.get_by_role("list", name="Answers to pick from").get_by_role("listitem")).to_have_text(ANSWERS)
