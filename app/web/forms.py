"""Forms: what was typed, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flask import Request, request
from werkzeug.exceptions import BadRequest, HTTPException
from werkzeug.wrappers import Response

from app.domain.bodies.pointers import load, refuse_bad_text
from app.errors import Conflict, Invalid
from app.lib.schemas import Schema
from app.problems import PROBLEMS

# What the view of a form returns: a page, perhaps with its status, or a redirect.
Answer = str | tuple[str, int] | Response


class FormRequest(Request):
    """A request whose form may break on its way: that is no fault of ours. Raises BadRequest."""

    def _load_form_data(self) -> None:
        try:
            super()._load_form_data()
        except HTTPException:
            raise
        except Exception as error:  # gunicorn's own, for malformed chunks or a lost connection
            raise BadRequest("The form could not be read completely.") from error


def typed(*names: str) -> dict[str, str]:
    """The form's values of those fields, with line ends as they were typed; "" for a field that was not sent."""
    return {name: _text(request.form.get(name, "")) for name in names}


def typed_all(name: str) -> list[str]:
    """The form's values of all fields of that name."""
    return [_text(value) for value in request.form.getlist(name)]


def checked(schema: Schema, body: Mapping[str, Any]) -> dict[str, Any]:
    """The body as the API would take it. Raises Invalid."""
    refuse_bad_text(dict(body))
    found: dict[str, Any] = load(schema, dict(body))
    return found


def errors_of(error: Invalid | Conflict) -> dict[str, str]:
    """The sentence for each field, by its name; what lies deeper in a field is an error of the field, too.

    What is about no field has the name "".
    """
    if isinstance(error, Conflict):
        return {error.facts.get("conflicting_field", ""): error.detail}
    found: dict[str, str] = {}
    for fault in error.faults:
        found.setdefault(fault.pointer.removeprefix("/").partition("/")[0], fault.detail)
    return found


def status_of(error: Invalid | Conflict) -> int:
    """The status of a page that shows the form again."""
    return PROBLEMS[error.slug].status


def _text(value: str) -> str:
    # Browsers send every line end of a text area as CR LF.
    return value.replace("\r\n", "\n")
