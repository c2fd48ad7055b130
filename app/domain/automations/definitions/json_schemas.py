"""JSON Schemas of definitions, generated from the kinds of steps; part of the OpenAPI document."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from app.domain.automations.steps import STEP_KINDS
from app.domain.automations.steps.base import StepKind, whole_number
from app.domain.automations.steps.times import LONGEST_SECONDS
from app.domain.triggers import conditions, event_kinds
from app.domain.triggers.timed_triggers import ENTRY, WEEKDAYS

MOST_STEPS = 500
MOST_TRIGGERS = 64
LONGEST_BEFORE_SECONDS = 365 * 24 * 60 * 60
MOST_OFFSET_DAYS = 365
DEEPEST = 10
ID = "^[A-Za-z0-9_-]{1,64}$"

REPLY_EVENT = "message.received"

# The names of the schemas of triggers at regular times, by their `every`.
SCHEDULES = {"day": "DailyTrigger", "week": "WeeklyTrigger", "month": "MonthlyTrigger", ENTRY: "EntryTrigger"}
_TRIGGERS = ("Trigger", "BeforeTrigger", "DateTrigger", *SCHEDULES.values())
_CONDITION = {"$ref": "#/components/schemas/Condition"}
_STEPS = {"type": "array", "items": {"$ref": "#/components/schemas/Step"}}


def name_of(kind: str, noun: str = "Step") -> str:
    """Returns the name of a kind's component: `AddTagStep` for the step `add_tag`."""
    return "".join(word.capitalize() for word in kind.split("_")) + noun


def any_kind(noun: str, kinds: Iterable[str], description: str) -> dict[str, Any]:
    """Returns the schema of a `noun` (Step or Action) of any of the kinds, told apart by `kind`."""
    components = {kind: f"#/components/schemas/{name_of(kind, noun)}" for kind in kinds}
    return {
        "description": description,
        "oneOf": [{"$ref": component} for component in components.values()],
        "discriminator": {"propertyName": "kind", "mapping": components},
    }


def object_schema(
    description: str, required: Iterable[str], properties: Mapping[str, Any], example: Any = None
) -> dict[str, Any]:
    """Returns the schema of an object without other properties; without `example` if that is None."""
    return {
        "type": "object",
        "description": description,
        "required": [*required],
        "additionalProperties": False,
        "properties": properties,
        **({} if example is None else {"example": example}),
    }


def _of_kind(name: str, kind: StepKind) -> dict[str, Any]:
    fields = {field: dict(schema) for field, schema in kind.fields.items()}
    for field in kind.lists:
        fields[field] = _STEPS | fields.get(field, {})
    if kind.arms:
        arm = fields[kind.arms]["items"]
        fields[kind.arms]["items"] = arm | {"properties": arm["properties"] | {"steps": _STEPS}}
    for field in kind.conditions:
        fields[field] = _CONDITION | fields.get(field, {})
    common = {
        "id": {"type": "string", "pattern": ID, "description": "Unique in the definition."},
        "kind": {"type": "string", "const": name},
    }
    example = {"id": "step", "kind": name, **kind.example}
    return object_schema(kind.description, ["id", "kind", *kind.required], common | fields, example)


_CLOCK = {
    "type": "string",
    "pattern": "^([01][0-9]|2[0-3]):[0-5][0-9]$",
    "x-form": "a time of day such as 09:00",
}
_SEGMENT_ID = {
    "type": "string",
    "pattern": "^seg_[0-7][0-9a-hjkmnp-tv-z]{25}$",
    "x-form": "the identifier of a segment, which begins with seg_",
    "description": "The segment.",
}
_IF_THEN = _CONDITION | {"description": "Only if this holds then, for `contact` and `trigger.event`."}


def _schedule(every: str, example: Any = None, **on: Any) -> dict[str, Any]:
    """Returns the schema of a schedule. `on`: the schema of its day, if it has one; `example`: a day."""
    days = dict.fromkeys(on, example)
    return object_schema(
        f"A time in each {every} at which a run starts for each contact of a segment.",
        ["segment_id", "every", "at", *on],
        {
            "segment_id": _SEGMENT_ID,
            "every": {"type": "string", "enum": [every], "description": "How often."},
            **on,
            "at": _CLOCK | {"description": "When, in the time zone of the schedule, or of the workspace."},
            "timezone": {
                "type": "string",
                "format": "timezone",
                "description": "A name in the IANA time zone database.",
            },
            "if": _IF_THEN,
        },
        example={"segment_id": "seg_01kaj5bd40e6rr3f5y2kq0w9xz", "every": every, **days, "at": "09:00"},
    )


