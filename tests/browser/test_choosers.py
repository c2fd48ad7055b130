"""Selects with many options, which are found by typing."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Visit
from tests.browser.services import Workspace
from tests.browser.test_accessibility import faults

NAMES = ("Welcome", "Birthday", "Spring sale", "Summer sale")


@pytest.fixture
def form(workspace: Workspace) -> str:
    """The form of a new step, for which there are 17 automations."""
    caller = workspace.caller()
    draft = {"steps": [{"id": "mark", "kind": "add_tag", "tag": "new"}]}
    for name in (*NAMES, *(f"Campaign {number}" for number in range(12))):
        caller.apply("POST", "automations", {"name": name, "definition": draft})
    made = caller.apply("POST", "automations", {"name": "Starter", "definition": draft})
    return workspace.path(f"automations/{made.data['id']}/edit/new")


def begin(page: Page, form: str) -> Locator:
    """Adds a step that starts an automation; returns the input for which."""
    page.goto(form)
    page.get_by_role("button", name="Start an automation").click()
    return page.get_by_label("Automation", exact=True)


def test_an_automation_is_found_by_typing_a_part_of_its_name(visit: Visit, workspace: Workspace, form: str) -> None:
    page = visit(workspace.email("owner")).page
    box = begin(page, form)
    box.press_sequentially("sale")
    options = page.get_by_role("listbox").get_by_role("option")
    expect(options).to_have_text(["Summer sale", "Spring sale"])
    assert faults(page) == []

    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")

    expect(page.get_by_role("listbox")).to_be_hidden()
    expect(page.locator(".canvas .step.open")).to_contain_text("Spring sale")
    expect(box).to_have_value("Spring sale")
    page.reload()
    expect(box).to_have_value("Spring sale")


def test_escape_and_an_unknown_name_choose_nothing(visit: Visit, workspace: Workspace, form: str) -> None:
    page = visit(workspace.email("owner")).page
    box = begin(page, form)
    box.fill("birthday")
    page.keyboard.press("Escape")
    expect(box).to_have_value("Choose …")
    box.fill("no such name")
    expect(page.get_by_text("Nothing is called like that.")).to_be_visible()
    page.keyboard.press("Enter")
    expect(box).to_have_value("Choose …")
    box.click()
    page.get_by_role("option", name="Birthday").click()
    expect(box).to_have_value("Birthday")
    expect(page.locator(".canvas .step.open")).to_contain_text("Birthday")


def test_without_the_script_it_is_a_select(visit: Visit, workspace: Workspace, form: str) -> None:
    page = visit(workspace.email("owner"), java_script_enabled=False).page
    begin(page, form).select_option(label="Welcome")
    page.locator("#panel").get_by_role("button", name="Save", exact=True).click()
    expect(page.locator(".canvas .step").filter(has_text="Welcome")).to_have_count(1)


def test_few_options_stay_a_select(visit: Visit, workspace: Workspace) -> None:
    draft = {"steps": [{"id": "who", "kind": "assign_conversation", "assignee_id": None}]}
    made = workspace.caller().apply("POST", "automations", {"name": "Assigner", "definition": draft})
    page = visit(workspace.email("owner")).page
    page.goto(workspace.path(f"automations/{made.data['id']}/edit/step?step=who"))
    page.get_by_label("Assign to").select_option(label="agent")
    expect(page.get_by_role("combobox", name="Assign to")).to_have_js_property("tagName", "SELECT")
