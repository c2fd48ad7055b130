"""`set_field`: sets a field of the contact."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from app.domain.automations.steps.base import Done, Entry, Outcome, StepContext, StepFailed, StepKind, Words
from app.domain.contacts import contacts
from app.domain.triggers import conditions
from app.domain.triggers.plain_words import Given, Names, quoted, shown
from app.errors import Fault
from app.lib import normalization
from app.lib.nearest_names import meant, nearest

# Prefixes of names. CUSTOM marks a custom field whose name could be mistaken for another field. All names in templates
# begin with CONTACT, so steps may have it, too.
CUSTOM, CONTACT = "custom_fields.", "contact."
LONGEST_NAME = 100 + len(CONTACT + CUSTOM)
LONGEST_CUSTOM_NAME = 100
LONGEST_TEXT = 255
# Above this similarity to the name of one of the contact's own fields, a custom field needs `custom_fields.`.
_TOO_LIKE = 0.8
_OF_OTHERS = tuple(f"{root}." for root in conditions.ROOTS)

_FORMATS: Mapping[str, Callable[[str], str]] = {
    "email": normalization.email,
    "phone": normalization.phone,
    "locale": normalization.locale,
    "timezone": normalization.timezone,
}
_OWN = (*_FORMATS, "external_id", "first_name", "last_name", "opted_out")
_KEPT = ("id", "tags", "custom_fields", "identities", "suggested_merges", "created_at", "updated_at")


def begin(context: StepContext) -> Outcome:
    """Sets the field. Raises StepFailed for an invalid value, and Conflict if another contact has it."""
    field, value = field_of(context.step.fields["field"]), context.step.fields["value"]
    if isinstance(value, str):
        value = context.render(value)
    try:
        payload = _payload(field, value)
    except ValueError as error:
        raise StepFailed("error", f"{field}: {error}") from error
    contacts.update(context.change(payload, context.contact.id))
    return Done(f"The field '{field}' was set.", {"field": field, "value": value})


def check(step: Mapping[str, Any], pointer: str) -> Iterator[Fault]:
    """Yields the faults of the field, and of a value that is not a template."""
    given, value = step.get("field"), step.get("value")
    if not isinstance(given, str):
        return
    field = field_of(given)
    if field in _KEPT:
        yield Fault(f"{pointer}/field", f"'{field}' cannot be set. Use add_tag and remove_tag for tags.")
    elif wrong := _fault_of_name(field):
        yield Fault(f"{pointer}/field", wrong)
    elif "value" in step and not (isinstance(value, str) and "{" in value):
        try:
            _payload(field, value)
        except ValueError as error:
            yield Fault(f"{pointer}/value", str(error))


def field_of(name: str) -> str:
    """Returns the field that `name` means: without `contact.`, which templates put before it."""
    plain = name.removeprefix(CONTACT)
    return plain if plain.startswith(CUSTOM) or plain in (*_OWN, *_KEPT) else name


def _fault_of_name(field: str) -> str | None:
    """Returns a sentence about an invalid name; None for a valid one.

    A custom field whose name resembles one of the contact's own fields must begin with `custom_fields.`.
    """
    if field in _OWN:
        return None
    custom = field.removeprefix(CUSTOM)
    if not re.fullmatch(normalization.TAG, custom) or custom != custom.strip() or len(custom) > LONGEST_CUSTOM_NAME:
        form = f"1 to {LONGEST_CUSTOM_NAME} characters, without control characters and without spaces at its ends"
        return f"The name of a field has {form}.{meant(custom, _OWN)}"
    if custom != field:
        return None
    likely = nearest(field.removeprefix(CONTACT), _OWN, _TOO_LIKE)
    if likely is None and not field.startswith(_OF_OTHERS):
        return None
    which = f" Did you mean '{likely}'?" if likely else ""
    return f"There is no '{field}'.{which} A custom field is '{CUSTOM}{field.removeprefix(CONTACT)}'."


def _payload(field: str, value: Any) -> dict[str, Any]:
    """Returns the body of the update, validated like the API's. Raises ValueError."""
    if field == "opted_out":
        return {field: _boolean(value)}
    if field not in _OWN:
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


def _words(step: Given, names: Names) -> Words:
    name = field_of(str(step["field"])).removeprefix(CUSTOM).replace("_", " ")
    if step["value"] is None:
        return Words(f"Remove {quoted(name)}", "from the contact")
    return Words(f"Set {quoted(name)}", f"to {shown(step['value'])}")


KIND = StepKind(
    entry=Entry("Set a field", "user-pen"),
    words=_words,
    description="Sets a field of the contact: `email`, `phone`, `external_id`, `first_name`, `last_name`, `locale`, "
    "`timezone` or `opted_out`; any other name is that of a custom field. The run fails if the field cannot hold the "
    "value, or if another contact has the identifier.",
    fields={
        "field": {
            "type": "string",
            "minLength": 1,
            "maxLength": LONGEST_NAME,
            "description": "The field; `custom_fields.` may stand before the name of a custom one, and has to if that"
            " is like the name of another field. `contact.` may stand before both.",
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
    example={"field": "plan", "value": "{{ trigger.variables.plan }}"},
)
