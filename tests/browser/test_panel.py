"""Details beside a list: by mouse and by keys, with an address to share; the page itself where there is no room."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser import seeds
from tests.browser.conftest import Visit
from tests.browser.services import Service, Workspace
from tests.browser.test_accessibility import faults, width
from tests.browser.walks import reload_until

WIDE = {"width": 1440, "height": 900}


@pytest.fixture
def list_path(service: Service, workspace: Workspace) -> str:
    """The list of deliveries, with three rows."""
    seeds.make_endpoint(service, workspace, "orders")
    for name in ("ada", "bob", "eve"):
        workspace.caller().apply("POST", "contacts", {"email": f"{name}@example.com"})
    return workspace.path("dashboard/deliveries")


def shown(page: Page, list_path: str) -> tuple[list[str], Locator]:
    """The list, opened: the paths of its rows, and where the panel is."""
    page.goto(list_path)
    links = page.locator("main table[data-panel] .lead a")
    expect(links).to_have_count(3)
    return [str(link.get_attribute("href")) for link in links.all()], page.locator("aside.panel")


def ends(path: str) -> re.Pattern[str]:
    return re.compile(re.escape(path) + "$")


def test_a_row_opens_beside_the_list_and_back_closes_it(visit: Visit, workspace: Workspace, list_path: str) -> None:
    visitor = visit(workspace.email("agent"), viewport=WIDE)
    page = visitor.page
    paths, panel = shown(page, list_path)
    page.evaluate("window.isTheSame = true")

    page.locator("main .lead a").nth(1).click()

    expect(page.get_by_role("complementary", name="Details: Delivery of contact.created")).to_be_focused()
    expect(panel.get_by_role("heading", name="The request")).to_be_visible()
    expect(page).to_have_url(ends(paths[1]))
    expect(page).to_have_title(re.compile("^Delivery of"))
    expect(page.locator("main table")).to_be_visible()
    assert faults(page) == []
    assert width(page) <= WIDE["width"]
    shared = visitor.context.new_page()
    shared.goto(page.url)
    expect(shared.get_by_role("heading", level=1)).to_have_text("Delivery of contact.created")
    page.locator("main tbody tr").nth(2).locator("td").first.click()
    expect(page).to_have_url(ends(paths[2]))

    page.go_back()
    expect(panel).to_have_count(0)
    expect(page).to_have_url(ends(list_path))
    expect(page).to_have_title(re.compile("^Deliveries"))
    page.go_forward()
    expect(panel).to_be_visible()
    panel.get_by_role("button", name="Close").click()
    expect(panel).to_have_count(0)
    page.get_by_label("State").select_option("delivered")
    expect(page).to_have_url(re.compile(re.escape(list_path) + r"\?.*status=delivered"))
    assert page.evaluate("window.isTheSame") is None  # only the filter loaded a page


def test_keys_go_from_row_to_row_while_details_are_open(visit: Visit, workspace: Workspace, list_path: str) -> None:
    page = visit(workspace.email("agent"), viewport=WIDE).page
    paths, panel = shown(page, list_path)

    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page).to_have_url(ends(paths[0]))
    expect(panel).to_be_focused()
    for key, place in (("j", 1), ("j", 2), ("k", 1)):
        page.keyboard.press(key)
        expect(page).to_have_url(ends(paths[place]))
        expect(panel.locator("dl")).to_contain_text(paths[place].rpartition("/")[2])
        expect(page.locator("main .lead a").nth(place)).to_be_focused()

    page.keyboard.press("Escape")
    expect(panel).to_have_count(0)
    expect(page).to_have_url(ends(list_path))
    expect(page.locator("main .lead a").nth(1)).to_be_focused()


def test_a_page_that_was_loaded_again_goes_back_to_its_list(visit: Visit, workspace: Workspace, list_path: str) -> None:
    page = visit(workspace.email("agent"), viewport=WIDE).page
    _, panel = shown(page, list_path)
    page.locator("main .lead a").first.click()
    expect(panel).to_be_visible()
    page.reload()
    expect(page.get_by_role("heading", level=1)).to_have_text("Delivery of contact.created")

    page.go_back()

    expect(page).to_have_url(ends(list_path))
    expect(page.get_by_role("heading", level=1)).to_have_text("Deliveries")


@pytest.mark.parametrize("options", [{"viewport": {"width": 390, "height": 844}}, {"java_script_enabled": False}])
def test_without_room_or_script_it_is_the_page(
    visit: Visit, workspace: Workspace, list_path: str, options: dict[str, object]
) -> None:
    page = visit(workspace.email("agent"), **options).page
    paths, panel = shown(page, list_path)

    page.locator("main .lead a").first.click()

    expect(page.get_by_role("heading", level=1)).to_have_text("Delivery of contact.created")
    expect(page).to_have_url(ends(paths[0]))
    expect(panel).to_have_count(0)


@pytest.mark.parametrize(
    ("path", "heading"), [("jobs", "Job contacts.upsert"), ("runs", "Run of Welcome"), ("failures", "Deliveries")]
)
def test_other_lists_do_the_same(service: Service, visit: Visit, workspace: Workspace, path: str, heading: str) -> None:
    caller = workspace.caller()
    if path == "failures":
        service.receiver.answers[f"/{workspace.id}/down"] = 503
        seeds.make_endpoint(service, workspace, "down")
    contact = seeds.make_contact(caller, "Ada Lovelace")
    if path == "runs":
        caller.apply("POST", f"automations/{seeds.make_automation(caller, 'Welcome')}/start", {"contact_id": contact})
    page = visit(workspace.email("owner"), viewport=WIDE).page
    links = page.locator("main table[data-panel] .lead a").filter(has_text=re.compile("contacts.upsert|Welcome|503"))
    page.goto(workspace.path(f"dashboard/{path}"))
    reload_until(page, links.count)

    links.first.click()

    panel = page.locator("aside.panel")
    expect(panel.get_by_role("heading", level=1)).to_have_text(heading)
    assert faults(page) == []
    page.keyboard.press("Escape")
    expect(panel).to_have_count(0)
    expect(links.first).to_be_focused()
