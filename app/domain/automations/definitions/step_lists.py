"""Checks lists of steps and their identifiers, in definitions and in drafts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from app.domain.automations.definitions.json_schemas import DEEPEST, ID
from app.errors import Fault

Check = Callable[[dict[str, Any], str], Iterator[Fault]]


def faults(steps: Any, at: str, depth: int, check: Check) -> Iterator[Fault]:
    """Yields the faults of the list of steps at the pointer `at`.

    `check` yields the faults of one step and of the steps nested in it.
    """
    if not isinstance(steps, list):
        yield Fault(at, "Give a list of steps.")
    elif depth > DEEPEST:
        yield Fault(at, f"Steps are nested at most {DEEPEST} levels deep.")
    else:
        for index, step in enumerate(steps):
            if isinstance(step, dict):
                yield from check(step, f"{at}/{index}")
            else:
                yield Fault(f"{at}/{index}", "Give a step: an object with 'id', 'kind' and the fields of its kind.")


def id_fault(step: Mapping[str, Any], at: str, pointers: dict[str, str]) -> Fault | None:
    """Returns the fault of the step's identifier. If it has none, adds it to `pointers`."""
    identifier = step.get("id")
    if not isinstance(identifier, str) or not re.fullmatch(ID, identifier):
        return Fault(f"{at}/id", "Give the step an identifier of 1 to 64 letters, digits, '_' and '-'.")
    if identifier in pointers:
        return Fault(f"{at}/id", f"Change this: the step at {pointers[identifier]} has the same identifier.")
    pointers[identifier] = at
    return None
