"""New steps: the initial content of each kind, and unused names."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from copy import deepcopy
from typing import Any

from app.domain.automations.editing import references, step_trees
from app.domain.automations.steps import KINDS

LONGEST_ID = 64


def begun(kind: str, definition: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a new step, without members that only its author can fill in.

    Raises KeyError for an unknown kind.
    """
    entry = KINDS[kind].entry
    lists: dict[str, list[Any]] = {name: [] for name in KINDS[kind].lists}
    return {"id": fresh(entry.id or kind, taken(definition)), "kind": kind, **deepcopy(dict(entry.members)), **lists}


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
