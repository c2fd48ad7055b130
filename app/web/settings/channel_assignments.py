"""Assignment settings of a channel: who gets its conversations, and who is next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.domain.assignment import assignments
from app.domain.people import members
from app.errors import Fault, Invalid
from app.models.channels import Channel
from app.web.access import workspace_id
from app.web.forms import typed, typed_all

# The choices in the form: (label, explanation).
CHOICES: Mapping[str, tuple[str, str]] = {
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


def given() -> dict[str, Any]:
    """Reads the choice and the ticked members from the form."""
    return {**typed("assignment"), "member_ids": typed_all("member_ids")}


def given_of(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the choice and the ticked members of a channel's settings, like `given`."""
    if settings.get("assignment") != "balanced":
        return {"assignment": "none", "member_ids": []}
    chosen = settings.get("member_ids")
    return {"assignment": "all" if chosen is None else "some", "member_ids": chosen or []}


def settings_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the settings as in the API; {} if the form has no choice. Raises Invalid."""
    choice = given["assignment"]
    if choice not in CHOICES:
        return {}
    if choice == "none":
        return {"assignment": "none"}
    if choice == "some" and not given["member_ids"]:
        raise Invalid(Fault("/settings/member_ids", _NOBODY_TICKED))
    return {"assignment": "balanced", "member_ids": given["member_ids"] if choice == "some" else None}


def people() -> list[tuple[str, str]]:
    """Returns the (identifier, address) of the members that can be ticked."""
    return [(person.member_id, person.email) for person in members.of_workspace(workspace_id())]


def outlook_of(channel: Channel) -> dict[str, Any]:
    """Describes the assignment for the template: who is `next`, or the `reason` why nobody is.

    `chosen`: the addresses of the members to choose from; None for all. `load`: the open conversations of `next`.
    """
    found = assignments.outlook_of(channel)
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
