"""Forms of the editor: every kind of step and trigger to a form and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from app.domain.automations.definitions.json_schemas import SCHEMAS
from app.domain.automations.steps import STEP_KINDS
from app.web.automation_editor import editor_conditions, editor_forms, editor_inputs
from app.web.automation_editor.editor_inputs import Spec

EXAMPLES: Mapping[str, Mapping[str, Any]] = {
    name: {"id": "step", "kind": name, **kind.example} for name, kind in STEP_KINDS.items()
}
TRIGGERS = [*editor_inputs.TRIGGERS]
ANYTHING = some.recursive(
    some.none() | some.booleans() | some.integers(-999, 999) | some.text('ab {}\n\r"', max_size=5),
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(some.text("ab", max_size=2), inner, max_size=3),
    max_leaves=4,
)


def sent_back(spec: Spec, step: Mapping[str, Any]) -> dict[str, Any]:
    """What becomes of it if somebody opens its form, and saves it as it is."""
    return editor_forms.read(spec, editor_forms.fields_of(spec, step), step).value


def written_anew(spec: Spec, step: Mapping[str, Any]) -> editor_forms.Read:
    """What somebody gets who fills in an empty form as this one's is."""
    empty = {"id": step["id"], "kind": step["kind"]} if "kind" in step else {}
    return editor_forms.read(spec, editor_forms.fields_of(spec, step), empty)


@pytest.mark.parametrize("kind", STEP_KINDS)
def test_an_example_of_every_kind_is_written_in_its_form(kind: str) -> None:
    spec = editor_inputs.of_kind(kind)
    own = {name: value for name, value in EXAMPLES[kind].items() if name not in STEP_KINDS[kind].lists}
    if "arms" in own:
        own["arms"] = [{"name": arm["name"], "percent": arm["percent"], "was": arm["name"]} for arm in own["arms"]]

    read = written_anew(spec, EXAMPLES[kind])

    assert read.errors == {}
    assert read.value == own


@pytest.mark.parametrize("name", [*TRIGGERS, "Goal"])
def test_an_example_of_every_trigger_is_written_in_its_form(name: str) -> None:
    read = written_anew(editor_inputs.of_trigger(name), SCHEMAS[name]["example"])

    assert read == editor_forms.Read(SCHEMAS[name]["example"])


@pytest.mark.parametrize("kind", STEP_KINDS)
@settings(max_examples=25)
@given(data=some.data())
def test_a_form_that_is_saved_as_it_is_changes_nothing(kind: str, data: some.DataObject) -> None:
    fields = {
        name: some.one_of(ANYTHING, some.just(example) if (example := STEP_KINDS[kind].example.get(name)) else ANYTHING)
        for name in (*STEP_KINDS[kind].fields, "surprise")
        if name not in STEP_KINDS[kind].lists
    }
    given = data.draw(some.fixed_dictionaries({}, optional=fields))
    step = {"id": "step", "kind": kind, **given}

    assert sent_back(editor_inputs.of_kind(kind), step) == step


@given(condition=ANYTHING)
def test_every_condition_is_kept_by_its_rows(condition: Any) -> None:
    comparison = {"field": "contact.email", "is": "equals", "value": condition}
    for each in (comparison, {"all": [comparison]}, {"not": comparison}, {"not": {"any": [comparison] * 2}}):
        mode, rows = editor_conditions.encode(each)
        found = editor_conditions.decode(mode, rows)
        assert found in (each, comparison)


@pytest.mark.parametrize(
    "condition",
    [
        {"field": "contact.tags", "is": "contains", "value": "vip"},
        {"field": "contact.email", "is": "exists"},
        {"any": [{"field": "a", "is": "one_of", "value": ["x", "y"]}, {"field": "b", "is": "at_least", "value": 5}]},
        {"all": [{"field": "a", "is": "equals", "other": "b"}, {"field": "c", "is": "less_than", "days_ago": 3}]},
        {"not": {"any": [{"field": "a", "is": "equals", "value": "1"}, {"not": {"field": "b", "is": "exists"}}]}},
        {"all": [{"field": "a", "is": "exists"}, {"any": [{"all": [{"field": "b", "is": "exists"}]}]}]},
        {"field": "contact.opted_out", "is": "equals", "value": True},
    ],
)
def test_conditions_are_written_as_rows(condition: Any) -> None:
    assert editor_conditions.decode(*editor_conditions.encode(condition)) == condition


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2 days", 172_800),
        ("1 hour 30 minutes", 5_400),
        ("1h30m", 5_400),
        ("1 day, 2 hours and 5 min", 93_900),
        ("90 Seconds", 90),
        ("0 seconds", 0),
        ("1 week", 604_800),
    ],
)
def test_durations_are_read_as_people_write_them(text: str, seconds: int) -> None:
    assert editor_forms.seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "5", "2 fortnights", "-1 day", "1 day or so"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="Write how long"):
        editor_forms.seconds_of(text)


@given(some.integers(0, 10**9))
def test_a_duration_in_words_means_the_same(seconds: int) -> None:
    assert editor_forms.seconds_of(editor_forms.duration_words(seconds)) == seconds


def test_identifiers_of_buttons_are_made_from_letters_of_any_script() -> None:
    fields = {"text": ["When?"], "buttons.id": ["", "", ""], "buttons.label": ["Öffnungszeiten", "Да", "👍"]}

    read = editor_forms.read(editor_inputs.of_kind("send_message"), fields, {})

    assert [each["id"] for each in read.value["buttons"]] == ["offnungszeiten", "dea", "button"]


def test_rows_are_added_moved_and_removed() -> None:
    spec = editor_inputs.of_kind("send_message")
    fields = editor_forms.fields_of(spec, {"text": "", "buttons": [{"id": "y", "label": "Yes"}]})

    added = editor_forms.pressed(spec, fields, "add:buttons")
    assert added is not None
    added["buttons.label"][1] = "No, thanks!"
    moved = editor_forms.pressed(spec, added, "up:buttons:1")
    assert moved is not None
    buttons = editor_forms.read(spec, moved, {}).value["buttons"]
    assert buttons == [{"id": "no_thanks", "label": "No, thanks!"}, {"id": "y", "label": "Yes"}]
    removed = editor_forms.pressed(spec, moved, "remove:buttons:0")
    assert removed is not None
    assert removed["buttons.id"] == ["y"]
    for nothing in ("save", "add:text", "remove:buttons:x", "up:nothing:0"):
        assert editor_forms.pressed(spec, fields, nothing) is None


def test_what_is_wrong_is_said_of_its_field_and_changes_nothing() -> None:
    read = editor_forms.read(
        editor_inputs.of_kind("wait"),
        {"seconds": ["a while"], "until": [""]},
        {"id": "w", "kind": "wait", "seconds": 60},
    )

    assert read.value == {"id": "w", "kind": "wait", "seconds": 60}
    assert list(read.errors) == ["seconds"]
