"""What is wrong with a definition is said at its place, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from app.domain.automations import definitions
from app.domain.automations.definitions.json_schemas import DEEPEST, EVENTS, MOST_STEPS, MOST_TRIGGERS
from app.domain.automations.definitions.validation import CONTACT_FIELDS
from app.domain.automations.steps import KINDS
from app.domain.contacts.contacts import represent
from app.domain.triggers.conditions import MOST_MATCHES
from app.domain.webhooks import catalogue
from app.errors import MAX_FAULTS
from app.models.contacts import Contact

IS_VIP = {"field": "contact.tags", "is": "contains", "value": "vip"}
STOP = {"id": "end", "kind": "stop"}


def faults_of(*steps: Any, **others: Any) -> dict[str, str]:
    return {
        fault.pointer: fault.detail for fault in definitions.faults({"steps": list(steps), **others}, "/definition")
    }


def nested(depth: int) -> dict[str, Any]:
    step: dict[str, Any] = STOP
    for level in range(depth):
        step = {"id": f"level-{level}", "kind": "branch", "if": IS_VIP, "then": [step]}
    return step


@pytest.mark.parametrize("kind", KINDS)
def test_the_example_of_each_kind_is_valid(kind: str) -> None:
    assert faults_of({"id": "step", "kind": kind, **KINDS[kind].example}) == {}


def test_a_definition_without_faults() -> None:
    triggers = [
        {"event": "tag.added", "tag": "vip"},
        {
            "event": "sale.recorded",
            "if": {"field": "trigger.event.data.sale.amount", "is": "greater_than", "value": 100},
        },
    ]
    steps = [
        {"id": "pause", "kind": "wait", "seconds": 60},
        {
            "id": "check",
            "kind": "branch",
            "if": {"any": [IS_VIP, {"field": "steps.check", "is": "exists"}]},
            "then": [{"id": "greet", "kind": "set_field", "field": "plan", "value": "{{ trigger.variables.plan }}"}],
            "else": [STOP],
        },
    ]

    assert faults_of(*steps, triggers=triggers) == {}
    assert faults_of() == {}


@pytest.mark.parametrize(
    ("definition", "pointer", "detail"),
    [
        (None, "/definition", "Give a definition"),
        ([], "/definition", "Give a definition"),
        ({}, "/definition/steps", "Give the steps"),
        ({"steps": {}}, "/definition/steps", "Give a list of steps."),
        ({"steps": [], "name/x": 1}, "/definition/name~1x", "Unknown field"),
        ({"steps": ["stop"]}, "/definition/steps/0", "Give a step"),
        ({"steps": [[STOP]]}, "/definition/steps/0", "Give a step"),
        ({"steps": [], "triggers": None}, "/definition/triggers", "Give a list"),
        ({"steps": [], "triggers": ["tag.added"]}, "/definition/triggers/0", "Give an object"),
    ],
)
def test_the_outer_form_is_checked(definition: Any, pointer: str, detail: str) -> None:
    [fault] = definitions.faults(definition, "/definition")

    assert fault.pointer == pointer
    assert detail in fault.detail


@pytest.mark.parametrize(
    ("step", "pointer", "detail"),
    [
        ({"kind": "stop"}, "/id", "Give the step an identifier"),
        ({"id": 5, "kind": "stop"}, "/id", "Give the step an identifier"),
        ({"id": "a b", "kind": "stop"}, "/id", "1 to 64 letters, digits, '_' and '-'"),
        ({"id": "a\n", "kind": "stop"}, "/id", "Give the step an identifier"),
        ({"id": "a"}, "/kind", "Give the kind of the step. The kinds are add_tag, assign_conversation"),
        ({"id": "a", "kind": "send_mail"}, "/kind", "There is no kind of step 'send_mail'. The kinds are add_tag"),
        ({"id": "a", "kind": ["stop"]}, "/kind", "Give the kind of the step"),
        ({"id": "a", "kind": "stop", "seconds": 5}, "/seconds", "Unknown field. A step of kind 'stop' has id, kind."),
        ({"id": "a", "kind": "add_tag"}, "/tag", "A step of kind 'add_tag' needs 'tag'."),
        ({"id": "a", "kind": "add_tag", "tag": 5}, "/tag", "Give text."),
        ({"id": "a", "kind": "add_tag", "tag": " "}, "/tag", "A tag has 1 to 100 characters"),
        ({"id": "a", "kind": "add_tag", "tag": "{{ contact.email"}, "/tag", "is not closed with '}}'"),
        ({"id": "a", "kind": "wait"}, "", "Give either 'seconds' or 'until'."),
        ({"id": "a", "kind": "wait", "seconds": 1, "until": "{{ x }}"}, "", "Give either 'seconds' or 'until'."),
        ({"id": "a", "kind": "wait", "seconds": 90 * 86400 + 1}, "/seconds", "at most 7,776,000"),
        ({"id": "a", "kind": "wait", "seconds": -1}, "/seconds", "at least 0"),
        ({"id": "a", "kind": "wait", "seconds": True}, "/seconds", "Give a whole number."),
        ({"id": "a", "kind": "wait", "seconds": "60"}, "/seconds", "Give a whole number."),
        ({"id": "a", "kind": "wait", "until": "tomorrow"}, "/until", "'tomorrow' is not a time"),
        ({"id": "a", "kind": "wait", "until": "2026-11-21"}, "/until", "has no time zone"),
        ({"id": "a", "kind": "set_field", "field": "email", "value": "x"}, "/value", "not an e-mail address"),
        ({"id": "a", "kind": "set_field", "field": "tags", "value": "x"}, "/field", "Use add_tag and remove_tag"),
        ({"id": "a", "kind": "set_field", "field": "plan", "value": {}}, "/value", "Give text, a number"),
        ({"id": "a", "kind": "set_field", "field": "plan", "value": 2**60}, "/value", "lies between"),
        ({"id": "a", "kind": "set_field", "field": "opted_out", "value": 1}, "/value", "true or false"),
        ({"id": "a", "kind": "branch", "then": []}, "/if", "needs 'if'"),
        ({"id": "a", "kind": "branch", "if": "vip"}, "/if", "Give a condition"),
        ({"id": "a", "kind": "branch", "if": IS_VIP, "then": STOP}, "/then", "Give a list of steps."),
        ({"id": "a", "kind": "branch", "if": IS_VIP, "else": None}, "/else", "Give a list of steps."),
        ({"id": "a", "kind": "branch", "if": {"not": {}}}, "/if/not/field", "Name the value"),
    ],
)
def test_a_step_is_checked(step: Mapping[str, Any], pointer: str, detail: str) -> None:
    found = faults_of(step)

    assert f"/definition/steps/0{pointer}" in found
    assert detail in found[f"/definition/steps/0{pointer}"]


def test_faults_are_found_however_deep_they_are() -> None:
    inner = {"id": "b", "kind": "branch", "if": IS_VIP, "else": [{"id": "c", "kind": "wait", "seconds": "1"}]}
    outer = {"id": "a", "kind": "branch", "if": IS_VIP, "then": [STOP, inner]}

    assert list(faults_of(STOP | {"id": "first"}, outer)) == ["/definition/steps/1/then/1/else/0/seconds"]


def test_identifiers_are_unique_in_the_whole_definition() -> None:
    branch = {"id": "a", "kind": "branch", "if": IS_VIP, "then": [STOP], "else": [STOP]}

    assert faults_of(branch) == {
        "/definition/steps/0/else/0/id": "Change this: the step at /definition/steps/0/then/0 has the same identifier."
    }


@pytest.mark.parametrize(
    ("field", "detail"),
    [
        ("contact.tag", "A contact has no field 'tag'. It has id, external_id, email"),
        ("contact", "A contact has no field ''"),
        ("trigger.plan", "Name trigger.event… or trigger.variables…."),
        ("steps.ask.text", "The definition has no step with 'id' or 'save_as' 'ask'."),
    ],
)
def test_a_condition_names_what_there_is(field: str, detail: str) -> None:
    found = faults_of({"id": "a", "kind": "branch", "if": {"all": [IS_VIP, {"field": field, "is": "exists"}]}})

    assert list(found) == ["/definition/steps/0/if/all/1/field"]
    assert detail in found["/definition/steps/0/if/all/1/field"]


@pytest.mark.parametrize(
    ("trigger", "pointer", "detail"),
    [
        ({}, "/event", "Give one of contact.created"),
        ({"event": 5}, "/event", "Give one of"),
        ({"event": "message.sent"}, "/event", "Give one of"),
        ({"event": "contact.deleted"}, "/event", "Give one of"),
        ({"event": "endpoint.stopped"}, "/event", "Give one of"),
        ({"event": "contact.created", "tag": "vip"}, "/tag", "only tag.added and tag.removed have a tag"),
        ({"event": "tag.added", "tag": " vip"}, "/tag", "Give a tag"),
        ({"event": "tag.added", "tag": ""}, "/tag", "Give a tag"),
        ({"event": "tag.added", "if": {"field": "contact.tags"}}, "/if/is", "Give one of"),
        ({"event": "tag.added", "if": {"field": "steps.a", "is": "exists"}}, "/if/field", "not known when an event"),
        ({"event": "tag.added", "if": {"field": "trigger.variables.a", "is": "exists"}}, "/if/field", "not known"),
        ({"event": "tag.added", "unless": 1}, "/unless", "There are 'event', 'tag' and 'if'."),
    ],
)
def test_triggers_and_exits_are_checked(trigger: Any, pointer: str, detail: str) -> None:
    [exit_fault] = definitions.exit_faults([trigger], "/exits")

    assert exit_fault.pointer == f"/exits/0{pointer}"
    assert detail in exit_fault.detail
    assert list(faults_of(triggers=[trigger])) == [f"/definition/triggers/0{pointer}"]


def test_triggers_listen_to_events_that_happen_to_contacts() -> None:
    listed = [kind for kind in EVENTS if kind in catalogue.KINDS]

    assert all("contact" in catalogue.KINDS[kind].sample() for kind in listed)
    assert not {"message.sent", "message.delivered", "message.read", "message.failed"} & set(EVENTS)


def test_conditions_can_name_all_fields_of_a_contact() -> None:
    assert set(CONTACT_FIELDS) == represent(Contact()).keys()


def test_the_keys_of_listeners_name_the_tag_if_a_trigger_does() -> None:
    triggers = [{"event": "tag.added", "tag": "vip"}, {"event": "tag.added"}, {"event": "sale.recorded"}]
    exits = [{"event": "tag.removed", "tag": "a:b"}, {"event": "sale.recorded"}]

    keys = definitions.listened_keys({"triggers": triggers, "steps": []}, exits)

    assert keys == {"tag.added:vip", "tag.added", "sale.recorded", "tag.removed:a:b"}


# Limits


def test_the_number_of_steps_and_triggers_is_limited() -> None:
    steps = [{"id": f"s{number}", "kind": "stop"} for number in range(MOST_STEPS + 1)]

    assert faults_of(*steps[1:]) == {}
    assert faults_of(*steps) == {"/definition/steps": "A definition has at most 500 steps; this has 501."}
    assert faults_of(triggers=[{"event": "tag.added"}] * MOST_TRIGGERS) == {}
    assert list(faults_of(triggers=[{"event": "tag.added"}] * (MOST_TRIGGERS + 1))) == ["/definition/triggers"]


def test_the_depth_of_steps_is_limited() -> None:
    assert faults_of(nested(DEEPEST - 1)) == {}
    assert list(faults_of(nested(DEEPEST)).values()) == ["Steps are nested at most 10 levels deep."]
    assert list(faults_of(nested(100)).values()) == ["Steps are nested at most 10 levels deep."]


def test_the_depth_of_values_with_templates_is_limited() -> None:
    body: Any = "{{ broken"
    for _ in range(100):
        body = [body]
    step = {"id": "a", "kind": "http_request", "method": "POST", "address": "https://shop.example", "body": body}

    assert [detail for detail in faults_of(step).values() if "nested" in detail] == [
        "Values are nested at most 20 levels deep."
    ]


def test_templates_are_checked_at_any_depth_of_a_value() -> None:
    body = {"lines": [{"text": "{{ contact.first_name }}"}, {"text": "{{ broken"}]}
    step = {"id": "a", "kind": "http_request", "method": "POST", "address": "https://shop.example", "body": body}

    assert list(faults_of(step)) == ["/definition/steps/0/body/lines/1/text"]


def test_the_number_of_faults_is_limited() -> None:
    assert len(definitions.faults({"steps": [5] * 400})) == MAX_FAULTS


def test_all_triggers_together_have_ten_regular_expressions_at_most() -> None:
    trigger = {"event": "message.received", "if": {"field": "contact.email", "is": "matches", "value": "a"}}

    assert faults_of(STOP, triggers=[trigger] * MOST_MATCHES) == {}
    detail = "Give at most 10 comparisons with 'matches' in all of them together."
    assert faults_of(STOP, triggers=[trigger] * (MOST_MATCHES + 1)) == {"/definition/triggers": detail}
