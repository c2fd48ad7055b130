"""Automations in a browser: drawn, tried out, mended and published by people, alone and together."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser import seeds
from tests.browser.conftest import Visit
from tests.browser.hostile import TEXT
from tests.browser.services import Service, Workspace
from tests.browser.shop import Widget
from tests.browser.test_accessibility import faults
from tests.stack.receiver import Answer

MOST_SECONDS = 180
STEPS: list[dict[str, Any]] = [
    {"id": "hello", "kind": "send_message", "text": "Hello"},
    {"id": "bye", "kind": "send_message", "text": "Goodbye"},
]


@pytest.fixture
def edit(workspace: Workspace) -> str:
    """The path of the editor of an automation with two messages."""
    made = workspace.caller().apply("POST", "automations", {"name": "Greeting", "definition": {"steps": STEPS}})
    return workspace.path(f"automations/{made.data['id']}/edit")


def panel(page: Page) -> Locator:
    return page.locator("#panel")


def press(page: Page, name: str) -> None:
    panel(page).get_by_role("button", name=name, exact=True).click()


def add(page: Page, place: str, kind: str) -> None:
    """Adds a step at the place, by its pointer."""
    page.locator(f'.canvas [data-place="{place}"]').click()
    press(page, kind)
    expect(panel(page).get_by_role("heading", level=2)).to_contain_text(kind)


def save(page: Page) -> None:
    press(page, "Save")
    expect(panel(page).get_by_text("Press a step to change it")).to_be_visible()


def definition(workspace: Workspace, edit: str) -> Any:
    automation_id = edit.split("/")[-2]
    return workspace.caller().get(f"automations/{automation_id}")["definition"]


def test_a_welcome_flow_is_built_tried_published_and_answers_a_chat(
    visit: Visit, workspace: Workspace, widget: Widget, report: Callable[[str], None]
) -> None:
    page = visit(workspace.email("owner")).page
    began = time.monotonic()
    page.goto(workspace.path("automations/new"))
    page.get_by_label("Name").fill("Welcome")
    page.get_by_role("button", name="Create it").click()
    page.wait_for_url("**/edit")
    page.get_by_role("link", name="Starts when").click()
    panel(page).get_by_role("link", name="Something happens").click()
    panel(page).get_by_label("Event").fill("writes")
    page.keyboard.press("Enter")
    press(page, "Add it")
    add(page, "/steps/0", "Ask a question")
    panel(page).get_by_label("Text", exact=True).fill("Flowers or plants?")
    panel(page).get_by_label("What the answer has to be").select_option("choice")
    for number, label in enumerate(("Flowers", "Plants"), 1):
        press(page, "Add a button")
        panel(page).get_by_label(f"Label, row {number}").fill(label)
    save(page)
    add(page, "/steps/1", "Decide by a condition")
    panel(page).get_by_label("What is looked at, row 1").fill("steps.question.value")
    panel(page).get_by_label("Value, row 1").fill("flowers")
    save(page)
    for place, text in (("/steps/1/then/0", "Tulips are fresh today."), ("/steps/1/else/0", "We have a fig tree.")):
        add(page, place, "Send a message")
        panel(page).get_by_label("Text", exact=True).fill(text)
        save(page)
    page.get_by_role("link", name="Try it out").click()
    press(page, "Plants")
    expect(panel(page).get_by_text("We have a fig tree.")).to_be_visible()
    expect(page.locator(".canvas .step.gone")).to_have_count(3)
    page.get_by_role("button", name="Publish", exact=True).click()
    expect(page.get_by_text("It is published.")).to_be_visible()
    took = time.monotonic() - began
    report(f"{took:.0f} s from nothing to published")
    assert took < MOST_SECONDS

    widget.open().say("Hello")
    expect(widget.log).to_contain_text("Flowers or plants?")
    widget.panel.get_by_role("button", name="Flowers").click()
    expect(widget.log).to_contain_text("Tulips are fresh today.")


def test_a_fault_is_found_and_mended_through_the_picture(visit: Visit, workspace: Workspace, edit: str) -> None:
    page = visit(workspace.email("owner")).page
    page.goto(edit)
    add(page, "/steps/1", "Send a message")
    box = page.locator("#step-message")
    expect(box).to_contain_text("Problem")
    page.get_by_role("button", name="Publish", exact=True).click()
    expect(page.get_by_text("The draft has a problem.")).to_be_visible()

    page.goto(edit)
    page.locator("#problems").get_by_role("link").click()
    expect(panel(page).get_by_label("Text", exact=True)).to_be_focused()
    panel(page).get_by_label("Text", exact=True).fill("How are you?")
    expect(box).not_to_contain_text("Problem")
    expect(page.locator("#problems")).to_be_empty()
    page.get_by_role("button", name="Publish", exact=True).click()
    expect(page.get_by_text("It is published.")).to_be_visible()
    assert [step["text"] for step in definition(workspace, edit)["steps"]] == ["Hello", "How are you?", "Goodbye"]


def test_two_people_edit_at_once(visit: Visit, workspace: Workspace, edit: str) -> None:
    ada, ben = visit(workspace.email("owner")).page, visit(workspace.email("admin")).page
    for page in (ada, ben):
        page.goto(f"{edit}/step?step=hello")
    expect(ada.locator("#presence")).to_contain_text("admin has this open, too.")

    ben.goto(f"{edit}/step?step=bye")
    panel(ben).get_by_label("Text", exact=True).fill("See you")
    save(ben)
    expect(ada.locator("#step-bye")).to_contain_text("See you")
    panel(ada).get_by_label("Text", exact=True).fill("Hi")
    save(ada)
    expect(ben.locator("#step-hello")).to_contain_text("Hi")

    for page in (ada, ben):
        page.goto(f"{edit}/step?step=hello")
    panel(ben).get_by_label("Text", exact=True).fill("Good day")
    save(ben)
    panel(ada).get_by_label("Text", exact=True).fill("Good evening")
    expect(panel(ada).get_by_role("alert")).to_contain_text("admin has changed this step")
    expect(panel(ada).get_by_role("alert")).to_contain_text("Good day")
    expect(panel(ada).get_by_label("Text", exact=True)).to_have_value("Good evening")
    press(ada, "Save mine")
    expect(ben.locator("#step-hello")).to_contain_text("Good evening")
    ben.get_by_role("button", name="Undo").click()
    expect(ada.locator("#step-hello")).to_contain_text("Good day")


def test_a_form_saves_itself_and_survives_a_reload(visit: Visit, workspace: Workspace, edit: str) -> None:
    page = visit(workspace.email("owner")).page
    page.goto(f"{edit}/step?step=hello")
    panel(page).get_by_label("Text", exact=True).fill("Hello again")
    expect(page.locator("#step-hello")).to_contain_text("Hello again")
    page.reload()
    expect(panel(page).get_by_label("Text", exact=True)).to_have_value("Hello again")
    page.get_by_role("button", name="Undo").click()
    expect(page.locator("#step-hello")).not_to_contain_text("again")
    page.get_by_role("button", name="Redo").click()
    expect(page.locator("#step-hello")).to_contain_text("Hello again")


def test_what_was_just_typed_is_published(visit: Visit, workspace: Workspace, edit: str) -> None:
    page = visit(workspace.email("owner")).page
    page.goto(f"{edit}/step?step=hello")
    panel(page).get_by_label("Text", exact=True).fill("Hello again")
    page.get_by_role("button", name="Publish", exact=True).click()
    expect(page.get_by_text("It is published.")).to_be_visible()

    assert [step["text"] for step in definition(workspace, edit)["steps"]] == ["Hello again", "Goodbye"]
    expect(page.locator("#main")).to_contain_text("Hello again")


def test_a_changed_trigger_is_kept_when_one_goes_on(visit: Visit, workspace: Workspace) -> None:
    body = {"name": "Gold", "definition": {"triggers": [{"event": "tag.added", "tag": "silver"}], "steps": STEPS}}
    made = workspace.caller().apply("POST", "automations", body)
    edit = workspace.path(f"automations/{made.data['id']}/edit")
    page = visit(workspace.email("owner")).page
    page.goto(f"{edit}/triggers")
    panel(page).get_by_role("link", name="silver").click()
    panel(page).get_by_label("Tag").fill("gold")
    page.locator('.canvas [data-place="/steps/0"]').click()
    expect(panel(page).get_by_role("button", name="Send a message")).to_be_visible()
    expect(page.locator(".canvas")).to_contain_text("gold")
    assert definition(workspace, edit)["triggers"] == [{"event": "tag.added", "tag": "gold"}]

    page.goto(f"{edit}/triggers")
    panel(page).get_by_role("link", name="gold").click()
    panel(page).get_by_label("Tag").fill("bronze")
    panel(page).get_by_role("link", name="Cancel").click()
    expect(panel(page).get_by_role("link", name="gold")).to_be_visible()
    panel(page).get_by_role("link", name="gold").click()
    panel(page).get_by_label("Tag").fill("platinum")
    page.get_by_role("navigation").get_by_role("link", name="Contacts").first.click()
    page.wait_for_url("**/contacts")
    assert definition(workspace, edit)["triggers"] == [{"event": "tag.added", "tag": "platinum"}]


def test_what_cannot_be_saved_is_said_before_one_goes_on(visit: Visit, workspace: Workspace, edit: str) -> None:
    page = visit(workspace.email("owner")).page
    asked: list[str] = []
    page.on("dialog", lambda dialog: (asked.append(dialog.message), dialog.dismiss()))
    page.goto(edit)
    add(page, "/steps/1", "Wait")
    panel(page).get_by_label("How long").fill("some time")
    page.get_by_role("button", name="Publish", exact=True).click()
    expect(page.get_by_role("alert").filter(has_text="It is not published")).to_be_visible()
    expect(panel(page).locator("[aria-invalid]")).to_have_value("some time")
    assert asked == []

    page.locator("#step-bye a").click()
    expect(panel(page).get_by_role("heading", level=2)).to_contain_text("Wait")
    page.get_by_role("link", name="Contacts").first.click()
    expect(panel(page).locator("[aria-invalid]")).to_have_value("some time")
    panel(page).locator("[aria-invalid]").fill("2 days")
    page.locator("#step-bye a").click()
    expect(panel(page).get_by_label("Text", exact=True)).to_have_value("Goodbye")
    assert ["cannot be saved yet" in each for each in asked] == [True, True]
    assert definition(workspace, edit)["steps"][1]["seconds"] == 2 * 24 * 60 * 60


def test_a_press_anywhere_on_a_box_opens_its_form(visit: Visit, workspace: Workspace, edit: str) -> None:
    page = visit(workspace.email("owner")).page
    page.goto(edit)
    page.locator("#step-bye .detail").click()
    expect(panel(page).get_by_label("Text", exact=True)).to_have_value("Goodbye")


def test_everything_is_done_by_keyboard(visit: Visit, workspace: Workspace, edit: str) -> None:
    page = visit(workspace.email("owner")).page
    page.goto(edit)
    page.get_by_role("link", name="Starts when").focus()
    page.keyboard.press("ArrowDown")
    expect(page.locator('.canvas [data-place="/steps/0"]')).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(page.locator("#step-hello a")).to_be_focused()
    page.keyboard.press("Enter")
    expect(panel(page).get_by_label("Text", exact=True)).to_be_focused()
    page.keyboard.press("Control+A")
    page.keyboard.type("Typed")
    page.keyboard.press("Escape")
    expect(page.locator("#step-hello")).to_contain_text("Typed")
    expect(page.locator("#step-hello a")).to_be_focused()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(panel(page).get_by_role("button", name="Send a message")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#step-message")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#step-message a")).to_be_focused()
    page.keyboard.press("Control+z")
    expect(page.locator("#step-message")).to_have_count(0)


def test_it_works_without_the_script(visit: Visit, workspace: Workspace, edit: str) -> None:
    page = visit(workspace.email("owner"), java_script_enabled=False).page
    page.goto(edit)
    page.locator('.canvas [data-place="/steps/2"]').click()
    press(page, "Ask a question")
    panel(page).get_by_label("Text", exact=True).fill("Which?")
    press(page, "Add a button")
    panel(page).get_by_label("Label, row 1").fill("This")
    press(page, "Save")
    expect(page.locator("#step-question")).to_contain_text("Which?")
    page.get_by_role("link", name="Try it out").click()
    press(page, "This")
    expect(panel(page)).to_contain_text("The run is completed.")
    page.get_by_role("button", name="Undo").click()
    page.locator("#step-bye a").click()
    press(page, "Cut")
    page.locator('.canvas [data-place="/steps/0"]').click()
    with page.expect_navigation():
        panel(page).get_by_role("button", name=re.compile("Move “bye”")).click()
    page.goto(f"{edit}/json")
    draft = json.loads(page.locator("textarea").first.input_value())
    assert [step["id"] for step in draft["steps"]][:2] == ["bye", "hello"]


def test_a_request_is_sent_for_real_and_its_answer_offered(
    visit: Visit, service: Service, workspace: Workspace
) -> None:
    path = f"/{workspace.id}/vouchers"
    service.receiver.answers[path] = Answer(
        200, b'{"voucher": {"code": "SPRING"}}', {"Content-Type": "application/json"}
    )
    step = {"id": "call", "kind": "http_request", "method": "POST", "address": service.receiver.url(path)}
    step["body"] = {"name": "{{ contact.first_name }}"}
    body = {"name": "Vouchers", "definition": {"steps": [step]}}
    automation_id = workspace.caller().apply("POST", "automations", body).data["id"]
    seeds.make_contact(workspace.caller(), "Ada Lovelace")
    page = visit(workspace.email("owner")).page
    page.goto(workspace.path(f"automations/{automation_id}/edit/step?step=call"))

    press(page, "Send it")

    expect(page.locator("#tested")).to_contain_text("It answered 200")
    expect(page.locator("#tested")).to_contain_text('{{ steps.call.body.voucher.code }} "SPRING"')
    [received] = [each for each in service.receiver.received if each.path == path]
    assert received.body == b'{"name":"Ada"}'


@pytest.mark.parametrize("width", [390, 1440])
def test_its_forms_are_accessible_and_show_hostile_texts(
    visit: Visit, service: Service, workspace: Workspace, width: int
) -> None:
    text = TEXT.partition("{{")[0]
    steps = [
        {"id": "ask", "kind": "ask", "text": text, "buttons": [{"id": "a", "label": "{{ contact.email }}" + text}]},
        {"id": "tag", "kind": "add_tag", "tag": "x"},
        {
            "id": "call",
            "kind": "http_request",
            "method": "GET",
            "address": "https://x.example/",
            "headers": {"X-A": text},
        },
        {"id": "is", "kind": "branch", "if": {"any": [{"field": "contact.email", "is": "equals", "value": text}] * 2}},
        {"id": "arms", "kind": "split", "arms": [{"name": name, "percent": 50, "steps": []} for name in "ab"]},
    ]
    trigger = {"event": "tag.added", "tag": text[:60]}
    body = {"name": text[:200], "definition": {"triggers": [trigger], "steps": steps}}
    automation_id = workspace.caller().apply("POST", "automations", body).data["id"]
    seeds.make_contact(workspace.caller(), "Ada Lovelace")
    service.query(
        "UPDATE contacts SET first_name = %s, tags = ARRAY[%s] WHERE workspace_id = %s", text, text[:90], workspace.id
    )
    page = visit(workspace.email("owner"), viewport={"width": width, "height": 900}).page
    ran: list[str] = []
    page.expose_function("ran", lambda: ran.append(page.url))
    edit = workspace.path(f"automations/{automation_id}/edit")
    forms = ["", "/new", *(f"/step?step={step['id']}" for step in steps), "/delete?step=ask", "/triggers"]
    forms += ["/trigger?sort=WeeklyTrigger", "/rules", "/rule?of=goal", "/json", "/try"]
    for form in forms:
        page.goto(edit + form)
        assert faults(page) == [], form
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), form
    assert ran == []
