"""The editor of automations on pages, without the script."""

from __future__ import annotations

import html
import re
from typing import Any

import pytest
from flask import Flask, url_for

from app.domain.automations.editing import step_trees, working_copies
from app.domain.automations.steps import STEP_KINDS
from app.models.automations import Automation
from tests import pages
from tests.automations import make_automation
from tests.cast import Api, one
from tests.pages import Person
from tests.talks import make_member

HELLO: dict[str, Any] = {"id": "hello", "kind": "send_message", "text": "Hello {{ contact.first_name }}"}
DEFINITION: dict[str, Any] = {
    "triggers": [{"event": "tag.added", "tag": "vip"}],
    "steps": [
        HELLO,
        {
            "id": "size",
            "kind": "ask",
            "text": "Which size?",
            "format": "choice",
            "buttons": [{"id": "s", "label": "Small"}, {"id": "l", "label": "Large"}],
            "otherwise": [],
        },
        {
            "id": "is_large",
            "kind": "branch",
            "if": {"field": "steps.size.value", "is": "equals", "value": "Large"},
            "then": [{"id": "tag", "kind": "add_tag", "tag": "large"}],
            "else": [],
        },
    ],
}


@pytest.fixture
def automation_id(api: Api) -> str:
    return make_automation(api.workspace_id, DEFINITION)


@pytest.fixture
def edit(automation_id: str) -> str:
    return f"automations/{automation_id}/edit"


@pytest.fixture
def other(app: Flask, api: Api) -> Person:
    return pages.member(app, api.workspace_id, "admin", "ada@shop.example")


def draft(automation_id: str) -> Any:
    return working_copies.current(Automation.get_by_id(automation_id)).definition


def fields_of(text: str, form: str = "step-form") -> dict[str, Any]:
    """The fields of the form as a browser would send them."""
    body = re.search(rf'<form[^>]*id="{form}".*?</form>', text, re.DOTALL)
    assert body is not None
    found: dict[str, Any] = {}

    def add(name: str, value: str) -> None:
        found.setdefault(name, []).append(html.unescape(value))

    for tag in re.finditer(r"<(input|textarea|select)\b([^>]*)>(?:\n?(.*?)</\1>)?", body[0], re.DOTALL):
        name = re.search(r'name="([^"]*)"', tag[2])
        if name is None or name[1] == "csrf_token":
            continue
        if tag[1] == "input":
            value = re.search(r'value="([^"]*)"', tag[2])
            add(name[1], value[1] if value else "")
        elif tag[1] == "textarea":
            add(name[1], tag[3])
        else:
            chosen = re.search(r'<option value="([^"]*)" selected', tag[3]) or re.search(
                r'<option value="([^"]*)"', tag[3]
            )
            add(name[1], chosen[1] if chosen else "")
    return found


def form_of(person: Person, path: str) -> dict[str, Any]:
    response = person.get(path)
    assert response.status_code == 200, response.text
    return fields_of(response.text)


def test_the_editor_shows_the_draft_with_links_to_change_it(owner: Person, edit: str) -> None:
    text = owner.page(edit)

    assert "Which size?" in text
    assert f"{edit}/step?step=size" in text
    assert f"{edit}/new?in=is_large&list=then&after=tag" in text
    assert "cannot be published yet" not in text


def test_an_example_address_is_said_before_the_draft_is_published(owner: Person, edit: str, automation_id: str) -> None:
    said = "The address of shop.example is only an example."
    assert said not in owner.page(edit)
    fields = form_of(owner, f"{edit}/step?step=hello")
    owner.post(f"{edit}/step", {**fields, "do": "save", "text": "Look: https://shop.example/new"})

    text = html.unescape(owner.page(edit))

    assert re.search(rf'<a href="[^"]*step=hello[^"]*">Send a message, “hello”</a>, text: {re.escape(said)}', text)
    assert "cannot be published yet" not in text
    assert owner.post(f"automations/{automation_id}/publish").status_code == 303


