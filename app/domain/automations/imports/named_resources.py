"""Resources that an imported automation names by identifiers of another workspace."""

from __future__ import annotations

import copy
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from app.domain.automations import definitions
from app.domain.automations.imports.conversions import without_faults
from app.domain.automations.imports.sources import Imported, Lost
from app.domain.automations.steps import STEP_KINDS
from app.domain.triggers import timed_triggers

SORTS: Mapping[str, str] = {
    "automation_id": "automation",
    "assignee_id": "member",
    "channel_id": "channel",
    "segment_id": "segment",
}
_IDENTIFIER = re.compile("(aut|mem|chn|seg)_[0-9a-z]{26}")


@dataclass(frozen=True, slots=True)
class Named:
    """A resource that the automation names: its identifier, type, and number of occurrences."""

    id: str
    sort: str
    times: int


def named(imported: Imported) -> list[Named]:
    """Returns the resources that the automation names, in order of occurrence."""
    times = Counter((holder[field], SORTS[field]) for holder, field in _places(imported))
    return [Named(identifier, sort, number) for (identifier, sort), number in times.items()]


def replaced(imported: Imported, chosen: Mapping[str, str], name_of: Callable[[str], str]) -> Imported:
    """Returns a copy that names the `chosen` resources instead, with the losses in `lost`.

    Without a choice, a step loses its assignee or channel; a step or trigger that names any other resource is removed.
    `name_of` returns the name that a resource had in its workspace. Raises Unreadable like `without_faults`.
    """
    made = replace(imported, definition=copy.deepcopy(imported.definition))
    lost = [*imported.lost]

    def lose(identifier: str, where: str, what: str) -> None:
        lost.append(Lost(identifier, where, f"{name_of(identifier)} is not in this workspace. {what}"))

    made.definition["steps"] = list(_steps(made.definition["steps"], chosen, lose))
    triggers = []
    for number, trigger in enumerate(made.definition.get("triggers", ()), 1):
        segment = trigger.get("segment_id")
        if segment is not None and not chosen.get(segment):
            lose(segment, f"Trigger {number}", "The trigger is left out.")
        else:
            triggers.append({**trigger, **({"segment_id": chosen[segment]} if segment else {})})
    made.definition["triggers"] = triggers
    made.lost = tuple(lost)
    return without_faults(made)


def _steps(
    steps: list[dict[str, Any]], chosen: Mapping[str, str], lose: Callable[[str, str, str], None]
) -> Iterator[dict[str, Any]]:
    for step in steps:
        where = f"Step {step['id']}"
        for field in SORTS.keys() & step.keys():
            identifier = step[field]
            if identifier is None or chosen.get(identifier):
                step[field] = chosen.get(identifier) if identifier else None
            elif field == "assignee_id":
                step[field] = None
                lose(identifier, where, "The step leaves the conversation unassigned.")
            elif field == "channel_id":
                del step[field]
                lose(identifier, where, "The message goes to the contact's latest conversation.")
            else:
                lose(identifier, where, "The step is left out.")
                break
        else:
            for _, _, inside in STEP_KINDS[step["kind"]].inside(step):
                inside[:] = _steps(inside, chosen, lose)
            yield step


def _places(imported: Imported) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Yields each step or trigger that names a resource, and the member that names it."""
    for step in definitions.compile(imported.definition).steps.values():
        yield from ((step.fields, field) for field in SORTS if _is_identifier(step.fields.get(field)))
    for trigger in imported.definition.get("triggers", ()):
        if timed_triggers.is_timed(trigger) and _is_identifier(trigger.get("segment_id")):
            yield trigger, "segment_id"


def _is_identifier(value: Any) -> bool:
    return isinstance(value, str) and _IDENTIFIER.fullmatch(value) is not None
