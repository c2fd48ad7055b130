"""New steps: what each kind begins with, and names that no other step has."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from copy import deepcopy
from typing import Any

from app.domain.automations.editing import references, step_trees
from app.domain.automations.steps import KINDS

LONGEST_ID = 64
DAY_SECONDS = 24 * 60 * 60
# How steps of a kind are called, where that is not the kind.
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
# What a new step has, besides what its author has to write.
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
    """A step of the kind, which may lack what only its author knows. Raises KeyError for no kind."""
    lists: dict[str, list[Any]] = {name: [] for name in KINDS[kind].lists}
    identifier = fresh(_NAMES.get(kind, kind), taken(definition))
    return {"id": identifier, "kind": kind, **deepcopy(dict(_BEGINNINGS.get(kind, {}))), **lists}


def taken(definition: Mapping[str, Any]) -> set[str]:
    """The names that steps of the definition have."""
    return {name for placed in step_trees.walk(definition) for name in references.names_of(placed.step)}


def fresh(name: str, taken: Collection[str]) -> str:
    """The name, or with the lowest number that makes it one that is not taken."""
    if name not in taken:
        return name
    stem, _, number = name.rpartition("_")
    if not (stem and number.isdigit()):
        stem = name
    numbers = range(2, len(taken) + 3)
    return next(each for each in (f"{stem[: LONGEST_ID - 5]}_{n}" for n in numbers) if each not in taken)