@pytest.mark.parametrize("kind", STEP_KINDS)
def test_a_step_of_every_kind_is_added_and_its_form_changes_nothing(
    owner: Person, edit: str, automation_id: str, kind: str
) -> None:
    added = owner.post(f"{edit}/new", {"kind": kind, "in": "is_large", "list": "else"})
    assert added.status_code == 303, added.text
    [step] = draft(automation_id)["steps"][2]["else"]

    fields = form_of(owner, added.location)
    saved = owner.post(f"{edit}/step", {**fields, "do": "save"})

    assert saved.status_code == 303, saved.text
    assert draft(automation_id)["steps"][2]["else"] == [step]


def test_what_is_typed_is_saved_and_what_is_missing_is_said(owner: Person, edit: str, automation_id: str) -> None:
    fields = form_of(owner, f"{edit}/step?step=hello")
    owner.post(f"{edit}/step", {**fields, "do": "save", "text": "", "expires_at": "soon"})

    assert draft(automation_id)["steps"][0] == {"id": "hello", "kind": "send_message", "expires_at": "soon"}
    text = owner.page(f"{edit}/step?step=hello")
    assert "1 problem:" in text
    assert "Fill this in." in text
    assert Automation.get_by_id(automation_id).definition == {**DEFINITION}
    refused = owner.post(f"automations/{automation_id}/publish")
    assert "The draft has a problem" in html.unescape(refused.text)


def test_rows_of_a_form_are_added_without_the_script(owner: Person, edit: str, automation_id: str) -> None:
    fields = form_of(owner, f"{edit}/step?step=size")
    shown = owner.post(f"{edit}/step", {**fields, "do": "add:buttons"})
    fields = fields_of(shown.text)
    assert fields["buttons.label"] == ["Small", "Large", ""]
    fields["buttons.label"][2] = "Extra large"
    owner.post(f"{edit}/step", {**fields, "do": "save"})

    assert draft(automation_id)["steps"][1]["buttons"][2] == {"id": "extra_large", "label": "Extra large"}
    fields = form_of(owner, f"{edit}/step?step=is_large")
    fields = fields_of(owner.post(f"{edit}/step", {**fields, "do": "add:if"}).text)
    fields["if.field"][1], fields["if.is"][1], fields["if.value"][1] = "contact.tags", "not_contains", "large"
    owner.post(f"{edit}/step", {**fields, "if.mode": "any", "do": "save"})
    assert draft(automation_id)["steps"][2]["if"] == {
        "any": [DEFINITION["steps"][2]["if"], {"field": "contact.tags", "is": "not_contains", "value": "large"}]
    }


def test_what_is_no_duration_is_said_at_its_field_and_kept(owner: Person, edit: str) -> None:
    fields = form_of(owner, f"{edit}/step?step=size")
    refused = owner.post(f"{edit}/step", {**fields, "timeout_seconds": "a while", "do": "save"})

    assert refused.status_code == 422
    assert 'value="a while"' in refused.text
    assert "Write how long in words" in refused.text


def test_two_people_change_different_steps(owner: Person, other: Person, edit: str, automation_id: str) -> None:
    mine, theirs = form_of(owner, f"{edit}/step?step=hello"), form_of(other, f"{edit}/step?step=size")

    assert other.post(f"{edit}/step", {**theirs, "text": "How large?", "do": "save"}).status_code == 303
    assert owner.post(f"{edit}/step", {**mine, "text": "Hi", "do": "save"}).status_code == 303

    assert [step.get("text") for step in draft(automation_id)["steps"]] == ["Hi", "How large?", None]
    assert "ada" in owner.page(edit).partition('id="presence"')[2].partition("</p>")[0]


def test_the_second_who_changes_a_step_is_told_who_was_first(
    owner: Person, other: Person, edit: str, automation_id: str
) -> None:
    mine, theirs = form_of(owner, f"{edit}/step?step=hello"), form_of(other, f"{edit}/step?step=hello")
    other.post(f"{edit}/step", {**theirs, "text": "Good day", "do": "save"})

    refused = owner.post(f"{edit}/step", {**mine, "text": "Hi", "do": "save"})

    text = html.unescape(refused.text)
    assert refused.status_code == 409
    assert "ada</bdi> has changed this step" in text
    assert "<del>Hello {{ contact.first_name }}</del> → <ins>Good day</ins>" in text
    fields = fields_of(refused.text)
    assert fields["text"] == ["Hi"]
    assert draft(automation_id)["steps"][0]["text"] == "Good day"
    assert owner.post(f"{edit}/step", {**fields, "do": "save"}).status_code == 303
    assert draft(automation_id)["steps"][0]["text"] == "Hi"


