"""The form of a contact, and the API bodies that it stands for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from flask import request

from app.domain.contacts.contacts import IDENTIFIERS, MOST_FIELDS
from app.errors import Conflict, Fault, Invalid, pointer_to
from app.lib import json
from app.models.contacts import Contact
from app.web.forms import typed, typed_all

NAMES = ("first_name", "last_name", "locale", "timezone")
PLAIN = (*IDENTIFIERS, *NAMES)
KINDS = (("text", "text"), ("number", "number"), ("boolean", "true or false"))
# How many empty rows a form has for new custom fields.
BLANK_ROWS = 3
_STALE = "Somebody has changed this contact since you opened the form. Check what is below, then save it again."
_INTEGER = re.compile(r"-?[0-9]{1,16}", re.ASCII)
_FLOAT = re.compile(r"-?[0-9]{1,16}\.[0-9]{1,30}(e[+-]?[0-9]{1,2})?", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Row:
    """A custom field as entered. `kind`: one of KINDS. `is_new`: the contact does not have it yet."""

    name: str = ""
    kind: str = "text"
    value: str = ""
    is_new: bool = True


def blank() -> dict[str, Any]:
    """Returns the empty form of a new contact."""
    empty: dict[str, Any] = dict.fromkeys((*PLAIN, "tags", "seen"), "")
    return empty | {"opted_out": False, "rows": [Row()] * BLANK_ROWS}


def of_contact(contact: Contact, most_fields: int = MOST_FIELDS, blank_rows: int = BLANK_ROWS) -> dict[str, Any]:
    """Returns a contact's form: up to `most_fields` custom fields, then `blank_rows` empty rows."""
    custom = list(contact.custom_fields.items())[:most_fields]
    rows = [Row(name, *_as_text(value), is_new=False) for name, value in custom]
    plain = {name: getattr(contact, name) or "" for name in PLAIN}
    return plain | {
        "opted_out": contact.opted_out,
        "rows": rows + [Row()] * blank_rows,
        "seen": contact.updated_at.isoformat(),
    }


def sent(contact: Contact | None = None) -> dict[str, Any]:
    """Reads the submitted form. Marks custom fields that the contact does not have yet as new."""
    known = contact.custom_fields if contact else {}
    columns = (typed_all(f"custom_{column}") for column in ("name", "kind", "value"))
    rows = [
        Row(name.strip(), kind, value, is_new=name.strip() not in known)
        for name, kind, value in list(zip(*columns, strict=False))[: MOST_FIELDS + BLANK_ROWS]
    ]
    given: dict[str, Any] = typed(*PLAIN, "tags", "seen")
    return given | {"opted_out": request.form.get("opted_out") == "true", "rows": rows}


def again(given: Mapping[str, Any], contact: Contact, error: Invalid | Conflict) -> dict[str, Any]:
    """Returns a refused form to correct. After a Conflict, `seen` is the contact's current state."""
    return {**given, "seen": contact.updated_at.isoformat()} if isinstance(error, Conflict) else dict(given)


def refuse_stale(given: Mapping[str, Any], contact: Contact) -> None:
    """Raises Conflict if the contact was changed since the form was shown."""
    if given["seen"] != contact.updated_at.isoformat():
        raise Conflict(_STALE)


def creation(given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the body that creates the contact.

    Raises Invalid for a custom field without a name, or with a value that does not match its chosen type.
    """
    plain = {name: given[name].strip() for name in PLAIN if given[name].strip()}
    tags = [tag for tag in given["tags"].split("\n") if tag.strip()]
    fields = _custom_fields({}, given["rows"])
    return plain | {"tags": tags, "custom_fields": fields, "opted_out": given["opted_out"]}


def change(given: Mapping[str, Any], contact: Contact) -> dict[str, Any]:
    """Returns the body that changes the contact: only differences. Raises Invalid like `creation`."""
    # Browsers drop line breaks from an input. That alone is no change.
    shown = {name: re.sub(r"[\r\n]", "", getattr(contact, name) or "") for name in PLAIN}
    body: dict[str, Any] = {name: given[name].strip() or None for name in PLAIN if given[name] != shown[name]}
    if given["opted_out"] != contact.opted_out:
        body["opted_out"] = given["opted_out"]
    if fields := _custom_fields(contact.custom_fields, given["rows"]):
        body["custom_fields"] = fields
    return body


def _custom_fields(known: Mapping[str, Any], rows: list[Row]) -> dict[str, Any]:
    """Returns the custom fields that differ; None for fields that are now empty. Raises Invalid."""
    found: dict[str, Any] = {}
    for row in rows:
        if not row.name:
            if row.value.strip():
                raise Invalid(Fault("/custom_fields", f"The value '{row.value[:50]}' needs the name of its field."))
            continue
        if row.name in known and (row.kind, row.value) == _as_text(known[row.name]):
            continue
        if row.value.strip():
            found[row.name] = _value(row)
        elif row.name in known:
            found[row.name] = None
    return found


def _value(row: Row) -> Any:
    text, place = row.value.strip(), pointer_to("custom_fields", row.name)
    if row.kind == "number":
        if _INTEGER.fullmatch(text):
            return int(text)
        if _FLOAT.fullmatch(text):
            return float(text)
        raise Invalid(Fault(place, f"{row.name}: this is not a number. Write it as 12 or 12.5."))
    if row.kind == "boolean":
        if text.lower() not in ("true", "false"):
            raise Invalid(Fault(place, f"{row.name}: write true or false."))
        return text.lower() == "true"
    return row.value


def _as_text(value: Any) -> tuple[str, str]:
    if isinstance(value, str):
        return "text", value.replace("\r\n", "\n")
    return ("boolean" if isinstance(value, bool) else "number"), json.dumps(value).decode()
