"""Loops: finds automations that start each other forever without a wait, or by events."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from app.domain.automations.definitions.programs import Program, compile
from app.domain.automations.steps import STEP_KINDS
from app.domain.automations.steps.base import Step
from app.domain.automations.steps.set_field import CUSTOM, field_of
from app.domain.triggers import timed_triggers
from app.errors import Fault

_UNDONE_BY = {"add_tag": "remove_tag", "remove_tag": "add_tag"}
_OF_RUNS = ("automation.started", "automation.completed")
_TEMPLATE = object()


class Cause(NamedTuple):
    """A reason why automations start: an event of a run or a step, or a step that starts one.

    `event`: None for a step that starts an automation. `what`: the tag of the event, or the started automation; None if
    the event has no tag, or if the tag is a template. `field`: the step's member with the changed value.
    """

    event: str | None
    what: str | None = None
    step: Step | None = None
    field: str = ""


@dataclass(frozen=True, slots=True)
class Chain:
    """Automations that start each other, the last the first again. `pointer`: of the cause."""

    pointer: str
    detail: str
    automation_ids: Sequence[str]


def loop(
    automation_id: str, definition: Mapping[str, Any], published: Mapping[str, Mapping[str, Any]], pointer: str = ""
) -> Fault | None:
    """Returns the fault of a step that starts the automation again, even through others; else None.

    `definition` is the automation's own, at `pointer`. All definitions must be free of faults. Ignores chains of
    triggers: such a chain goes on only if something changes, and ends at the tenth automation.
    """

    # The automations that were searched without finding a loop. Each is searched once.
    followed: set[str] = set()

    def follow(started_id: str) -> set[str]:
        followed.add(started_id)
        steps = _starts(compile(published[started_id])) if started_id in published else ()
        return {str(step.fields["automation_id"]) for step in steps} - followed

    for step in _starts(compile(definition)):
        first = str(step.fields["automation_id"])
        path = None if first in followed else _shortest_path([first], automation_id, follow)
        if path is not None:
            detail = f"The automation would start itself again without a wait: {' → '.join((automation_id, *path))}."
            return Fault(f"{pointer}{_pointer_to(definition, step)}/automation_id", f"{detail} Add a wait.")
    return None


def caused(definitions: Iterable[Mapping[str, Any]]) -> tuple[set[str], set[str], set[str]]:
    """Returns what runs may start: keys of listeners, prefixes of such keys, and automations."""
    causes = [cause for definition in definitions for cause in _causes(compile(definition))]
    keys = {key for each in causes if each.event for key in (each.event, f"{each.event}:{each.what or ''}")}
    any_tag = {f"{each.event}:" for each in causes if each.event and each.field == "tag" and each.what is None}
    return keys, any_tag, {each.what for each in causes if each.event is None and each.what}


def chains(automation_id: str, definition: Mapping[str, Any], others: Mapping[str, Mapping[str, Any]]) -> list[Chain]:
    """Returns the shortest chains from events of the automation back to it.

    `others`: definitions by automation. Ignores conditions, so a run need not follow the chain. Leaves out steps that
    change nothing the second time, such as one that adds a tag that no step removes.
    """
    among = _Among({id: compile(each) for id, each in {**others, automation_id: definition}.items()})
    followers = {id: {other for each in among.causes(id) for other in among.started(each)} for id in among.programs}
    found = []
    for cause in among.causes(automation_id):
        path = _shortest_path(among.started(cause), automation_id, followers.__getitem__) if cause.event else None
        if path:
            at = f"{_pointer_to(definition, cause.step)}/{cause.field}" if cause.step else "/triggers"
            found.append(Chain(at, _detail(cause, path), (automation_id, *path)))
    return found


def identifiers(definition: Mapping[str, Any], field: str) -> dict[str, str]:
    """Returns the identifiers that steps have in `field`, such as `channel_id`, by pointer."""
    return {f"{at}/{field}": str(step[field]) for at, step in _pointers(definition) if step.get(field)}


def _shortest_path(
    begin: Collection[str], end: str, follow: Callable[[str], Collection[str]]
) -> tuple[str, ...] | None:
    """Returns the shortest path from `begin` to `end`, always the same one; None if there is none."""
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
        if step.kind != "stop" and not (STEP_KINDS[step.kind].waits and step.fields.get("seconds") != 0):
            pending += [step.next, *step.inside.values()]


def _pointer_to(definition: Mapping[str, Any], step: Step) -> str:
    return next(at for at, each in _pointers(definition) if each["id"] == step.id)


def _pointers(definition: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    pending = [("/steps", definition["steps"])]
    while pending:
        at, steps = pending.pop()
        for index, step in enumerate(steps):
            yield f"{at}/{index}", step
            pending += [(f"{at}/{index}{place}", inner) for _, place, inner in STEP_KINDS[step["kind"]].inside(step)]


class _Among:
    """Programs of automations, with indexes of their triggers and of the values that their steps set."""

    def __init__(self, programs: Mapping[str, Program]) -> None:
        self.programs = programs
        # The automations that listen to an event, by event and tag; None is a trigger without a tag.
        self._listening: dict[tuple[str, str | None], set[str]] = defaultdict(set)
        self._listening_to_any: dict[str, set[str]] = defaultdict(set)
        # The values that steps set, by kind of step and field.
        self._values: dict[tuple[str, str], set[Any]] = defaultdict(set)
        for id, program in programs.items():
            for trigger in program.triggers:
                if timed_triggers.is_timed(trigger):
                    continue  # A trigger by time makes no tight chain.
                # The condition may exclude runs of the chain's automations, so such a trigger is left out.
                if not (trigger["event"] in _OF_RUNS and "if" in trigger):
                    self._listening[trigger["event"], trigger.get("tag")].add(id)
                    self._listening_to_any[trigger["event"]].add(id)
            for cause in _causes(program):
                if cause.step is not None:
                    self._values[cause.step.kind, _set_by(cause.step)].add(_value(cause))

    def causes(self, automation_id: str) -> list[Cause]:
        """Returns the causes that may occur in each run of the automation, however often it runs."""
        return [each for each in _causes(self.programs[automation_id]) if self._repeats(each)]

    def started(self, cause: Cause) -> set[str]:
        """Returns the automations that the cause starts."""
        if cause.event is None:
            return {str(cause.what)} & self.programs.keys()
        if cause.what is None:
            return self._listening_to_any[cause.event]
        return self._listening[cause.event, None] | self._listening[cause.event, cause.what]

    def _repeats(self, cause: Cause) -> bool:
        """Whether the cause can recur: it needs no change, or steps undo or vary the value that it sets."""
        if cause.step is None or cause.event is None:
            return True
        kind, value = cause.step.kind, _value(cause)
        if kind in _UNDONE_BY:
            removed = self._values[_UNDONE_BY[kind], ""]
            return bool(removed) if value is _TEMPLATE else bool(removed & {value, _TEMPLATE})
        return value is _TEMPLATE or len(self._values[kind, _set_by(cause.step)]) > 1


def _causes(program: Program) -> Iterator[Cause]:
    yield from map(Cause, _OF_RUNS)
    for step in program.steps.values():
        match step.kind:
            case "add_tag" | "remove_tag":
                tag = None if _is_template(step.fields["tag"]) else step.fields["tag"]
                yield Cause("tag.added" if step.kind == "add_tag" else "tag.removed", tag, step, "tag")
            case "set_field":
                yield Cause("contact.updated", None, step, "value")
            case "assign_conversation":
                yield Cause("conversation.assigned", None, step, "assignee_id")
            case "start_automation":
                yield Cause(None, step.fields["automation_id"], step, "automation_id")


def _detail(cause: Cause, path: Sequence[str]) -> str:
    what = "This may cause" if cause.step else "Each run causes"
    who = "this automation again" if len(path) == 1 else "others, and these this automation again"
    return f"{what} '{cause.event}', which starts {who}. After ten runs in a row nothing more is started."


def _value(cause: Cause) -> Any:
    value = cause.step.fields[cause.field] if cause.step else None
    return _TEMPLATE if _is_template(value) else value


def _is_template(value: Any) -> bool:
    return isinstance(value, str) and "{" in value


def _set_by(step: Step) -> str:
    return field_of(str(step.fields.get("field", ""))).removeprefix(CUSTOM)