def test_a_step_is_cut_and_pasted_and_copied_into_another_automation(
    owner: Person, api: Api, edit: str, automation_id: str
) -> None:
    owner.post(f"{edit}/step", {"step": "is_large", "do": "cut"})
    assert "Move “is_large” here" in owner.page(f"{edit}/new")
    owner.post(f"{edit}/new", {"kind": "paste"})
    assert [step["id"] for step in draft(automation_id)["steps"]] == ["is_large", "hello", "size"]
    owner.post(f"{edit}/step", {"step": "is_large", "do": "lower"})
    assert [step["id"] for step in draft(automation_id)["steps"]] == ["hello", "is_large", "size"]

    other_id = make_automation(api.workspace_id)
    owner.post(f"automations/{other_id}/edit/new", {"kind": "paste", "after": "end"})
    assert [step["id"] for step in draft(other_id)["steps"]] == ["end", "is_large"]
    owner.post(f"{edit}/step", {"step": "size", "do": "cut"})
    owner.post(f"automations/{other_id}/edit/new", {"kind": "paste"})
    assert [step["id"] for step in draft(other_id)["steps"]] == ["size", "end", "is_large"]
    assert [step["id"] for step in draft(automation_id)["steps"]] == ["hello", "is_large"]


def test_a_removal_says_what_it_affects_and_is_undone(owner: Person, edit: str, automation_id: str) -> None:
    asked = owner.page(f"{edit}/delete?step=size")
    assert "is_large</a> uses <code>steps.size" in asked

    owner.post(f"{edit}/delete", {"step": "size"})
    assert [step["id"] for step in draft(automation_id)["steps"]] == ["hello", "is_large"]
    revision = re.search(r'data-seen="(\d+)-', owner.page(edit))
    assert revision
    assert owner.post(f"{edit}/undo", {"revision": "99"}).status_code == 303
    assert "has changed since" in owner.page(edit)
    owner.post(f"{edit}/undo", {"revision": revision[1]})
    assert draft(automation_id) == DEFINITION
    owner.post(f"{edit}/redo", {"revision": str(int(revision[1]) + 1)})
    assert len(draft(automation_id)["steps"]) == 2


def test_a_renamed_step_is_renamed_where_others_name_it(owner: Person, edit: str, automation_id: str) -> None:
    fields = form_of(owner, f"{edit}/step?step=size")
    owner.post(f"{edit}/step", {**fields, "new_id": "fit", "do": "save"})
    assert draft(automation_id)["steps"][2]["if"]["field"] == "steps.fit.value"

    fields = form_of(owner, f"{edit}/step?step=fit")
    refused = owner.post(f"{edit}/step", {**fields, "new_id": "hello", "do": "save"})
    assert refused.status_code == 422
    assert "Another step is called" in html.unescape(refused.text)


def test_triggers_are_added_changed_and_removed(owner: Person, edit: str, automation_id: str) -> None:
    fields = form_of(owner, f"{edit}/trigger?sort=BeforeTrigger")
    owner.post(f"{edit}/trigger", {**fields, "seconds": "1 day", "do": "save"})
    assert draft(automation_id)["triggers"][1] == {"before": "booking.starts_at", "seconds": 86400}

    base = step_trees.print_of(DEFINITION["triggers"][0])
    fields = form_of(owner, f"{edit}/trigger?base={base}")
    owner.post(f"{edit}/trigger", {**fields, "tag": "gold", "do": "save"})
    assert draft(automation_id)["triggers"][0] == {"event": "tag.added", "tag": "gold"}
    owner.post(f"{edit}/trigger", {**fields, "do": "save"})
    assert "has changed or removed this trigger" in owner.page(edit)
    base = step_trees.print_of({"event": "tag.added", "tag": "gold"})
    owner.post(f"{edit}/trigger", {"base": base, "do": "delete"})
    assert len(draft(automation_id)["triggers"]) == 1


