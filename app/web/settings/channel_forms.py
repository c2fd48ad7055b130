"""The forms of channels: the fields of each kind, and who gets the conversations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from app.channels.base import Field, Form
from app.channels.kinds import CHANNEL_KINDS
from app.domain.assignment import assignments
from app.domain.people import members
from app.errors import Conflict, Fault, Invalid
from app.models.channels import Channel
from app.web.access import workspace_id
from app.web.forms import typed, typed_all, whole

# The label and the explanation of each choice in the form.
ASSIGNMENTS: Mapping[str, tuple[str, str]] = {
    "none": ("Nobody, until somebody takes it", "It stays unassigned. Members and automations assign it."),
    "all": ("One of all members", "Of those who are available, the one with the fewest open conversations."),
    "some": ("One of some members", "The same, but only of those that are ticked here."),
}
_NOBODY_TICKED = "Tick at least one member."
_REASONS = {
    "gone": "None of the chosen members is in the workspace any more, so conversations stay unassigned. Choose others.",
    "away": "All of them are away. Conversations wait, unassigned, until somebody is available.",
    "full": "All who are available have as many open conversations as their limit allows. Conversations wait, "
    "unassigned, until one is closed, a limit is raised or somebody else is available.",
}


def form_of(kind: str) -> Form:
    """Returns the form of the kind; for a kind without a form, one without fields."""
    known = CHANNEL_KINDS.get(kind)
    return known.form if known and known.form else Form(kind.replace("_", " ").capitalize())


def offered() -> dict[str, Form]:
    """Returns the forms of the kinds that can be connected on a page."""
    return {name: kind.form for name, kind in CHANNEL_KINDS.items() if kind.form}


def given(*fields: Field) -> dict[str, Any]:
    """Reads the submitted form. `fields`: the fields of the channel's kind."""
    names = ("name", "reopen", "assignment", *(field.name for field in fields))
    return {**typed(*names), "member_ids": typed_all("member_ids")}


def given_of(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the fields for a channel with the name and the settings, as `given` does."""
    stored = {each: "\n".join(value) if isinstance(value, list) else str(value) for each, value in settings.items()}
    chosen = settings.get("member_ids")
    assignment = {"assignment": "all" if chosen is None else "some", "member_ids": chosen or []}
    if settings.get("assignment") != "balanced":
        assignment = {"assignment": "none", "member_ids": []}
    return {**stored, "name": name, "reopen": "true" if settings.get("reopen", True) else "", **assignment}


def settings_of(form: Form, given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the settings as in the API. Raises Invalid if members are needed but none is ticked."""
    settings = {**values(form.settings, given), "reopen": given["reopen"] == "true"}
    choice = given["assignment"]
    if choice == "some" and not given["member_ids"]:
        raise Invalid(Fault("/settings/member_ids", _NOBODY_TICKED))
    if choice == "none":
        settings["assignment"] = "none"
    elif choice in ASSIGNMENTS:
        settings |= {"assignment": "balanced", "member_ids": given["member_ids"] if choice == "some" else None}
    return settings


def values(fields: Sequence[Field], given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the values of the fields as in the `settings` or `credentials` of the API."""
    return {field.name: _value(field, given.get(field.name, "").strip()) for field in fields}


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


def people() -> list[tuple[str, str]]:
    """Returns the (identifier, address) of the members that can be ticked."""
    return [(person.member_id, person.email) for person in members.of_workspace(workspace_id())]


def next_assignee_of(channel: Channel) -> dict[str, Any]:
    """Describes the assignment for the template: who is `next`, or the `reason` why nobody is.

    `chosen`: the addresses of the members to choose from; None for all. `load`: the open conversations of `next`.
    """
    found = assignments.next_assignee(channel)
    if found is None:
        return {"is_balanced": False}
    names = dict(people())
    chosen = channel.settings.get("member_ids")
    return {
        "is_balanced": True,
        "chosen": None if chosen is None else [names[each] for each in chosen if each in names],
        "next": names.get(found.member_id) if found.member_id else None,
        "load": found.load,
        "reason": _REASONS[found.reason] if found.reason else None,
        "queued": found.queued,
        "most_queued": assignments.MOST_QUEUED,
    }


def _value(field: Field, text: str) -> str | int | list[str]:
    if field.is_list:
        return [line.strip() for line in text.splitlines() if line.strip()]
    if field.otherwise is None:
        return text
    return whole(text) if text else field.otherwise
