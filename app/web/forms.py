"""Forms: reads and validates their fields, and finds the error message of each."""

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

# What a form's view returns: a page, a page with its status, or a redirect.
Answer = str | tuple[str, int] | Response


class FormRequest(Request):
    """A request that raises BadRequest, not an internal error, if its form arrives incomplete."""

    def _load_form_data(self) -> None:
        try:
            super()._load_form_data()
        except HTTPException:
            raise
        except Exception as error:  # gunicorn's errors, for malformed chunks or a lost connection
            raise BadRequest("The form could not be read completely.") from error


def typed(*names: str) -> dict[str, str]:
    """Returns the values of the named fields, with LF as line ends; "" for missing fields."""
    return {name: _text(request.form.get(name, "")) for name in names}


def typed_all(name: str) -> list[str]:
    """Returns all values of fields with that name."""
    return [_text(value) for value in request.form.getlist(name)]


def whole(text: str) -> int | str:
    """Returns a number of at most 9 digits; else the stripped text, which validation refuses."""
    stripped = text.strip()
    return int(stripped) if stripped.isascii() and stripped.isdigit() and len(stripped) <= 9 else stripped


def checked(schema: Schema, body: Mapping[str, Any]) -> dict[str, Any]:
    """Validates the body by the schema, as the API does, and returns it. Raises Invalid."""
    refuse_bad_text(dict(body))
    found: dict[str, Any] = load(schema, dict(body))
    return found


def errors_of(error: Invalid | Conflict) -> dict[str, str]:
    """Returns the first error of each field, nested values included; "" has those of no field."""
    if isinstance(error, Conflict):
        return {error.facts.get("conflicting_field", ""): error.detail}
    found: dict[str, str] = {}
    for fault in error.faults:
        found.setdefault(fault.pointer.removeprefix("/").partition("/")[0], fault.detail)
    return found


def sentence_of(error: Invalid | Conflict) -> str:
    """Returns the first error message, for a page that shows no fields."""
    return next(iter(errors_of(error).values()))


def is_script() -> bool:
    """Whether a script sent the form: it accepts JSON before HTML."""
    return request.accept_mimetypes.best == "application/json"


def status_of(error: Invalid | Conflict) -> int:
    """Returns the HTTP status for the page that shows the form again."""
    return PROBLEMS[error.slug].status


def _text(value: str) -> str:
    # Browsers send line ends in a text area as CR LF.
    return value.replace("\r\n", "\n")