def test_exits_and_the_goal_are_changed(owner: Person, edit: str, automation_id: str) -> None:
    fields = form_of(owner, f"{edit}/rule?of=exits")
    assert owner.post(f"{edit}/rule", {**fields, "event": "sale.recorded", "do": "save"}).status_code == 303
    fields = form_of(owner, f"{edit}/rule?of=goal")
    assert owner.post(f"{edit}/rule", {**fields, "event": "sale.recorded", "do": "save"}).status_code == 303

    automation = Automation.get_by_id(automation_id)
    assert automation.exits == [{"event": "sale.recorded"}]
    assert automation.goal == {"event": "sale.recorded", "within_seconds": 604800}
    fields = form_of(owner, f"{edit}/rule?of=goal")
    refused = owner.post(f"{edit}/rule", {**fields, "within_seconds": "900 days", "do": "save"})
    assert refused.status_code == 422
    owner.post(f"{edit}/rule", {**fields, "do": "delete"})
    assert Automation.get_by_id(automation_id).goal is None


def test_the_draft_is_edited_as_json_without_loss(owner: Person, edit: str, automation_id: str) -> None:
    fields = form_of(owner, f"{edit}/json")
    assert owner.post(f"{edit}/json", fields).status_code == 303
    assert draft(automation_id) == DEFINITION

    broken = owner.post(f"{edit}/json", {**fields, "text": '{\n"steps": [\n}'})
    assert broken.status_code == 422
    assert "Line 3" in broken.text
    unknown = owner.post(f"{edit}/json", {**fields, "text": '{"steps": [{"id": "x", "kind": "y"}]}'})
    assert unknown.status_code == 422
    assert "/steps/0/kind" in unknown.text
    kept = owner.post(f"{edit}/json", {**fields, "text": fields["text"][0].replace("Which size?", "")})
    assert kept.status_code == 200
    assert re.search(r"Line \d+</span> <code>/steps/1/text", kept.text)
    assert draft(automation_id)["steps"][1]["text"] == ""
    conflict = owner.post(f"{edit}/json", fields)
    assert conflict.status_code == 409
    assert "Somebody has changed the draft" in conflict.text


def test_a_text_is_previewed_for_a_contact(owner: Person, api: Api, edit: str) -> None:
    contact_id = api.contact(first_name="Ada", email="ada@example.com")["id"]
    fields = form_of(owner, f"{edit}/step?step=hello")
    text = "{{ contact.first_name }} {{ contact.last_name }} {{ trigger.event.data.tag }}"
    shown = owner.post(f"{edit}/step", {**fields, "text": text, "contact_id": contact_id, "do": "preview"})

    previewed = shown.text.partition('id="previewing"')[2].partition("</details>")[0].partition('role="status"')[2]
    assert "Ada  vip</p>" in previewed
    assert "Empty for this contact: contact.last_name" in shown.text


def test_typing_saves_itself_into_one_state(owner: Person, edit: str, automation_id: str) -> None:
    fields = form_of(owner, f"{edit}/step?step=hello")
    for text in ("H", "Hi", "Hi!"):
        saved = owner.post(f"{edit}/step", {**fields, "text": text, "do": "autosave"})
        assert saved.status_code == 200
        fields = fields_of(saved.text)

    assert draft(automation_id)["steps"][0]["text"] == "Hi!"
    assert one("SELECT count(*) FROM working_copy_states") == 2


def test_it_is_tried_out_in_a_chat(owner: Person, edit: str) -> None:
    text = owner.get(f"{edit}/try").text
    assert "Which size?" in text
    fields = fields_of(text, "trial")

    pressed = owner.post(f"{edit}/try", {**fields, "do": "press:l"}).text
    assert "Large" in pressed
    assert "The run is completed" in pressed
    assert re.search(r'class="step gone" id="step-tag"', pressed)
    late = owner.post(f"{edit}/try", {**fields, "do": "late"}).text
    assert re.search(r'class="step not-gone" id="step-tag"', late)
    said = owner.post(f"{edit}/try", {**fields, "do": "say", "text": "large"}).text
    assert re.search(r'class="step gone" id="step-tag"', said)
    back = owner.post(f"{edit}/try", {**fields_of(said, "trial"), "do": "back"}).text
    assert fields_of(back, "trial")["moves"] == ["[]"]


