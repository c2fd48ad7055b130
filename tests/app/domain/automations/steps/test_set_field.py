from __future__ import annotations

from typing import Any

import pytest

from app.models.contacts import Contact
from app.models.workspaces import Workspace
from tests.app.domain.automations.steps.runs import carried_out, log_of
from tests.cast import Api, event_bodies


def set_field(field: str, value: Any) -> dict[str, Any]:
    return {"kind": "set_field", "field": field, "value": value}


@pytest.mark.parametrize(
    ("field", "value", "stored"),
    [
        ("first_name", "{{ trigger.variables.name }}", "Ada"),
        ("email", "{{ trigger.variables.name | downcase }}@example.com", "ada@example.com"),
        ("phone", "+49 30 123456", "+4930123456"),
        ("locale", "pt_BR", "pt-BR"),
        ("timezone", "Europe/Berlin", "Europe/Berlin"),
        ("first_name", None, None),
        ("opted_out", True, True),
        ("opted_out", "{{ 'true' }}", True),
        ("contact.email", "ada@example.com", "ada@example.com"),
    ],
)
def test_a_field_of_the_contact_is_set(workspace_id: str, contact_id: str, field: str, value: Any, stored: Any) -> None:
    run = carried_out(workspace_id, contact_id, set_field(field, value), name="Ada")

    name = field.removeprefix("contact.")
    assert getattr(Contact.get_by_id(contact_id), name) == stored
    assert log_of(run) == [("succeeded", f"The field '{name}' was set.")]


@pytest.mark.parametrize(
    ("field", "value", "stored"),
    [
        ("plan", "gold", {"plan": "gold"}),
        ("plan", "{{ trigger.variables.nothing }}", {"plan": ""}),
        ("score", 12.5, {"score": 12.5}),
        ("member", False, {"member": False}),
        ("custom_fields.email", "x", {"email": "x"}),
        ("contact.custom_fields.size", "x", {"size": "x"}),
        ("old", None, {}),
    ],
)
def test_any_other_field_is_a_custom_one(
    workspace_id: str, contact_id: str, field: str, value: Any, stored: dict[str, Any]
) -> None:
    carried_out(workspace_id, contact_id, set_field("old", 1), set_field(field, value))

    assert Contact.get_by_id(contact_id).custom_fields == ({"old": 1} | stored if field != "old" else {})


def test_times_are_those_of_the_workspace_where_the_contact_has_no_zone(workspace_id: str, contact_id: str) -> None:
    Workspace.update(timezone="Asia/Tokyo").where(Workspace.id == workspace_id).execute()
    text = "{{ '2026-11-24T23:30:00Z' | date: '%d.%m. %H:%M' }} {{ workspace.timezone }}"

    carried_out(workspace_id, contact_id, set_field("tokyo", text))
    Contact.update(timezone="America/New_York").where(Contact.id == contact_id).execute()
    carried_out(workspace_id, contact_id, set_field("york", text))

    assert Contact.get_by_id(contact_id).custom_fields == {
        "tokyo": "25.11. 08:30 Asia/Tokyo",
        "york": "24.11. 18:30 Asia/Tokyo",
    }


def test_a_number_that_a_template_adds_up_can_be_compared(workspace_id: str, contact_id: str) -> None:
    add = set_field("score", "{{ contact.custom_fields.score | plus: 10 }}")
    is_high = {"field": "contact.custom_fields.score", "is": "greater_than", "value": 19}
    branch = {"kind": "branch", "if": is_high, "then": [{"id": "hot", "kind": "add_tag", "tag": "hot"}]}

    carried_out(workspace_id, contact_id, add, branch)
    assert Contact.get_by_id(contact_id).tags == []
    carried_out(workspace_id, contact_id, add, branch)

    assert Contact.get_by_id(contact_id).tags == ["hot"]


@pytest.mark.parametrize(
    ("field", "value", "detail"),
    [
        ("email", "{{ trigger.variables.text }}", "email: This is not an e-mail address"),
        ("phone", "{{ trigger.variables.text }}", "phone: Give the phone number with its country code"),
        ("timezone", "{{ trigger.variables.text }}", "timezone: Give a time zone"),
        ("external_id", "{{ trigger.variables.nothing }}", "external_id: This field holds text"),
        ("first_name", "{{ trigger.variables.text }}" * 100, "first_name: This field holds text of at most 255"),
        ("opted_out", "{{ trigger.variables.text }}", "opted_out: This field is true or false"),
        ("plan", "{{ trigger.variables.text }}" * 400, "plan: A custom field holds at most 4096 characters"),
    ],
)
def test_a_value_that_the_field_cannot_hold_fails_the_run(
    workspace_id: str, contact_id: str, field: str, value: str, detail: str
) -> None:
    before = Contact.get_by_id(contact_id)

    run = carried_out(workspace_id, contact_id, set_field(field, value), text="ada at example")

    assert (run.status, run.failure["code"], run.failure["step"]) == ("failed", "error", "1")
    assert run.failure["detail"].startswith(detail)
    assert Contact.get_by_id(contact_id).__data__ == before.__data__


def test_an_identifier_of_another_contact_fails_the_run(api: Api, workspace_id: str, contact_id: str) -> None:
    api.contact(email="bob@example.com")

    run = carried_out(workspace_id, contact_id, set_field("email", "bob@example.com"))

    assert run.failure["code"] == "error"
    assert run.failure["detail"] == "Another contact of this workspace already has this email."


def test_a_change_is_an_event_with_the_run_as_its_cause(workspace_id: str, contact_id: str) -> None:
    carried_out(workspace_id, contact_id, set_field("plan", "gold"), set_field("plan", "gold"))

    [changed] = [body["data"] for body in event_bodies(workspace_id) if body["kind"] == "contact.updated"]
    assert changed["contact"]["custom_fields"] == {"plan": "gold"}
    assert changed["changed"] == ["custom_fields"]


def test_a_contact_without_an_identifier_can_have_its_other_fields_set(workspace_id: str, contact_id: str) -> None:
    Contact.update(external_id=None, phone=None).where(Contact.id == contact_id).execute()

    carried_out(workspace_id, contact_id, set_field("plan", "gold"))

    assert Contact.get_by_id(contact_id).custom_fields == {"plan": "gold"}
    run = carried_out(workspace_id, contact_id, set_field("email", None))
    assert run.failure["detail"] == "A contact needs at least one of external_id, email and phone."
