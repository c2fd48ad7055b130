"""`set_field`: sets a field of the contact."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from app.domain.automations.steps.base import Done, Kind, Moment, Outcome, StepFailed
from app.domain.contacts import contacts
from app.errors import Fault
from app.lib import normalization

LONGEST_NAME = 100 + len("custom_fields.")
LONGEST_TEXT = 255
# Before the name of a custom field that might be mistaken for another.
CUSTOM = "custom_fields."

_FORMATS: Mapping[str, Callable[[str], str]] = {
    "email": normalization.email,
    "phone": normalization.phone,
    "locale": normalization.locale,
    "timezone": normalization.timezone,
}
_TEXTS = ("external_id", "first_name", "last_name")
_KEPT = ("id", "tags", "custom_fields", "identities", "suggested_merges", "created_at", "updated_at")


def begin(moment: Moment) -> Outcome:
    """Sets the field. Raises StepFailed if it cannot hold the value, and Conflict if another contact has it."""
    field, value = moment.step.fields["field"], moment.step.fields["value"]
    if isinstance(value, str):
        value = moment.render(value)
    try:
        payload = _payload(field, value)
    except ValueError as error:
        raise StepFailed("error", f"{field}: {error}") from error
    contacts.update(moment.change(payload, moment.contact.id))
    return Done(f"The field '{field}' was set.", {"field": field, "value": value})


def check(step: Mapping[str, Any], pointer: str) -> Iterator[Fault]:
    """Yields what is wrong with the field, and with a value that is not a template."""
    field, value = step.get("field"), step.get("value")
    if not isinstance(field, str):
        return
    if field in _KEPT:
        yield Fault(f"{pointer}/field", f"'{field}' cannot be set. Use add_tag and remove_tag for tags.")
    elif "value" in step and not (isinstance(value, str) and "{" in value):
        try:
            _payload(field, value)
        except ValueError as error:
            yield Fault(f"{pointer}/value", str(error))


def _payload(field: str, value: Any) -> dict[str, Any]:
    """The body of the update, checked as the API checks it. Raises ValueError."""
    if field == "opted_out":
        return {field: _boolean(value)}
    if field not in (*_FORMATS, *_TEXTS):
        return {"custom_fields": {field.removeprefix(CUSTOM): normalization.custom_value(value)}}
    return {field: None if value is None else _text(field, value)}


def _text(field: str, value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("This field holds text, or null.")
    if field in _FORMATS:
        return _FORMATS[field](value)
    if len(value) > LONGEST_TEXT or (field == "external_id" and not value):
        raise ValueError(f"This field holds text of at most {LONGEST_TEXT} characters.")
    return value


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool) and value not in ("true", "false"):
        raise ValueError("This field is true or false.")
    return value in (True, "true")


KIND = Kind(
    description="Sets a field of the contact: `email`, `phone`, `external_id`, `first_name`, `last_name`, `locale`, "
    "`timezone` or `opted_out`; any other name is that of a custom field. The run fails if the field cannot hold the "
    "value, or if another contact has the identifier.",
    fields={
        "field": {
            "type": "string",
            "minLength": 1,
            "maxLength": LONGEST_NAME,
            "description": "The field; `custom_fields.` may stand before the name of a custom one.",
        },
        "value": {
            "type": ["string", "number", "boolean", "null"],
            "maxLength": 4096,
            "description": "A template, a number, true, false, or null, which removes the value.",
        },
    },
    required=("field", "value"),
    templates=("value",),
    check=check,
    begin=begin,
    example={"kind": "set_field", "field": "plan", "value": "{{ trigger.variables.plan }}"},
)
