"""A segment in a browser: what is wrong stands at its entry, it is counted, and leads to its contacts."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser import seeds
from tests.browser.conftest import Visit
from tests.browser.services import Workspace
from tests.browser.test_accessibility import faults


@pytest.mark.parametrize("script", [True, False], ids=["with the script", "without it"])
def test_a_segment_is_put_together_and_leads_to_its_contacts(visit: Visit, workspace: Workspace, script: bool) -> None:
    for name in ("Ada Lovelace", "Grace Hopper"):
        seeds.make_contact(workspace.caller(), name)
    page = visit(workspace.email("admin"), java_script_enabled=script).page
    main = page.get_by_role("main")

    page.goto(workspace.path("segments/new"))
    main.get_by_label("Name", exact=True).fill("Called Ada")
    main.get_by_label("What", exact=True).select_option("contact.custom_fields")
    main.get_by_role("button", name="Create the segment").click()
    custom = main.get_by_label("Custom field's name")
    expect(custom).to_have_attribute("aria-invalid", "true")
    expect(custom).to_have_accessible_description("Name the custom field.")
    expect(main.get_by_label("Name", exact=True)).to_have_value("Called Ada")

    main.get_by_label("What", exact=True).select_option("contact.first_name")
    main.get_by_label("Value").fill("ada")
    main.get_by_role("button", name="Count").click()
    expect(main.get_by_role("status")).to_have_text("1 contact is in it now.")
    expect(main.get_by_role("link", name=re.compile("Ada"))).to_be_visible()

    main.get_by_role("button", name="Add a group").click()
    group = main.get_by_role("group", name="Group 2")
    group.get_by_label("Value").fill("vip")
    group.get_by_role("button", name="Add a comparison").click()
    group.get_by_label("Value").nth(1).fill("regular")
    if script:  # axe needs it
        assert faults(page) == []
    main.get_by_role("button", name="Count").click()
    expect(main.get_by_role("status")).to_have_text("1 contact is in it now.")
    expect(main.get_by_label("It holds if").nth(1)).to_have_value("any")
    main.get_by_role("button", name="Create the segment").click()
    main.get_by_role("link", name="Called Ada").click()
    main.get_by_role("link", name="See its contacts").click()

    expect(main.get_by_role("link", name=re.compile("Ada"))).to_be_visible()
    expect(main.get_by_role("link", name=re.compile("Grace"))).to_have_count(0)


def test_a_form_with_errors_and_the_filter_of_an_agent_are_accessible(visit: Visit, workspace: Workspace) -> None:
    within = {"not": {"field": "contact.email", "is": "exists"}}
    segment = workspace.caller().apply("POST", "segments", {"name": "Others", "filter": within}).data["id"]
    page = visit(workspace.email("admin")).page
    page.goto(workspace.path("segments/new"))
    page.get_by_role("main").get_by_role("button", name="Create the segment").click()
    assert faults(page) == []
    page.goto(workspace.path(f"segments/{segment}"))
    assert faults(page) == []

    page = visit(workspace.email("agent")).page
    page.goto(workspace.path(f"segments/{segment}"))
    expect(page.get_by_role("main")).to_contain_text("it is not so that the contact's email is known")
    assert faults(page) == []
