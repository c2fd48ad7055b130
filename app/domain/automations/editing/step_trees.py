"""Step trees: the places of steps in a definition, even one that cannot run yet."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from app.domain.automations.definitions import validation
from app.domain.automations.definitions.json_schemas import ID, MOST_STEPS, MOST_TRIGGERS
from app.domain.automations.steps import STEP_KINDS
from app.errors import Conflict, Fault
from app.lib import json

MOST_BYTES = 512 * 1024
MOST_INNER = 50
GONE = "This step is not there any more. Somebody else has removed it, or undone it."
_ARM = "arm:"


@dataclass(frozen=True, slots=True)
class At:
    """A place for a step: in a list of the step `owner`, after the step `after`.

    `owner`: None for the definition. `name`: the member that holds the list, or `arm:` and the name of an arm. `after`:
    None for the beginning of the list. A place stays valid while others add and remove steps elsewhere.
    """

    owner: str | None = None
    name: str = "steps"
    after: str | None = None


@dataclass(frozen=True, slots=True)
class Placed:
    """A step, its place, and its JSON pointer in the definition."""

    step: Mapping[str, Any]
    at: At
    pointer: str


def walk(definition: Mapping[str, Any]) -> Iterator[Placed]:
    """Yields every step, each before its nested steps."""
    # The unfinished lists, the deepest last. Nested generators would take ten times as long.
    begun = [_walk(definition.get("steps", []), None, "steps", "/steps")]
    while begun:
        placed = next(begun[-1], None)
        if placed is None:
            begun.pop()
            continue
        yield placed
        inside = [
            _walk(listed, placed.step["id"], name, placed.pointer + place)
            for name, place, listed in lists_of(placed.step)
        ]
        begun += reversed(inside)


def _walk(steps: Any, owner: str | None, name: str, pointer: str) -> Iterator[Placed]:
    after = None
    for index, step in enumerate(steps):
        yield Placed(step, At(owner, name, after), f"{pointer}/{index}")
        after = step["id"]


def lists_of(step: Mapping[str, Any]) -> Iterator[tuple[str, str, list[Any]]]:
    """Yields (name as in At, relative pointer, steps) for each list of steps inside a step."""
    kind = STEP_KINDS[step["kind"]]
    for name, place, listed in kind.inside(step):
        yield name if name in kind.lists else f"{_ARM}{name}", place, listed


def find(definition: Mapping[str, Any], step_id: str) -> Placed:
    """Returns the step with that identifier. Raises Conflict if there is none."""
    for placed in walk(definition):
        if placed.step["id"] == step_id:
            return placed
    raise Conflict(GONE)


def list_at(definition: Any, at: At) -> list[Any]:
    """Returns the place's list; creates a missing list. Raises Conflict if the owner is gone."""
    holder = definition
    if at.owner is not None:
        holder = find(definition, at.owner).step
        kind = STEP_KINDS[holder["kind"]]
        if at.name not in kind.lists:
            arms = holder.get(kind.arms, []) if kind.arms else []
            holder = next((arm for arm in arms if f"{_ARM}{arm['name']}" == at.name), None)
            if holder is None:
                raise Conflict(GONE)
    listed: list[Any] = holder.setdefault("steps" if at.name.startswith(_ARM) else at.name, [])
    return listed


def places(definition: Mapping[str, Any]) -> dict[str, At]:
    """Returns every place for a new step, by the pointer that the step would get: `/steps/2/then/0`."""
    lists: list[tuple[str | None, str, str, Any]] = [(None, "steps", "/steps", definition.get("steps", []))]
    for placed in walk(definition):
        lists += [(placed.step["id"], name, placed.pointer + at, listed) for name, at, listed in lists_of(placed.step)]
    return {
        f"{pointer}/{index}": At(owner, name, before)
        for owner, name, pointer, listed in lists
        for index, before in enumerate((None, *(step["id"] for step in listed)))
    }


def own(step: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the step without its nested steps."""
    kind = STEP_KINDS[step["kind"]]
    found = {name: value for name, value in step.items() if name not in kind.lists}
    if kind.arms and kind.arms in found:
        found[kind.arms] = [{name: value for name, value in arm.items() if name != "steps"} for arm in found[kind.arms]]
    return found


def print_of(value: Any) -> str:
    """Returns a fingerprint of a JSON value, by which forms detect changes."""
    return hashlib.sha256(json.dumps(value)).hexdigest()[:16]


def structure_faults(definition: Any) -> list[Fault]:
    """Returns the faults that prevent editing. A definition that cannot run may still be edited."""
    if not isinstance(definition, dict):
        return [Fault("", 'Give a definition: {"triggers": [...], "steps": [...]}.')]
    triggers = definition.get("triggers", [])
    if not isinstance(triggers, list) or not all(isinstance(each, dict) for each in triggers):
        return [Fault("/triggers", "Give a list of triggers, each of them an object.")]
    if len(triggers) > MOST_TRIGGERS:
        return [Fault("/triggers", f"Give at most {MOST_TRIGGERS}.")]
    seen: dict[str, str] = {}
    found = list(_list_faults(definition.get("steps", []), "/steps", seen, 1))
    if len(seen) > MOST_STEPS:
        found.append(Fault("/steps", f"A definition has at most {MOST_STEPS} steps; this has {len(seen):,}."))
    if not found and len(json.dumps(definition)) > MOST_BYTES:
        found.append(Fault("", f"A definition has at most {MOST_BYTES // 1024} KiB."))
    return found[:MOST_INNER]


def _list_faults(steps: Any, at: str, seen: dict[str, str], depth: int) -> Iterator[Fault]:
    return validation.list_faults(steps, at, depth, lambda step, place: _step_faults(step, place, seen, depth))


def _step_faults(step: dict[str, Any], at: str, seen: dict[str, str], depth: int) -> Iterator[Fault]:
    if wrong_id := validation.id_fault(step, at, seen):
        yield wrong_id
        return
    kind = step.get("kind")
    if not isinstance(kind, str) or kind not in STEP_KINDS:
        yield Fault(f"{at}/kind", f"Give the kind of the step, one of {', '.join(STEP_KINDS)}.")
        return
    if (name := STEP_KINDS[kind].arms) and (wrong := _fault_of_arms(step.get(name, []), f"{at}/{name}")):
        yield wrong
        return
    for _, place, listed in lists_of(step):
        yield from _list_faults(listed, at + place, seen, depth + 1)


def _fault_of_arms(arms: Any, at: str) -> Fault | None:
    if not isinstance(arms, list) or not all(isinstance(arm, dict) for arm in arms):
        return Fault(at, "Give a list of arms, each of them an object.")
    names = [arm.get("name") for arm in arms]
    for index, name in enumerate(names):
        if not isinstance(name, str) or not re.fullmatch(ID, name) or name in names[:index]:
            return Fault(f"{at}/{index}/name", "Give each arm a name of its own: letters, digits, '_' and '-'.")
    return None