def test_a_trial_asks_what_a_server_answers_and_whether_an_event_happens(owner: Person, api: Api) -> None:
    steps = [
        {"id": "call", "kind": "http_request", "method": "GET", "address": "https://shop.example/x"},
        {"id": "sale", "kind": "wait_for_event", "event": "sale.recorded", "otherwise": []},
        {"id": "pause", "kind": "wait", "seconds": 90000},
        {"id": "say", "kind": "send_message", "text": "{{ steps.call.body.name }} {{ steps.sale.timed_out }}"},
    ]
    edit = f"automations/{make_automation(api.workspace_id, {'steps': steps})}/edit"
    fields = fields_of(owner.get(f"{edit}/try").text, "trial")
    fields = {**fields, "status": "200", "body": '{"name": "Ada"}', "do": "answer"}
    fields = fields_of(owner.post(f"{edit}/try", fields).text, "trial")
    ended = owner.post(f"{edit}/try", {**fields, "do": "not-happened"}).text

    assert "Ada true" in ended
    assert "Wait 1 day 1 hour; skipped here." in ended
    refused = owner.post(f"{edit}/try", {**fields, "moves": "[]", "step": "call", "status": "9", "do": "answer"})
    assert refused.status_code == 422
    strange = owner.post(f"{edit}/try", {**fields, "moves": '[{"reply": 5}, "x"]', "do": "happened"})
    assert strange.status_code == 200


def test_a_draft_with_problems_cannot_be_tried(owner: Person, edit: str) -> None:
    owner.post(f"{edit}/new", {"kind": "send_message"})

    assert "Mend the problem above first" in owner.page(f"{edit}/try")


def test_a_request_is_tested_with_the_restrictions_of_runs(owner: Person, api: Api) -> None:
    steps = [{"id": "call", "kind": "http_request", "method": "GET", "address": "https://{{ '10.0.0.1' }}/x"}]
    edit = f"automations/{make_automation(api.workspace_id, {'steps': steps})}/edit"

    tested = owner.post(f"{edit}/request", {"step": "call"})

    assert tested.status_code == 200
    assert 'id="tested"' in tested.text
    assert "public" in tested.text or "resolve" in tested.text


def test_who_has_it_open_is_said(owner: Person, other: Person, edit: str) -> None:
    other.post(f"{edit}/here")

    assert owner.post(f"{edit}/here").json["people"] == ["ada"]


def test_agents_and_strangers_do_not_edit(agent: Person, stranger: Person, edit: str) -> None:
    assert agent.get(edit).status_code == 403
    assert agent.post(f"{edit}/new", {"kind": "stop"}).status_code == 403
    assert stranger.get(edit).status_code == 404


def test_members_are_offered_as_assignees(owner: Person, api: Api, edit: str) -> None:
    member_id = make_member(api.workspace_id)
    added = owner.post(f"{edit}/new", {"kind": "assign_conversation"})

    assert f'value="{member_id}"' in owner.get(added.location).text


def test_a_page_of_many_steps_makes_the_address_of_each_form_once(
    owner: Person, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = [{"id": f"mark{number}", "kind": "add_tag", "tag": "new"} for number in range(500)]
    page, made = f"automations/{api.automation(*steps)['id']}/edit", []

    def counted(endpoint: str, **values: Any) -> str:
        made.append(endpoint)
        return url_for(endpoint, **values)

    monkeypatch.setattr("app.web.automation_editor.editor_scenes.url_for", counted)
    shown = owner.page(f"{page}?view=list")

    assert f"{owner.path(page)}/new?view=list&list=steps&after=mark499" in shown
    assert f"{owner.path(page)}/step?view=list&step=mark499" in shown
    assert len(made) == len(set(made))
