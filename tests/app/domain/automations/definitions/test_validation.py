"""What is wrong with a definition is said at its place, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from app.domain.automations import definitions
from app.domain.automations.definitions.json_schemas import DEEPEST, MOST_STEPS, MOST_TRIGGERS
from app.domain.automations.definitions.known_names import CONTACT_FIELDS
from app.domain.automations.steps import STEP_KINDS
from app.domain.contacts.contacts import represent
from app.domain.triggers.conditions import MOST_MATCHES
from app.domain.triggers.event_kinds import EVENTS
from app.domain.webhooks import catalogue
from app.errors import MAX_FAULTS
from app.models.contacts import Contact

# Addresses are compared with the networks that the settings allow.
pytestmark = pytest.mark.usefixtures("app")

IS_VIP = {"field": "contact.tags", "is": "contains", "value": "vip"}
STOP = {"id": "end", "kind": "stop"}
SEGMENT = "seg_01kaj5bd40e6rr3f5y2kq0w9xz"
BIRTHDAY = "contact.custom_fields.birthday"


def faults_of(*steps: Any, **others: Any) -> dict[str, str]:
    return {
        fault.pointer: fault.detail for fault in definitions.faults({"steps": list(steps), **others}, "/definition")
    }


def nested(depth: int) -> dict[str, Any]:
    step: dict[str, Any] = STOP
    for level in range(depth):
        step = {"id": f"level-{level}", "kind": "branch", "if": IS_VIP, "then": [step]}
    return step


@pytest.mark.parametrize("kind", STEP_KINDS)
def test_the_example_of_each_kind_is_valid(kind: str) -> None:
    assert faults_of({"id": "step", "kind": kind, **STEP_KINDS[kind].example}) == {}


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
        ({"id": "a"}, "/kind", "Give the kind of the step. The kinds are add_note, add_tag, ask"),
        ({"id": "a", "kind": "send_mail"}, "/kind", "no kind of step 'send_mail'. Did you mean 'send_message'? The"),
        ({"id": "a", "kind": "x"}, "/kind", "There is no kind of step 'x'. The kinds are add_note"),
        ({"id": "a", "kind": ["stop"]}, "/kind", "Give the kind of the step"),
        (
            {"id": "a", "kind": "stop", "seconds": 5},
            "/seconds",
            "Unknown field. A step of kind 'stop' has id, kind, result.",
        ),
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
        ({"id": "a", "kind": "set_field", "field": "contact.email", "value": "x"}, "/value", "not an e-mail address"),
        (
            {"id": "a", "kind": "set_field", "field": "contact.tags", "value": "x"},
            "/field",
            "Use add_tag and remove_tag",
        ),
        ({"id": "a", "kind": "set_field", "field": "emial", "value": "x"}, "/field", "Did you mean 'email'?"),
        ({"id": "a", "kind": "set_field", "field": "First name", "value": "x"}, "/field", "Did you mean 'first_name'?"),
        ({"id": "a", "kind": "set_field", "field": "email ", "value": "x"}, "/field", "Did you mean 'email'?"),
        (
            {"id": "a", "kind": "set_field", "field": "custom_fields. x", "value": "x"},
            "/field",
            "The name of a field has",
        ),
        (
            {"id": "a", "kind": "set_field", "field": "contact.plan", "value": "x"},
            "/field",
            "There is no 'contact.plan'. A custom field is 'custom_fields.plan'.",
        ),
        ({"id": "a", "kind": "set_field", "field": "steps.q", "value": "x"}, "/field", "There is no 'steps.q'."),
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
        ("contact.tag", "There is no 'contact.tag'. Did you mean 'contact.tags'?"),
        ("contact.frist_name", "There is no 'contact.frist_name'. Did you mean 'contact.first_name'?"),
        ("conversation.assignee", "There is no 'conversation.assignee'. Did you mean 'conversation.assignee_id'?"),
        ("trigger.plan", "There is no 'trigger.plan'. There are: trigger.event, trigger.variables."),
        ("trigger.event.kinds", "There is no 'trigger.event.kinds'. Did you mean 'trigger.event.kind'?"),
        ("trigger.event.data.sale.amout", "Did you mean 'trigger.event.data.sale.amount'?"),
        (
            "trigger.event.data.booking.id",
            "There is no 'trigger.event.data.booking'. There are: trigger.event.data.c",
        ),
        ("steps.ak.text", "There is no 'steps.ak'. Did you mean 'steps.ask'?"),
        ("steps.ask.txt", "There is no 'steps.ask.txt'. Did you mean 'steps.ask.text'?"),
        ("steps.pause.text", "There is no 'steps.pause.text'. 'steps.pause' has no members."),
    ],
)
def test_only_what_there_is_can_be_named(field: str, detail: str) -> None:
    ask = {"id": "ask", "kind": "wait_for_reply", "save_as": "reply"}
    pause = {"id": "pause", "kind": "wait", "seconds": 1}
    branch = {"id": "a", "kind": "branch", "if": {"all": [IS_VIP, {"field": field, "is": "exists"}]}}
    other = {"id": "b", "kind": "branch", "if": {"field": "contact.id", "is": "equals", "other": field}}
    text = {"id": "c", "kind": "send_message", "text": f"Hello {{{{ contact.email }}}} {{{{ {field} | upcase }}}}"}
    body = {"id": "d", "kind": "http_request", "method": "POST", "address": "https://shop.example/"}

    found = faults_of(
        *(ask, pause, branch, other, text, body | {"body": {"list": [f"{{% if {field} %}}1{{% endif %}}"]}}),
        triggers=[{"event": "sale.recorded"}],
    )

    places = ("2/if/all/1/field", "3/if/other", "4/text", "5/body/list/0")
    assert list(found) == [f"/definition/steps/{place}" for place in places]
    assert all(detail in each for each in found.values())


@pytest.mark.parametrize(
    "name",
    [
        "contact",
        "contact.tags.size",
        "contact.tags[0]",
        "contact.custom_fields.whatever.it.is",
        'contact.custom_fields["favourite colour"]',
        "contact[trigger.variables.field]",
        "conversation.id",
        "trigger.event.data.sale.amount",
        "trigger.event.data.booking.starts_at",
        "trigger.event.data.tag",
        "trigger.variables.order.lines[0].sku",
        "steps.ask.text",
        "steps.reply.size",
        "steps.call.body.customer.id",
        "own",
    ],
)
def test_what_there_may_be_can_be_named(name: str) -> None:
    calls = {"id": "call", "kind": "http_request", "method": "GET", "address": "https://shop.example/"}
    text = f"{{% assign own = 1 %}}{{% for each in contact.tags %}}{{{{ each }}}}{{% endfor %}}{{{{ {name} }}}}"

    assert (
        faults_of(
            *({"id": "ask", "kind": "wait_for_reply", "save_as": "reply"}, calls),
            {"id": "c", "kind": "send_message", "text": text},
            triggers=[{"event": "sale.recorded"}, {"event": "booking.created"}, {"event": "tag.added"}],
        )
        == {}
    )


def test_without_triggers_any_event_can_be_named() -> None:
    text = "{{ trigger.event.data.sale.amount }} {{ trigger.event.data.booking.title }}"

    assert faults_of({"id": "a", "kind": "send_message", "text": text}) == {}
    found = faults_of({"id": "a", "kind": "send_message", "text": "{{ foo }} {{ foo }} {{ contat.email }}"})
    assert list(found) == ["/definition/steps/0/text"]


@pytest.mark.parametrize(
    ("trigger", "pointer", "detail"),
    [
        ({}, "/event", "Give one of contact.created"),
        ({"event": 5}, "/event", "Give one of"),
        ({"event": "tag.ad"}, "/event", "No trigger is called 'tag.ad'. Did you mean 'tag.added'? Give one of contact"),
        ({"event": "x"}, "/event", "No trigger is called 'x'. Give one of contact.created"),
        ({"event": "message.sent"}, "/event", "Give one of"),
        ({"event": "contact.deleted"}, "/event", "Give one of"),
        ({"event": "endpoint.stopped"}, "/event", "Give one of"),
        ({"event": "contact.created", "tag": "vip"}, "/tag", "only tag.added and tag.removed have a tag"),
        ({"event": "tag.added", "tag": " vip"}, "/tag", "Give a tag"),
        ({"event": "tag.added", "tag": ""}, "/tag", "Give a tag"),
        ({"event": "tag.added", "if": {"field": "contact.tags"}}, "/if/is", "Give one of"),
        (
            {"event": "tag.added", "if": {"field": "trigger.variables.a", "is": "exists"}},
            "/if/field",
            "There is no",
        ),
        ({"event": "tag.added", "unless": 1}, "/unless", "There are 'event', 'tag', 'also_replies' and 'if'."),
        ({"event": "tag.added", "also_replies": True}, "/also_replies", "only message.received can be a reply"),
        ({"event": "message.received", "also_replies": "yes"}, "/also_replies", "Give true or false."),
    ],
)
def test_triggers_and_exits_are_checked(trigger: Any, pointer: str, detail: str) -> None:
    [exit_fault] = definitions.exit_faults([trigger], "/exits")

    assert exit_fault.pointer == f"/exits/0{pointer}"
    assert detail in exit_fault.detail
    assert list(faults_of(triggers=[trigger])) == [f"/definition/triggers/0{pointer}"]


@pytest.mark.parametrize(
    ("trigger", "pointer", "detail"),
    [
        ({"before": "booking.ends_at", "seconds": 60}, "/before", "Give 'booking.starts_at'."),
        ({"before": ["booking.starts_at"], "seconds": 60}, "/before", "Give 'booking.starts_at'."),
        ({"before": "booking.starts_at"}, "/seconds", "Give this field."),
        ({"before": "booking.starts_at", "seconds": 0}, "/seconds", "Give a number of at least 1."),
        ({"before": "booking.starts_at", "seconds": 31_536_001}, "/seconds", "at most 31,536,000"),
        ({"before": "booking.starts_at", "seconds": "60"}, "/seconds", "Give a whole number."),
        ({"before": "booking.starts_at", "seconds": 60, "event": "tag.added"}, "/event", "Unknown field."),
        ({"before": "booking.starts_at", "seconds": 60, "tag": "vip"}, "/tag", "Unknown field."),
        ({"before": "booking.starts_at", "seconds": 60, "date": BIRTHDAY}, "/date", "Unknown field."),
        ({"date": "contact.created_at", "at": "09:00"}, "/date", "Give the path of a custom field"),
        ({"date": "contact.custom_fields.", "at": "09:00"}, "/date", "Give the path of a custom field"),
        ({"date": 5, "at": "09:00"}, "/date", "Give text."),
        ({"date": BIRTHDAY}, "/at", "Give this field."),
        ({"date": BIRTHDAY, "at": "9:00"}, "/at", "Give a time of day such as 09:00."),
        ({"date": BIRTHDAY, "at": "24:00"}, "/at", "Give a time of day such as 09:00."),
        ({"date": BIRTHDAY, "at": "09:00", "every": "month"}, "/every", "Give 'year'."),
        ({"date": BIRTHDAY, "at": "09:00", "offset_days": 366}, "/offset_days", "at most 365"),
        ({"date": BIRTHDAY, "at": "09:00", "offset_days": -366}, "/offset_days", "at least -365"),
        ({"date": BIRTHDAY, "at": "09:00", "offset_days": 0.5}, "/offset_days", "Give a whole number."),
        ({"date": BIRTHDAY, "at": "09:00", "event": "tag.added"}, "/event", "Unknown field."),
        ({"segment_id": SEGMENT, "at": "09:00"}, "/every", "Give one of day, week, month, entry."),
        ({"segment_id": SEGMENT, "every": "year", "at": "09:00"}, "/every", "Give one of day, week, month, entry."),
        ({"segment_id": SEGMENT, "every": ["day"], "at": "09:00"}, "/every", "Give one of day, week, month, entry."),
        ({"segment_id": "con_1", "every": "day", "at": "09:00"}, "/segment_id", "Give the identifier of a segment"),
        ({"segment_id": SEGMENT, "every": "entry", "at": "09:00"}, "/at", "Unknown field."),
        ({"segment_id": SEGMENT, "every": "entry", "if": {"not": 5}}, "/if/not", "Give a condition"),
        ({"segment_id": SEGMENT, "every": "day", "at": "9"}, "/at", "Give a time of day such as 09:00."),
        ({"segment_id": SEGMENT, "every": "day", "at": "09:00", "on": 1}, "/on", "Unknown field."),
        ({"segment_id": SEGMENT, "every": "week", "at": "09:00"}, "/on", "Give this field."),
        ({"segment_id": SEGMENT, "every": "week", "at": "09:00", "on": 1}, "/on", "Give one of 'monday'"),
        ({"segment_id": SEGMENT, "every": "month", "at": "09:00", "on": 32}, "/on", "at most 31"),
        ({"segment_id": SEGMENT, "every": "day", "at": "09:00", "timezone": "Mars"}, "/timezone", "Give the name of"),
        ({"segment_id": SEGMENT, "every": "day", "at": "09:00", "date": BIRTHDAY}, "/date", "Unknown field."),
        ({"segment_id": SEGMENT, "every": "day", "at": "09:00", "if": {"not": 5}}, "/if/not", "Give a condition"),
        ({"date": BIRTHDAY, "at": "09:00", "if": {"field": "booking.id", "is": "exists"}}, "/if/field", "There is no"),
        (
            {"before": "booking.starts_at", "seconds": 60, "if": {"field": "contact.nme", "is": "exists"}},
            "/if/field",
            "There is no 'contact.nme'.",
        ),
    ],
)
def test_triggers_by_time_are_checked(trigger: Any, pointer: str, detail: str) -> None:
    found = faults_of(triggers=[trigger])

    assert detail in found[f"/definition/triggers/0{pointer}"]


def test_what_a_trigger_by_time_brings_along_can_be_named() -> None:
    before = {"before": "booking.starts_at", "seconds": 86400}
    is_cut = {"field": "trigger.event.data.booking.title", "is": "equals", "value": "Haircut"}
    step = {"id": "a", "kind": "send_message", "text": "{{ trigger.event.data.booking.starts_at }} {{ contact.email }}"}

    assert faults_of(step, triggers=[before | {"if": is_cut}]) == {}
    birthday = {"date": BIRTHDAY, "every": "year", "at": "09:00", "offset_days": -3}
    assert (
        "There is no 'trigger.event.data.booking'" in faults_of(step, triggers=[birthday])["/definition/steps/0/text"]
    )
    assert faults_of(step, triggers=[birthday, before]) == {}
    assert faults_of(step | {"text": "{{ trigger.event.data.contact.email }}"}, triggers=[birthday]) == {}
    named = step | {"text": "{{ trigger.event.data.sale.amount }}"}
    assert "There is no 'trigger.event.data.sale'" in faults_of(named, triggers=[before])["/definition/steps/0/text"]
    assert definitions.exit_faults([before], "/exits") != []


def test_triggers_listen_to_events_that_happen_to_contacts() -> None:
    listed = [kind for kind in EVENTS if kind in catalogue.EVENT_KINDS]

    assert all("contact" in catalogue.EVENT_KINDS[kind].sample() for kind in listed)
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


def test_only_exits_can_name_the_run() -> None:
    fields = ("steps.a.text", "run.variables.order", "run.trigger.event.data.booking.id", "run.id")
    for field in fields:
        condition = {"field": field, "is": "equals", "other": "trigger.event.data.sale.reference"}
        listed = [{"event": "sale.recorded", "if": condition}]

        assert definitions.exit_faults(listed) == []
        assert list(faults_of(STOP, triggers=listed)) == ["/definition/triggers/0/if/field"]
    [unknown] = definitions.exit_faults([{"event": "sale.recorded", "if": {"field": "run.trigger.x", "is": "exists"}}])
    assert unknown.detail == "There is no 'run.trigger.x'. There are: run.trigger.event."


YES, NO = {"id": "yes", "label": "Yes"}, {"id": "no", "label": "No"}


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"buttons": [YES, NO]}, None),
        ({"buttons": [YES, {"id": "x" * 64, "label": "{{ contact.first_name | default: 'somebody' }}"}]}, None),
        ({"buttons": []}, "buttons"),
        ({"buttons": [{"id": f"{n}", "label": f"{n}"} for n in range(11)]}, "buttons"),
        ({"buttons": [{"id": "yes"}]}, "buttons/0/label"),
        ({"buttons": [YES | {"color": "red"}]}, "buttons/0/color"),
        ({"buttons": [YES, NO | {"id": "yes"}]}, "buttons/1/id"),
        ({"buttons": [YES, NO | {"label": "YES "}]}, "buttons/1/label"),
        ({"buttons": [YES | {"label": "x" * 21}]}, "buttons/0/label"),
        ({"buttons": [YES | {"label": " \n"}]}, "buttons/0/label"),
        ({"buttons": [YES | {"label": "{{ contat.email }}"}]}, "buttons/0/label"),
        ({"buttons": [YES | {"label": "{{ contact.email"}]}, "buttons/0/label"),
        ({"buttons": [YES | {"id": "größe"}]}, "buttons/0/id"),
        ({"buttons": [YES | {"id": "x" * 65}]}, "buttons/0/id"),
        ({"buttons": [YES], "template": {"name": "hello"}}, "buttons"),
    ],
)
@pytest.mark.parametrize("kind", ["send_message", "ask"])
def test_buttons_of_a_step_are_checked(kind: str, fields: dict[str, Any], place: str | None) -> None:
    found = faults_of({"id": "a", "kind": kind, "text": "Sure?", **fields})

    assert [pointer.removeprefix("/definition/steps/0/") for pointer in found] == ([place] if place else [])


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"attachments": [{"address": "https://shop.example/bills/{{ contact.id }}.pdf"}]}, None),
        ({"attachments": [{"address": "https://shop.example/map.png"}] * 10}, None),
        ({"attachments": []}, "attachments"),
        ({"attachments": [{"address": "https://shop.example/map.png"}] * 11}, "attachments"),
        ({"attachments": [{"upload_id": "upl_1"}]}, "attachments/0/address"),
        ({"attachments": [{"address": "http://shop.example/map.png"}]}, "attachments/0/address"),
        ({"attachments": [{"address": "https://10.0.0.1/map.png"}]}, "attachments/0/address"),
        ({"attachments": [{"address": "https://shop.example/{{ contat.id }}"}]}, "attachments/0/address"),
        ({"attachments": [{"address": "https://shop.example/a"}], "template": {"name": "hello"}}, "attachments"),
    ],
)
@pytest.mark.parametrize("kind", ["send_message", "ask"])
def test_files_of_a_step_are_checked(kind: str, fields: dict[str, Any], place: str | None) -> None:
    found = faults_of({"id": "a", "kind": kind, "text": "Your bill", **fields})

    places = [pointer.removeprefix("/definition/steps/0/") for pointer in found]
    assert place in places if place else places == []


@pytest.mark.parametrize(("buttons", "places"), [([YES], []), (None, ["/definition/steps/0/buttons"])])
def test_a_choice_needs_buttons(buttons: Any, places: list[str]) -> None:
    step = {"id": "a", "kind": "ask", "text": "Sure?", "format": "choice"}

    assert list(faults_of(step | ({"buttons": buttons} if buttons else {}))) == places


HOURS = {
    **{"id": "q", "kind": "ask", "text": "What?", "format": "choice", "save_as": "topic"},
    "buttons": [{"id": "hours", "label": "Öffnungszeiten"}, {"id": "order", "label": "My  order"}],
}


@pytest.mark.parametrize(
    ("field", "how", "value", "said"),
    [
        ("q.value", "equals", "öffnungszeiten", None),
        ("q.value", "equals", "My order", None),
        ("topic", "equals", "hours", "Did you mean 'Öffnungszeiten'?"),
        ("q.value", "equals", "Offnungszeit", "Did you mean 'Öffnungszeiten'?"),
        ("q.value", "not_equals", "Nothing", "There are: 'Öffnungszeiten', 'My order'."),
        ("q.value", "contains", "order", None),
        ("q.value", "starts_with", "order", "Did you mean 'My order'?"),
        ("q.value", "matches", "^(my|your) ", None),
        ("q.value", "at_least", 3, None),
        ("q.value", "exists", None, None),
        ("q.button_id", "equals", "hours", None),
        ("q.button_id", "equals", "Öffnungszeiten", "Did you mean 'hours'?"),
        ("q.text", "equals", "Anything that is typed", None),
    ],
)
def test_a_condition_compares_with_what_a_button_can_give(field: str, how: str, value: Any, said: str | None) -> None:
    compared = {"field": f"steps.{field}", "is": how} | ({} if value is None else {"value": value})

    found = faults_of(HOURS, {"id": "b", "kind": "branch", "if": {"not": compared}})

    expected = {} if said is None else {"/definition/steps/1/if/not/value": said}
    assert {at: detail.partition(" here. ")[2] for at, detail in found.items()} == expected


def test_each_of_several_answers_is_looked_at() -> None:
    compared = {"field": "steps.q.value", "is": "one_of", "value": ["My order", "My oder"]}

    found = faults_of(HOURS, {"id": "b", "kind": "branch", "if": compared})

    said = "No button of the question gives 'My oder' here. Did you mean 'My order'?"
    assert found == {"/definition/steps/1/if/value/1": said}


@pytest.mark.parametrize(
    "others",
    [
        {"buttons": [{"id": "hours", "label": "{{ contact.first_name }}"}]},
        {"format": "text"},
        {"save_as": "other"},
    ],
)
def test_answers_that_are_not_known_are_compared_with_anything(others: dict[str, Any]) -> None:
    asked = {"id": "open", "kind": "ask", "text": "Which?", "save_as": "topic"}
    compared = {"field": "steps.topic", "is": "equals", "value": "Anything"}

    assert faults_of(HOURS | others, asked, {"id": "b", "kind": "branch", "if": compared}) == {}


@pytest.mark.parametrize(
    "field", ["plan", "Last purchase", "größe", "custom_fields.emial", "contact.custom_fields.Email", "emergency_phone"]
)
def test_custom_fields_have_names_of_their_own(field: str) -> None:
    assert faults_of({"id": "a", "kind": "set_field", "field": field, "value": "x"}) == {}


@pytest.mark.parametrize(
    ("fields", "places"),
    [
        ({"text": "x" * 4096}, []),
        ({"text": "x" * 4097}, ["text"]),
        ({"text": "x" * 4096 + "{{ contact.first_name }}"}, []),
        ({"text": "x" * 4097 + "{{ contact.first_name }}"}, ["text"]),
        ({"text": "x" * 4097 + "{% if contact.email %}x{% endif %}"}, []),
        ({"text": "x" * 1025, "channel_kind": "telegram"}, []),
        (
            {"text": "x" * 1025, "channel_kind": "telegram", "attachments": [{"address": "https://8.8.8.8/a.pdf"}]},
            ["text"],
        ),
    ],
)
def test_a_message_is_no_longer_than_its_channel_takes(fields: dict[str, Any], places: list[str]) -> None:
    found = faults_of({"id": "a", "kind": "send_message", **fields})

    assert [pointer.removeprefix("/definition/steps/0/") for pointer in found] == places


def test_the_text_of_another_try_is_no_longer_than_a_message() -> None:
    assert list(faults_of({"id": "a", "kind": "ask", "text": "When?", "retry_text": "x" * 4097})) == [
        "/definition/steps/0/retry_text"
    ]


def test_what_was_pressed_can_be_named() -> None:
    asks = {"id": "asks", "kind": "ask", "text": "Sure?"}
    waits = {"id": "waits", "kind": "wait_for_reply"}
    text = "{{ steps.asks.button_id }} {{ steps.waits.button_id }} {{ trigger.event.data.message.button_id }}"

    found = faults_of(
        asks, waits, {"id": "c", "kind": "send_message", "text": text}, triggers=[{"event": "message.received"}]
    )

    assert found == {}
