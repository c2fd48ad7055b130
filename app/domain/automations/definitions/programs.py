"""Programs: published definitions in the flat form that runs execute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.domain.automations.steps import STEP_KINDS
from app.domain.automations.steps.base import Step
from app.errors import NotFound
from app.lib import json
from app.lib.caches import Cache
from app.models.automations import AutomationVersion

# The most steps and triggers, in all programs together, that a process caches.
MOST_KEPT = 20_000


@dataclass(frozen=True, slots=True)
class Program:
    """A definition, as runs execute it.

    `first`: the first step; None if a run completes at once. `talks`: a step needs the run's conversation, or may name
    it.
    """

    first: str | None
    steps: Mapping[str, Step]
    triggers: Sequence[Mapping[str, Any]]
    talks: bool


def program_of(automation_id: str, version: int) -> Program:
    """Returns the program of a published version, which never changes. Raises NotFound."""
    key = automation_id, version
    program = _KEPT.get(key)
    if program is None:
        found = AutomationVersion.get_or_none(automation_id=automation_id, number=version)
        if found is None:
            raise NotFound()
        program = compile(found.definition)
        _KEPT.put(key, program, 1 + len(program.steps) + len(program.triggers))
    return program


def compile(definition: Mapping[str, Any]) -> Program:
    """Compiles a definition, which must be free of faults."""
    steps: dict[str, Step] = {}
    first = _add(definition["steps"], None, steps)
    talks = any(STEP_KINDS[step.kind].talks for step in steps.values()) or b"conversation" in json.dumps(
        definition["steps"]
    )
    return Program(first, steps, definition.get("triggers", []), talks)


def _add(listed: Sequence[Mapping[str, Any]], after: str | None, steps: dict[str, Step]) -> str | None:
    """Adds the steps of a list, and the steps nested in them, to `steps`.

    Returns the identifier of the first step. If the list is empty, returns `after`: the step that follows the list.
    """
    for given in reversed(listed):
        kind = STEP_KINDS[given["kind"]]
        fields = {name: value for name, value in given.items() if name not in ("id", "kind", *kind.lists)}
        behind = given["id"] if kind.loops else after
        inside = {name: _add(listed, behind, steps) for name, _, listed in kind.inside(given)}
        steps[given["id"]] = Step(given["id"], given["kind"], fields, after, inside)
        after = given["id"]
    return after


_KEPT: Cache[tuple[str, int], Program] = Cache(MOST_KEPT)
