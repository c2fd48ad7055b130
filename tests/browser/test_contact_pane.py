"""The contact beside a conversation in a browser: changed, tagged and merged there, while one writes."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, expect

from app.lib import ids
from tests.browser import seeds
from tests.browser.conftest import Visit
from tests.browser.services import Service, Workspace
from tests.browser.test_inbox import Inbox


@pytest.fixture
def ada(service: Service, workspace: Workspace) -> str:
    """A contact with a conversation, who may be the same person as another, with a tag that others have."""
    caller = workspace.caller()
    channel = seeds.make_web_chat(caller, "Flowers")
    ada, other = seeds.make_contact(caller, "Ada Lovelace"), seeds.make_contact(caller, "Augusta King")
    caller.apply("POST", f"contacts/{other}/tags", {"name": "late payer"})
    seeds.make_conversation(service, workspace, channel, ada, 3)
    first, second = sorted((ada, other))
    service.query(
        "INSERT INTO suggested_merges (id, workspace_id, contact_id, other_id, reason) VALUES (%s, %s, %s, %s, %s)",
        *(ids.new("sgm"), workspace.id, first, second, "same_phone"),
    )
    return ada


def side_of(inbox: Inbox) -> Locator:
    return inbox.page.get_by_role("complementary", name="Contact")


def test_a_contact_is_changed_while_one_writes(service: Service, visit: Visit, workspace: Workspace, ada: str) -> None:
    inbox = Inbox(visit(workspace.email("agent")).page, workspace).open().choose("Where can I find the invoice")
    page, side = inbox.page, side_of(inbox)
    page.evaluate("window.isSame = true")
    inbox.box.fill("Half of an answer")

    side.get_by_text("Change", exact=True).click()
    side.get_by_label("Last name").fill("Byron")
    side.get_by_label("Phone").fill("12")
    side.get_by_label("Name of custom field").fill("size")
    side.get_by_label("Value of custom field").fill("XL")
    side.get_by_role("button", name="Save").click()
    expect(side.get_by_label("Phone")).to_be_focused()
    expect(side.get_by_label("Phone")).to_have_attribute("aria-invalid", "true")
    expect(side.get_by_label("Last name")).to_have_value("Byron")
    workspace.caller().apply("PATCH", f"contacts/{ada}", {"last_name": "King"})
    side.get_by_label("Phone").fill("+49 30 123456")
    side.get_by_role("button", name="Save").click()
    expect(side.get_by_role("alert")).to_contain_text("Somebody has changed this contact")
    expect(side.get_by_text("Now: King.")).to_be_visible()
    side.get_by_role("button", name="Save").click()

    for name in (side.get_by_role("heading", level=2), page.locator(".top h2"), inbox.rows.locator(".name")):
        expect(name).to_have_text("Ada Byron")
    expect(side.locator("dl").get_by_text("XL")).to_be_visible()
    expect(side.get_by_label("Last name")).to_be_hidden()
    side.get_by_label("Another tag").focus()
    expect(side.locator("datalist option")).to_have_count(2)
    side.get_by_label("Another tag").fill("regular")
    side.get_by_label("Another tag").press("Enter")
    expect(side.get_by_role("listitem").filter(has_text="regular")).to_be_visible()
    side.get_by_role("button", name="Remove the tag vip").click()
    expect(side.get_by_role("listitem").filter(has_text="vip")).to_have_count(0)
    side.get_by_text("What happened lately").click()
    expect(side.get_by_role("link", name="contact.updated").first).to_be_visible()
    expect(side.get_by_role("link", name="contacts.update").first).to_be_hidden()

    expect(inbox.box).to_have_value("Half of an answer")
    assert page.evaluate("window.isSame")
    found = service.query("SELECT last_name, phone, tags, custom_fields FROM contacts WHERE id = %s", ada)
    assert found == [("Byron", "+4930123456", ["regular"], {"size": "XL"})]


@pytest.mark.parametrize("has_script", [True, False])
def test_two_contacts_become_one_after_a_question(
    service: Service, visit: Visit, workspace: Workspace, ada: str, has_script: bool
) -> None:
    window = visit(java_script_enabled=has_script)
    window.sign_in(workspace.email("agent"))
    inbox = Inbox(window.page, workspace).open().choose("Where can I find the invoice")
    side = side_of(inbox)
    expect(side.get_by_text("has the same phone number")).to_be_visible()

    side.get_by_text("Merge …").click()
    expect(side.get_by_text("This cannot be undone.")).to_be_visible()
    side.get_by_role("button", name="Merge them").click()

    expect(side.get_by_text("May be the same person")).to_have_count(0)
    expect(side.get_by_role("listitem").filter(has_text="late payer")).to_be_visible()
    assert service.query("SELECT id FROM contacts WHERE workspace_id = %s", workspace.id) == [(ada,)]


def test_without_the_script_the_fields_are_a_form(
    service: Service, visit: Visit, workspace: Workspace, ada: str
) -> None:
    plain = visit(java_script_enabled=False)
    plain.sign_in(workspace.email("agent"))
    inbox = Inbox(plain.page, workspace).open().choose("Where can I find the invoice")
    side = side_of(inbox)
    side.get_by_text("Change", exact=True).click()
    side.get_by_label("E-mail").fill("ada at home")
    side.get_by_role("button", name="Save").click()
    expect(side.get_by_label("E-mail")).to_have_attribute("aria-invalid", "true")
    side.get_by_label("E-mail").fill("ada@home.example")
    side.get_by_role("button", name="Save").click()

    expect(plain.page.get_by_text("The contact is changed.")).to_be_visible()
    assert service.query("SELECT email FROM contacts WHERE id = %s", ada) == [("ada@home.example",)]