SCHEMAS: Mapping[str, Mapping[str, Any]] = {
    "Definition": object_schema(
        "What starts an automation, and the steps that a run of it takes.",
        required=["steps"],
        properties={
            "triggers": {
                "type": "array",
                "maxItems": MOST_TRIGGERS,
                "items": {"anyOf": [{"$ref": f"#/components/schemas/{name}"} for name in _TRIGGERS]},
                "description": "What starts a run: events, or times. Without any, only `start` does.",
            },
            "steps": _STEPS | {"description": f"At most {MOST_STEPS}, those inside others included."},
        },
    ),
    "Trigger": object_schema(
        "An event of a contact that starts or ends runs.",
        required=["event"],
        properties={
            **event_kinds.FIELDS,
            "also_replies": {
                "type": "boolean",
                "description": f"For {REPLY_EVENT}: replies that a run waited for start runs too.",
            },
            "if": _CONDITION
            | {"description": "Only if this holds, for `contact`, `conversation` and `trigger.event`."},
        },
        example={"event": "tag.added", "tag": "vip"},
    ),
    "BeforeTrigger": object_schema(
        "A time before each booking of a contact begins, at which a run starts.",
        required=["before", "seconds"],
        properties={
            "before": {"type": "string", "enum": ["booking.starts_at"], "description": "What the time comes before."},
            "seconds": whole_number(1, LONGEST_BEFORE_SECONDS, "How long before; 365 days at most."),
            "if": _CONDITION
            | {"description": "Only if this holds then, for `contact` and `trigger.event`, which has the booking."},
        },
        example={"before": "booking.starts_at", "seconds": 86400},
    ),
    "DateTrigger": object_schema(
        "A day, in a custom field of each contact, on which a run starts.",
        required=["date", "at"],
        properties={
            "date": {
                "type": "string",
                "pattern": r"^contact\.custom_fields\.[^\n]{1,100}$",
                "x-form": "the path of a custom field, such as contact.custom_fields.birthday",
                "description": "The custom field: a date such as 1990-11-21, or an RFC 3339 time.",
            },
            "every": {"type": "string", "enum": ["year"], "description": "Every year; otherwise once."},
            "at": _CLOCK | {"description": "When, in the time zone of the contact, or of the workspace."},
            "offset_days": whole_number(
                -MOST_OFFSET_DAYS, MOST_OFFSET_DAYS, "How many days later; if negative, earlier."
            ),
            "if": _IF_THEN,
        },
        example={"date": "contact.custom_fields.birthday", "every": "year", "at": "09:00", "offset_days": -3},
    ),
    "DailyTrigger": _schedule("day"),
    "WeeklyTrigger": _schedule(
        "week", "monday", on={"type": "string", "enum": [*WEEKDAYS], "description": "The day of the week."}
    ),
    "MonthlyTrigger": _schedule(
        "month", 1, on=whole_number(1, 31, "The day of the month; the last one in months that do not have it.")
    ),
    "EntryTrigger": object_schema(
        "A contact enters a segment.",
        required=["segment_id", "every"],
        properties={
            "segment_id": _SEGMENT_ID,
            "every": {"type": "string", "enum": [ENTRY], "description": "Each time that it does."},
            "if": _IF_THEN,
        },
        example={"segment_id": "seg_01kaj5bd40e6rr3f5y2kq0w9xz", "every": ENTRY},
    ),
    "Goal": object_schema(
        "An event of a contact that its runs are meant to lead to.",
        required=["event", "within_seconds"],
        properties={
            **event_kinds.FIELDS,
            "if": _CONDITION | {"description": "Only if this holds, for what exits can name: also `run` and `steps`."},
            "within_seconds": whole_number(
                1, LONGEST_SECONDS, "How long after the run was created the event may happen; 90 days at most."
            ),
        },
        example={"event": "sale.recorded", "within_seconds": 604800},
    ),
    **conditions.SCHEMAS,
    "Step": any_kind("Step", STEP_KINDS, "A step; its members depend on its kind."),
    **{name_of(name): _of_kind(name, kind) for name, kind in STEP_KINDS.items()},
}
