"""Describes the forms of steps and triggers: inputs made from JSON Schemas, and their options."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from typing import Any, Literal

from app.channels.kinds import CHANNEL_KINDS as CHANNELS
from app.domain.automations import definitions
from app.domain.automations.definitions.json_schemas import SCHEDULES, SCHEMAS
from app.domain.automations.editing import previews, step_trees
from app.domain.automations.steps import STEP_KINDS
from app.domain.automations.steps.set_field import CUSTOM, field_of
from app.domain.contacts import contact_names
from app.domain.triggers.event_kinds import EVENTS
from app.models.automations import Automation
from app.models.channels import Channel
from app.models.contacts import Contact
from app.models.segments import Segment
from app.web.access import workspace_id
from app.web.automation_editor import editor_conditions
from app.web.inbox import inbox_pages

MOST_CHOICES = 500  # the most options of a select: the newest resources
MOST_CONTACTS = 200  # how many of the newest contacts are read for completions
MOST_COMPLETIONS = 300  # the most completions of an input
MOST_PEOPLE = 20  # for how many of the newest contacts a text can be previewed
MOST_VARIABLES = 400  # the most variables that a form lists
_SETTABLE = ("email", "phone", "external_id", "first_name", "last_name", "locale", "timezone", "opted_out")
_ZONES = (
    "Europe/Berlin",
    "Europe/London",
    "Europe/Paris",
    "America/New_York",
    "America/Los_Angeles",
    "Asia/Tokyo",
    "UTC",
)
Type = Literal["text", "line", "duration", "number", "flag", "options", "choice", "condition", "rows", "pairs", "value"]

# Labels of members, if they differ from the member's name.
_LABELS: Mapping[str, str] = {
    "timeout_seconds": "Wait at most",
    "within_seconds": "Within",
    "seconds": "How long",
    "until": "Or until a time",
    "save_as": "Save the result as",
    "format": "What the answer has to be",
    "retry_text": "Text to ask again",
    "attempts": "How often to ask at most",
    "if": "Condition",
    "while": "As long as",
    "over": "For each of",
    "times": "How many times",
    "assignee_id": "Assign to",
    "automation_id": "Automation",
    "segment_id": "Segment",
    "channel_id": "On the channel",
    "channel_kind": "On the latest channel of a kind",
    "on_quiet": "During quiet hours",
    "expires_at": "Do not send after",
    "attachments": "Files",
    "template": "Template of the channel",
    "wait": "Wait for it to end",
    "cancel_together": "Cancel it with this run",
    "also_replies": "Replies to a run, too",
    "date": "Field with the date",
    "offset_days": "Days later",
    "timezone": "Time zone",
}
# The labels of options, by value. Any other value is its own label, capitalized.
_OPTIONS: Mapping[str, str] = {
    **EVENTS,
    **{name: kind.form.title for name, kind in CHANNELS.items() if kind.form},
    "wait": "Wait for their end",
    "skip": "Leave the message out",
    "send": "Send it all the same",
    "ignore": "Send it all the same",
    "booking.starts_at": "A booking begins",
    "choice": "One of the buttons",
    "email": "An e-mail address",
    "phone": "A phone number",
    "number": "A number",
    "date": "A date",
    "text": "Any text",
}
# Hints that replace the schema's description, which is written for people who write JSON. "" if the label is enough.
_HINTS: Mapping[str, str] = {
    **dict.fromkeys(("text", "if", "while", "assignee_id", "event", "tag", "segment_id", "every"), ""),
    "buttons": "The label is what the contact sees, of 20 characters. Its identifier may be left out.",
    "arms": "The name and the share of each. Its steps stand in the picture.",
    "seconds": "In words, such as 2 days or 1 hour 30 minutes.",
    "timeout_seconds": "In words, such as 2 days; 90 days at most.",
    "within_seconds": "In words, such as 7 days; 90 days at most.",
    "at": "A time of day, such as 09:00.",
    "until": "Such as 2026-12-24T09:00:00Z, or a variable that holds a time.",
    "save_as": "Another name for the result, by which later steps can use it.",
}
# The lists of completions of inputs, by field.
_LISTS = {
    "tag": "tags",
    "field": "contact-fields",
    "date": "date-fields",
    "timezone": "zones",
    "label": "labels",
    "over": "paths",
}
# The fields under “More options”, which most people do not change.
_FURTHER = (
    *("attachments", "template", "expires_at", "channel_id", "channel_kind", "on_quiet", "quiet_hours", "save_as"),
    *("retry_text", "attempts", "result", "cancel_together", "timezone", "also_replies", "variables"),
)
# The types of triggers that the editor offers: their labels, by the names of their schemas.
TRIGGERS: Mapping[str, str] = {
    "Trigger": "Something happens",
    "BeforeTrigger": "Some time before a booking",
    "DateTrigger": "On a date that contacts have",
    "EntryTrigger": "A contact enters a segment",
    "DailyTrigger": "Every day, for a segment",
    "WeeklyTrigger": "Every week, for a segment",
    "MonthlyTrigger": "Every month, for a segment",
}


@dataclass(frozen=True, slots=True)
class Input:
    """An input for one member. `options`: (value, label). `columns`: the fields of a row, if any.

    `list`: the name of its list of completions; "" without one. `is_template`: variables can be inserted.
    `is_further`: under “More options”.
    """

    name: str
    type: Type
    label: str
    hint: str = ""
    is_required: bool = False
    is_template: bool = False
    is_further: bool = False
    options: Sequence[tuple[str, str]] = ()
    columns: Sequence[str] = ()
    list: str = ""


@dataclass(frozen=True, slots=True)
class Spec:
    """A form. `about`: a sentence about its subject. `kept`: members that only the picture shows."""

    title: str
    about: str
    inputs: Sequence[Input]
    kept: frozenset[str] = field(default=frozenset())


@cache
def of_kind(name: str) -> Spec:
    """Returns the form of a kind of step, without the lists of nested steps."""
    kind = STEP_KINDS[name]
    inputs = [
        _input(each, schema, each in kind.templates, each in kind.conditions or each == "if", each in kind.required)
        for each, schema in kind.fields.items()
        if each not in kind.lists
    ]
    return Spec(kind.entry.title, _first_sentence(kind.description), inputs, frozenset(kind.lists))


@cache
def of_trigger(name: str) -> Spec:
    """Returns the form of a trigger or of the goal, by the name of its schema."""
    schema = SCHEMAS[name]
    inputs = [
        _input(each, inner, False, each == "if", each in schema["required"])
        for each, inner in schema["properties"].items()
    ]
    return Spec(TRIGGERS.get(name, name), _first_sentence(schema["description"]), inputs)


def sort_of(trigger: Mapping[str, Any]) -> str:
    """Returns the name of the schema of a trigger, which may have faults."""
    if "before" in trigger:
        return "BeforeTrigger"
    if "date" in trigger:
        return "DateTrigger"
    return SCHEDULES.get(str(trigger.get("every")), "DailyTrigger") if "segment_id" in trigger else "Trigger"


def _first_sentence(description: str) -> str:
    return description.replace("`", "").partition(". ")[0].removesuffix(".") + "."


def _input(name: str, schema: Mapping[str, Any], is_template: bool, is_condition: bool, is_required: bool) -> Input:
    kind = _type(name, schema, is_condition)
    return Input(
        name,
        kind,
        _LABELS.get(name, name.replace("_", " ").capitalize()),
        _HINTS.get(name, str(schema.get("description", "")).replace("`", "")),
        is_required,
        is_template,
        name in _FURTHER and not is_required,
        _options(schema),
        _columns(name, kind, schema),
        _LISTS.get(name, ""),
    )


def _type(name: str, schema: Mapping[str, Any], is_condition: bool) -> Type:
    kind = schema.get("type")
    if is_condition:
        return "condition"
    if name in _SELECTS:
        return "choice"
    if "enum" in schema:
        return "options"
    if kind == "integer" and name.endswith("seconds"):
        return "duration"
    plain: dict[str, Type] = {"integer": "number", "number": "number", "boolean": "flag", "object": "pairs"}
    plain |= {"array": "rows", "string": "text" if name in ("text", "retry_text") else "line"}
    return plain.get(kind, "value") if isinstance(kind, str) else "value"


def _options(schema: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [
        (str(each), _OPTIONS.get(str(each), str(each) if str(each).isupper() else str(each).capitalize()))
        for each in schema.get("enum", ())
    ]


def _columns(name: str, kind: Type, schema: Mapping[str, Any]) -> tuple[str, ...]:
    if kind == "condition":
        return editor_conditions.COLUMNS
    if kind == "pairs":
        return ("key", "value")
    items = schema.get("items", {}).get("properties", {}) if kind == "rows" else {}
    # The hidden column `was` has an arm's former name: if the name is changed, the arm's steps follow it.
    return (*(each for each in items if each != "steps"), *(("was",) if name == "arms" else ()))


class Choices:
    """The options and completions of one form's inputs. Reads contacts once, if they are needed."""

    def __init__(self, definition: Mapping[str, Any]) -> None:
        self._definition = definition
        self._steps = [placed.step for placed in step_trees.walk(definition)]

    def options(self, name: str) -> Sequence[tuple[str, str]]:
        """Returns (identifier, name) for each option of the field's select, up to MOST_CHOICES resources."""
        return _SELECTS[name]()

    def completions(self, name: str) -> Sequence[str]:
        """Returns the completions of the list with that name (Input.list), up to MOST_COMPLETIONS."""
        return _COMPLETIONS[name](self)[:MOST_COMPLETIONS]

    def variables(self) -> list[str]:
        """The variables for templates and conditions, up to MOST_VARIABLES. Those of steps come first."""
        known = previews.paths(definitions.names(self._definition))
        named = {f"steps.{step['save_as']}" for step in self._steps if step.get("save_as")}
        first = [each for each in known if each.startswith(("steps.", "contact."))]
        own = [f"contact.custom_fields.{name}" for name in self.custom_fields()]
        ordered = [*sorted(named), *first, *own, *(each for each in known if each.startswith("trigger."))]
        return list(dict.fromkeys([*ordered, *known]))[:MOST_VARIABLES]

    def people(self) -> list[tuple[str, str]]:
        """Returns (identifier, name) for the contacts with which a text can be previewed."""
        return [(contact.id, contact_names.name_of(contact)) for contact in self._contacts[:MOST_PEOPLE]]

    @cached_property
    def _contacts(self) -> list[Contact]:
        return Contact.newest(workspace_id(), {}, None, MOST_CONTACTS)

    def custom_fields(self) -> list[str]:
        """The names of custom fields that the newest contacts have, or that steps of the definition set."""
        found = {name for contact in self._contacts for name in contact.custom_fields}
        for step in self._steps:
            name = step.get("field")
            if step["kind"] == "set_field" and isinstance(name, str) and field_of(name) not in _SETTABLE:
                found.add(field_of(name).removeprefix(CUSTOM))
        return sorted(found)

    def tags(self) -> list[str]:
        """The tags of the newest contacts, and those in the definition that contain no variable."""
        found = {tag for contact in self._contacts for tag in contact.tags}
        named = [*self._steps, *self._definition.get("triggers", [])]
        found |= {each["tag"] for each in named if isinstance(each.get("tag"), str) and "{" not in each["tag"]}
        return sorted(found)

    def labels(self) -> list[str]:
        """The labels that steps of the definition set."""
        return sorted({step["label"] for step in self._steps if isinstance(step.get("label"), str)})


def _members() -> list[tuple[str, str]]:
    return [("null", "Nobody"), *list(inbox_pages.people().items())[:MOST_CHOICES]]


def _newest(model: Any) -> list[tuple[str, str]]:
    found = model.in_workspace(workspace_id()).select(model.id, model.name).order_by(model.id.desc())
    return [(each.id, each.name) for each in found.limit(MOST_CHOICES)]


_SELECTS: Mapping[str, Callable[[], Sequence[tuple[str, str]]]] = {
    "automation_id": partial(_newest, Automation),
    "assignee_id": _members,
    "segment_id": partial(_newest, Segment),
    "channel_id": partial(_newest, Channel),
}
_COMPLETIONS: Mapping[str, Callable[[Choices], Sequence[str]]] = {
    "tags": Choices.tags,
    "contact-fields": lambda choices: [*_SETTABLE, *choices.custom_fields()],
    "date-fields": lambda choices: [f"contact.custom_fields.{name}" for name in choices.custom_fields()],
    "zones": lambda choices: _ZONES,
    "labels": Choices.labels,
    "paths": Choices.variables,
}
