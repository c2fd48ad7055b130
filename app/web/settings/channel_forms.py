"""Forms that connect and change channels; each kind of channel describes its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from app.channels.base import Field, Form
from app.channels.kinds import KINDS
from app.errors import Conflict, Invalid
from app.web.forms import typed


def form_of(kind: str) -> Form:
    """Returns the form of a kind; for kinds without one, a form without fields."""
    known = KINDS.get(kind)
    return known.form if known and known.form else Form(kind.replace("_", " ").capitalize())


def offered() -> dict[str, Form]:
    """Returns the forms of the kinds that can be connected on a page."""
    return {name: kind.form for name, kind in KINDS.items() if kind.form}


def given(*fields: Field) -> dict[str, str]:
    """Reads these fields of the submitted form."""
    return typed(*(field.name for field in fields))


def values(fields: Sequence[Field], typed_in: Mapping[str, str]) -> dict[str, Any]:
    """Returns the values of the fields as in the `settings` or `credentials` of the API."""
    return {field.name: _value(field, typed_in.get(field.name, "").strip()) for field in fields}


def _value(field: Field, text: str) -> str | int | list[str]:
    if field.is_list:
        return [line.strip() for line in text.splitlines() if line.strip()]
    if field.otherwise is None:
        return text
    # Text that is not a number stays text, so that validation refuses it.
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else text or field.otherwise


def errors_of(form: Form, error: Invalid | Conflict) -> dict[str, str]:
    """Returns the error messages by field. Errors that concern no field are under ""."""
    if isinstance(error, Conflict):
        return {"": error.detail}
    fields = {field.name: field for field in (*form.settings, *form.credentials)}
    found: dict[str, str] = {}
    for fault in error.faults:
        names = fault.pointer.split("/")[1:]
        name = names[1] if len(names) > 1 else (names or [""])[0]
        found.setdefault(name, fields[name].wrong if name in fields else fault.detail)
    return found
