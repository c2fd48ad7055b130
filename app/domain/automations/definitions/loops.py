"""Loops: finds automations that would start each other forever, without a wait in between."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from app.domain.automations.definitions.programs import Program, compile
from app.domain.automations.steps import KINDS
from app.domain.automations.steps.base import Step
from app.errors import Fault


def loop(
    automation_id: str, definition: Mapping[str, Any], published: Mapping[str, Mapping[str, Any]], pointer: str = ""
) -> Fault | None:
    """Returns the fault of the step that leads back to the automation via others; None if none does.

    `definition` is the automation's own, at `pointer`. All definitions must be free of faults. Considers only steps
    that start automations: chains of triggers depend on what changes, and end at the tenth automation.
    """

    # Automations that do not lead back: each is followed once, however many steps start it.
    followed: set[str] = set()

    def follow(started_id: str) -> set[str]:
        followed.add(started_id)
        steps = _starts(compile(published[started_id])) if started_id in published else ()
        return {str(step.fields["automation_id"]) for step in steps} - followed

    for step in _starts(compile(definition)):
        first = str(step.fields["automation_id"])
        path = None if first in followed else shortest_path([first], automation_id, follow)
        if path is not None:
            detail = f"The automation would start itself again without a wait: {' → '.join((automation_id, *path))}."
            return Fault(f"{pointer}{pointer_to_step(definition, step.id)}/automation_id", f"{detail} Add a wait.")
    return None


def started(definition: Mapping[str, Any], pointer: str = "") -> dict[str, str]:
    """Maps pointers to the automations that the definition's steps start."""
    return _named(definition, pointer, "automation_id")


def channels(definition: Mapping[str, Any], pointer: str = "") -> dict[str, str]:
    """Maps the pointer of each `channel_id` in the definition's steps to the channel's identifier."""
    return _named(definition, pointer, "channel_id")


def _named(definition: Mapping[str, Any], pointer: str, field: str) -> dict[str, str]:
    steps = _pointers(definition)
    return {f"{pointer}{at}/{field}": str(step[field]) for at, step in steps if step.get(field)}


def shortest_path(begin: Collection[str], end: str, follow: Callable[[str], Collection[str]]) -> tuple[str, ...] | None:
    """Returns the shortest path to `end`, always the same one; None if there is none."""
    paths: list[tuple[str, ...]] = [(each,) for each in sorted(begin)]
    seen = set(begin)
    for path in paths:
        if path[-1] == end:
            return path
        further = sorted(set(follow(path[-1])) - seen)
        paths += [(*path, each) for each in further]
        seen.update(further)
    return None


def _starts(program: Program) -> Iterator[Step]:
    """Yields the steps that start an automation and that a run reaches without a wait."""
    pending = [program.first]
    seen: set[str | None] = {None}
    while pending:
        identifier = pending.pop()
        if identifier in seen:
            continue
        seen.add(identifier)
        step = program.steps[str(identifier)]
        if step.kind == "start_automation":
            yield step
        # A wait of 0 seconds does not count.
        if step.kind != "stop" and not (KINDS[step.kind].waits and step.fields.get("seconds") != 0):
            pending += [step.next, *step.inside.values()]


def pointer_to_step(definition: Mapping[str, Any], identifier: str) -> str:
    """Returns the pointer to the step with this identifier. Raises LookupError."""
    for at, step in _pointers(definition):
        if step["id"] == identifier:
            return at
    raise LookupError(identifier)


def _pointers(definition: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yields each step with its pointer."""
    pending = [("/steps", definition["steps"])]
    while pending:
        at, steps = pending.pop()
        for index, step in enumerate(steps):
            yield f"{at}/{index}", step
            pending += [(f"{at}/{index}{place}", inner) for _, place, inner in KINDS[step["kind"]].inside(step)]
