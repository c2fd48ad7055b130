"""Automations that begin as a template or as a file, for people who have neither drawn nor written one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from app.lib import json
from tests.app.domain.automations.imports.flow_samples import MENU
from tests.browser.conftest import Visit
from tests.browser.services import Workspace
from tests.browser.test_accessibility import faults


def choose(page: Page, workspace: Workspace, path: Path, content: bytes) -> None:
    """Takes a file with that content to the page that imports one."""
    path.write_bytes(content)
    page.goto(workspace.path("automations/import"))
    page.get_by_label("File", exact=True).set_input_files(path)
    page.get_by_role("button", name="Look at it").click()


def automations(workspace: Workspace) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = workspace.caller().get("automations")
    return found


def test_a_template_is_adopted_with_one_press_and_tried(visit: Visit, workspace: Workspace) -> None:
    page = visit(workspace.email("owner")).page
    page.goto(workspace.path("automations"))
    page.get_by_role("link", name="Templates").click()
    page.get_by_role("listitem").filter(has_text="A menu of buttons").get_by_role("button", name="Use it").click()

    expect(page.get_by_role("heading", level=1)).to_contain_text("draft")
    page.get_by_role("link", name="Edit", exact=True).click()
    page.get_by_role("link", name="Try it out").click()
    log = page.get_by_role("log", name="The chat")
    expect(log.get_by_role("listitem").first).to_be_visible()
    page.locator("#chat .offered").get_by_role("button").first.click()
    expect(log.locator(".in")).to_have_count(1)
    expect(page.locator(".canvas .step.gone").first).to_be_visible()


@pytest.mark.parametrize("width", [390, 1440])
def test_a_typebot_is_shown_with_the_place_of_all_that_has_no_equivalent(
    visit: Visit, workspace: Workspace, tmp_path: Path, width: int
) -> None:
    page = visit(workspace.email("owner"), viewport={"width": width, "height": 900}).page
    choose(page, workspace, tmp_path / "menu.json", json.dumps(MENU))

    expect(page.get_by_text("This is a typebot. Nothing has been created yet.")).to_be_visible()
    listed = page.get_by_role("region", name="What has no equivalent").locator("tbody tr")
    mail = listed.filter(has_text="There is no step that sends an e-mail")
    expect(mail).to_have_count(1)
    expect(mail.get_by_role("cell").first).to_have_text("Group “Person”, block 3 (Email)")
    expect(listed.filter(has_text="Group “Lonely”").first).to_be_visible()
    assert faults(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert automations(workspace) == []

    page.get_by_label("Name", exact=True).fill("Our menu")
    page.get_by_role("button", name="Create the draft").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Our menu")
    assert [(each["name"], each["status"]) for each in automations(workspace)] == [("Our menu", "draft")]


def test_a_broken_file_says_what_is_wrong_with_it(visit: Visit, workspace: Workspace, tmp_path: Path) -> None:
    page = visit(workspace.email("owner")).page
    for content, sentence in (
        (json.dumps(MENU)[:-200], "This is not JSON"),
        (b'{"groups": [1], "edges": []}', "The file is damaged"),
        (b'{"shopping": ["milk"]}', "none of the files that can be imported"),
    ):
        choose(page, workspace, tmp_path / "broken.json", content)
        field = page.get_by_label("File", exact=True)
        expect(field).to_have_attribute("aria-invalid", "true")
        expect(field).to_have_accessible_description(re.compile(sentence))
        assert faults(page) == []
    assert automations(workspace) == []
