"""New steps: the initial content of each kind, and unused names."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from copy import deepcopy
from typing import Any

from app.domain.automations.editing import references, step_trees
from app.domain.automations.steps import KINDS

LONGEST_ID = 64
DAY_SECONDS = 24 * 60 * 60
# Base names of steps, if they differ from the kind.
_NAMES = {
    "send_message": "message",
    "ask": "question",
    "http_request": "request",
    "wait_for_reply": "reply",
    "wait_for_event": "event",
    "assign_conversation": "assign",
    "close_conversation": "close",
    "label_conversation": "label",
    "snooze_conversation": "snooze",
    "start_automation": "start",
    "add_note": "note",
}
# Initial members of new steps.
_BEGINNINGS: Mapping[str, Mapping[str, Any]] = {
    "wait": {"seconds": DAY_SECONDS},
    "snooze_conversation": {"seconds": DAY_SECONDS},
    "ask": {"format": "text", "timeout_seconds": DAY_SECONDS},
    "wait_for_reply": {"timeout_seconds": DAY_SECONDS},
    "wait_for_event": {"event": "message.received", "timeout_seconds": DAY_SECONDS},
    "assign_conversation": {"assignee_id": None},
    "http_request": {"method": "GET"},
    "repeat": {"times": 2},
    "split": {"arms": [{"name": "a", "percent": 50, "steps": []}, {"name": "b", "percent": 50, "steps": []}]},
}


def begun(kind: str, definition: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a new step, without members that only its author can fill in.

    Raises KeyError for an unknown kind.
    """
    lists: dict[str, list[Any]] = {name: [] for name in KINDS[kind].lists}
    identifier = fresh(_NAMES.get(kind, kind), taken(definition))
    return {"id": identifier, "kind": kind, **deepcopy(dict(_BEGINNINGS.get(kind, {}))), **lists}


def taken(definition: Mapping[str, Any]) -> set[str]:
    """Returns the identifiers and `save_as` names of the definition's steps."""
    return {name for placed in step_trees.walk(definition) for name in references.names_of(placed.step)}


def fresh(name: str, taken: Collection[str]) -> str:
    """Returns the name, with the lowest free number if it is taken."""
    if name not in taken:
        return name
    stem, _, number = name.rpartition("_")
    if not (stem and number.isdigit()):
        stem = name
    numbers = range(2, len(taken) + 3)
    return next(each for each in (f"{stem[: LONGEST_ID - 5]}_{n}" for n in numbers) if each not in taken)
