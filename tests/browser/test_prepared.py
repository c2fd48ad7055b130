"""What a workspace prepares for its inbox in a browser: saved replies, macros, and who is there to answer."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.browser import seeds
from tests.browser.conftest import Visit
from tests.browser.services import Workspace


def test_a_saved_reply_is_seen_filled_in_and_a_macro_is_put_together(visit: Visit, workspace: Workspace) -> None:
    seeds.make_contact(workspace.caller(), "Ada Lovelace")
    page = visit(workspace.email("admin")).page
    main = page.get_by_role("main")
    page.goto(workspace.path("saved-replies/new"))
    main.get_by_label("Shortcut").fill("refund")
    main.get_by_label("Text").fill("Hello ")
    main.get_by_text("Fields that are filled in").click()
    main.get_by_role("button", name="contact.first_name").click()
    expect(main.get_by_label("Text")).to_have_value(re.compile(r"^Hello \{\{ contact\.first_name \}\}$"))
    expect(main.locator("#preview")).to_have_text("Hello Ada")
    main.get_by_role("button", name="Create the saved reply").click()
    expect(main.get_by_role("link", name=re.compile("refund"))).to_be_visible()

    page.goto(workspace.path("macros/new"))
    main.get_by_label("Name").fill("Refund")
    for kind in ("note", "label", "close"):
        main.locator("[name=add_kind]").select_option(kind)
        main.get_by_role("button", name="Add", exact=True).click()
    rows = main.locator("#rows > li")
    expect(rows).to_have_count(3)
    main.get_by_label("Text").fill("Refunded")
    main.get_by_label("Labels, one a line").fill("refund")
    rows.nth(2).get_by_role("button", name=re.compile("^Move up")).press("Enter")
    expect(rows.nth(1)).to_contain_text("Close")
    rows.nth(1).get_by_role("button", name=re.compile("^Remove")).press("Enter")
    main.get_by_role("button", name="Create the macro").click()
    expect(main.get_by_role("link", name="Refund", exact=True)).to_be_visible()
    [macro] = workspace.caller().get("macros")
    assert [each["kind"] for each in macro["actions"]] == ["note", "label"]


def test_who_goes_away_is_away_in_all_tabs(visit: Visit, workspace: Workspace) -> None:
    visitor = visit(workspace.email("agent"))
    page, other = visitor.page, visitor.context.new_page()
    for each in (page, other):
        each.goto(workspace.path("contacts"))
        expect(each.locator("[data-standing]")).to_have_text("available")

    page.locator(".menu > summary").click()
    page.get_by_role("button", name="Away", exact=True).click()

    for each in (page, other):
        expect(each.locator("[data-standing]")).to_have_text("away")
    expect(page.locator("#availability-said")).not_to_be_empty()
    page.reload()
    expect(page.locator("[data-standing]")).to_have_text("away")
