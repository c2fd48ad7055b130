"""Validation: finds a definition's faults, as pointers and sentences for its author."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from app import bounds
from app.domain.automations.definitions import known_answers, known_names
from app.domain.automations.definitions.json_schemas import (
    DEEPEST,
    ID,
    MOST_STEPS,
    MOST_TRIGGERS,
    REPLY_EVENT,
    SCHEDULES,
    SCHEMAS,
)
from app.domain.automations.definitions.known_answers import Answers
from app.domain.automations.definitions.known_names import Names
from app.domain.automations.steps import STEP_KINDS
from app.domain.automations.steps.base import StepKind
from app.domain.triggers import conditions, timed_triggers
from app.domain.triggers.conditions import MOST_MATCHES
from app.domain.triggers.event_kinds import EVENTS, TAG_EVENTS
from app.domain.work import schema_checks
from app.errors import MAX_FAULTS, Fault, pointer_to
from app.lib import normalization
from app.lib.nearest_names import meant
from app.lib.templates import Budget, Overspent

MOST_EXITS = 20
# Compiling a regular expression costs as much as parsing this many words in tags of templates.
_WORDS_OF_MATCHES = 25
_TOO_MUCH = (
    "The tags, regular expressions and comparisons with buttons of all steps have more than {:,} parts together. Use"
    " fewer, or start another automation for some of the steps."
)


def faults(definition: Any, pointer: str = "") -> list[Fault]:
    """Returns the faults of the definition at `pointer`, up to MAX_FAULTS."""
    return list(islice(_faults(definition, pointer), MAX_FAULTS))


def exit_faults(exits: Any, pointer: str = "") -> list[Fault]:
    """Returns the faults of an automation's exits, up to MAX_FAULTS."""
    return list(islice(_trigger_faults(exits, pointer, MOST_EXITS, known_names.of_exits), MAX_FAULTS))


def filter_faults(condition: Any, pointer: str = "") -> list[Fault]:
    """Returns the faults of a filter of contacts, up to MAX_FAULTS."""
    return list(islice(_condition_faults(condition, pointer, known_names.OF_FILTERS), MAX_FAULTS))


def goal_faults(goal: Any, pointer: str = "") -> list[Fault]:
    """Returns the faults of an automation's goal, up to MAX_FAULTS."""
    if not isinstance(goal, dict):
        example = '{"event": "sale.recorded", "within_seconds": 604800}'
        return [Fault(pointer, f"Give an object, such as {example}, or null.")]
    schema = SCHEMAS["Goal"]["properties"]
    faults = [
        Fault(
            pointer + pointer_to(name), f"Unknown field.{meant(name, schema)} There are {', '.join(map(repr, schema))}."
        )
        for name in sorted(goal.keys() - schema.keys())
    ]
    trigger = {name: goal[name] for name in goal.keys() & {"event", "tag", "if"}}
    faults += _faults_of_trigger(trigger, pointer, known_names.of_exits(_events([trigger])))
    if "within_seconds" not in goal:
        faults.append(Fault(f"{pointer}/within_seconds", "Give the time after the start of a run, in seconds."))
    else:
        faults += schema_checks.faults(goal["within_seconds"], schema["within_seconds"], f"{pointer}/within_seconds")
    return faults[:MAX_FAULTS]


def names(definition: Mapping[str, Any]) -> Names:
    """Returns the names that templates and conditions in the steps may use.

    The definition may have faults.
    """
    return known_names.of_steps(dict(_results(definition.get("steps", []))), _events(definition.get("triggers")))


def list_faults(
    steps: Any, at: str, depth: int, check: Callable[[dict[str, Any], str], Iterator[Fault]]
) -> Iterator[Fault]:
    """Yields the faults of the list of steps at the pointer `at`, in a definition or a draft.

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
    """Returns the fault of the step's identifier; if there is none, None, and adds it to `pointers`."""
    identifier = step.get("id")
    if not isinstance(identifier, str) or not re.fullmatch(ID, identifier):
        return Fault(f"{at}/id", "Give the step an identifier of 1 to 64 letters, digits, '_' and '-'.")
    if identifier in pointers:
        return Fault(f"{at}/id", f"Change this: the step at {pointers[identifier]} has the same identifier.")
    pointers[identifier] = at
    return None


@dataclass(slots=True)
class _Seen:
    """The state of a validation.

    `names`: the names that steps can use. `answers`: the answers that buttons can give. `pointers`: the pointers of the
    steps so far, by identifier. `steps`: their number. `work`: the cost of their templates and conditions.
    """

    names: Names
    answers: Answers
    pointers: dict[str, str] = field(default_factory=dict)
    steps: int = 0
    work: Budget = field(default_factory=lambda: Budget(bounds.COMPUTING_PER_DEFINITION.most))


def _faults(definition: Any, at: str) -> Iterator[Fault]:
    if not isinstance(definition, dict):
        yield Fault(at, 'Give a definition: {"triggers": [...], "steps": [...]}.')
        return
    for name in sorted(definition.keys() - SCHEMAS["Definition"]["properties"].keys()):
        yield Fault(at + pointer_to(name), "Unknown field. A definition has 'triggers' and 'steps'.")
    triggers = definition.get("triggers", [])
    yield from _trigger_faults(triggers, f"{at}/triggers", MOST_TRIGGERS, known_names.of_events, may_be_timed=True)
    if "steps" not in definition:
        yield Fault(f"{at}/steps", "Give the steps: a list.")
        return
    seen = _Seen(names(definition), known_answers.of_steps(_all_steps(definition["steps"])))
    try:
        yield from _list_faults(definition["steps"], f"{at}/steps", seen, 1)
    except Overspent:
        bounds.COMPUTING_PER_DEFINITION.reached()
        yield Fault(f"{at}/steps", _TOO_MUCH.format(seen.work.most))
    if seen.steps > MOST_STEPS:
        yield Fault(f"{at}/steps", f"A definition has at most {MOST_STEPS} steps; this has {seen.steps:,}.")


def _results(steps: Any) -> Iterator[tuple[str, Collection[str] | None]]:
    """Yields (name, members) for each result that steps at any depth save; members None if unknown."""
    for each in _all_steps(steps):
        kind = STEP_KINDS.get(each["kind"]) if isinstance(each.get("kind"), str) else None
        if isinstance(each.get("id"), str):
            yield each["id"], None if kind is None else kind.results
        if isinstance(each.get("save_as"), str):
            yield each["save_as"], None


def _all_steps(steps: Any) -> Iterator[dict[str, Any]]:
    """Yields the objects in lists at any depth: the steps, and anything that stands in their place."""
    pending = [steps]
    while pending:
        each = pending.pop()
        if isinstance(each, list):
            pending += each
        elif isinstance(each, dict):
            yield each
            pending += (inner for inner in each.values() if isinstance(inner, list))


def _events(triggers: Any) -> Sequence[str]:
    """Returns the kinds of events that start runs; all kinds if there are no triggers.

    For a trigger by time, returns a kind of event with the members that its runs get.
    """
    listed = [_event(each) for each in triggers if isinstance(each, dict)] if isinstance(triggers, list) else []
    return [event for event in EVENTS if event in listed] or list(EVENTS)


def _event(trigger: Mapping[str, Any]) -> Any:
    if timed_triggers.is_timed(trigger):
        return "booking.created" if "before" in trigger else "contact.created"
    return trigger.get("event")


def _list_faults(steps: Any, at: str, seen: _Seen, depth: int) -> Iterator[Fault]:
    return list_faults(steps, at, depth, lambda step, place: _step_faults(step, place, seen, depth))


def _step_faults(step: dict[str, Any], at: str, seen: _Seen, depth: int) -> Iterator[Fault]:
    seen.steps += 1
    if wrong_id := id_fault(step, at, seen.pointers):
        yield wrong_id
    name = step.get("kind")
    if not isinstance(name, str) or name not in STEP_KINDS:
        what = f"There is no kind of step '{name[:100]}'" if isinstance(name, str) else "Give the kind of the step"
        yield Fault(f"{at}/kind", f"{what}.{meant(name, STEP_KINDS)} The kinds are {', '.join(STEP_KINDS)}.")
        return
    kind = STEP_KINDS[name]
    wrong = list(islice(_field_faults(step, name, kind, at), MAX_FAULTS))
    yield from wrong
    for each in kind.templates:
        yield from known_names.value_faults(step.get(each), f"{at}/{each}", seen.names, seen.work.spend)
    for each in kind.conditions:
        if each in step:
            yield from _condition_faults(step[each], f"{at}/{each}", seen.names, seen)
    if trigger := {each: step[each] for each in kind.trigger if each in step}:
        yield from _faults_of_trigger(trigger, at, known_names.of_exits(_events([trigger])))
    for each in kind.paths:
        if isinstance(step.get(each), str) and (detail := known_names.fault(step[each].split("."), seen.names)):
            yield Fault(f"{at}/{each}", detail)
    if not (kind.arms and wrong):  # faulty arms may not have lists of steps
        for _, place, listed in kind.inside(step):
            if listed != []:
                yield from _list_faults(listed, f"{at}{place}", seen, depth + 1)
    if not wrong:
        yield from kind.check(step, at)


def _field_faults(step: Mapping[str, Any], name: str, kind: StepKind, at: str) -> Iterator[Fault]:
    known = list(dict.fromkeys(("id", "kind", *kind.fields, *kind.lists)))
    for each in sorted(step.keys() - set(known)):
        has = ", ".join(known)
        yield Fault(at + pointer_to(each), f"Unknown field.{meant(each, known)} A step of kind '{name}' has {has}.")
    for each in kind.required:
        if each not in step:
            yield Fault(f"{at}/{each}", f"A step of kind '{name}' needs '{each}'.")
    for each, schema in kind.fields.items():
        if each in step and each not in (*kind.lists, *kind.conditions, *kind.trigger):
            yield from schema_checks.faults(step[each], schema, f"{at}/{each}")


def _condition_faults(condition: Any, at: str, known: Names, seen: _Seen | None = None) -> Iterator[Fault]:
    if seen is not None:
        seen.work.spend(_WORDS_OF_MATCHES * conditions.matches(condition))
    wrong = [Fault(at + pointer, detail) for pointer, detail in conditions.faults(condition)]
    yield from wrong
    if not wrong:
        for pointer, name in conditions.fields(condition):
            if detail := known_names.fault(name.split("."), known):
                yield Fault(at + pointer, detail)
        if seen is not None:
            for pointer, detail in known_answers.faults(condition, seen.answers, seen.work.spend):
                yield Fault(at + pointer, detail)


def _trigger_faults(
    triggers: Any, at: str, most: int, known: Callable[[Sequence[str]], Names], *, may_be_timed: bool = False
) -> Iterator[Fault]:
    if not isinstance(triggers, list):
        yield Fault(at, 'Give a list, such as [{"event": "tag.added", "tag": "vip"}].')
    elif len(triggers) > most:
        yield Fault(at, f"Give at most {most}; this has {len(triggers):,}.")
    elif sum(conditions.matches(each.get("if")) for each in triggers if isinstance(each, dict)) > MOST_MATCHES:
        yield Fault(at, f"Give at most {MOST_MATCHES} comparisons with 'matches' in all of them together.")
    else:
        for index, trigger in enumerate(triggers):
            is_timed = may_be_timed and isinstance(trigger, dict) and timed_triggers.is_timed(trigger)
            check = _faults_of_timed if is_timed else _faults_of_trigger
            yield from check(trigger, f"{at}/{index}", known(_events([trigger])))


def _faults_of_trigger(trigger: Any, at: str, known: Names) -> Iterator[Fault]:
    if not isinstance(trigger, dict):
        yield Fault(at, 'Give an object, such as {"event": "tag.added", "tag": "vip"}.')
        return
    for name in sorted(trigger.keys() - SCHEMAS["Trigger"]["properties"].keys()):
        yield Fault(at + pointer_to(name), "Unknown field. There are 'event', 'tag', 'also_replies' and 'if'.")
    event = trigger.get("event")
    if not isinstance(event, str) or event not in EVENTS:
        what = f"No trigger is called '{event[:100]}'.{meant(event, EVENTS)} " if isinstance(event, str) else ""
        yield Fault(f"{at}/event", f"{what}Give one of {', '.join(EVENTS)}.")
    elif "tag" in trigger and event not in TAG_EVENTS:
        yield Fault(f"{at}/tag", f"Remove this: only {' and '.join(TAG_EVENTS)} have a tag.")
    elif "tag" in trigger:
        yield from _tag_faults(trigger["tag"], f"{at}/tag")
    if "also_replies" in trigger and event != REPLY_EVENT:
        yield Fault(f"{at}/also_replies", f"Remove this: only {REPLY_EVENT} can be a reply.")
    elif not isinstance(trigger.get("also_replies", False), bool):
        yield Fault(f"{at}/also_replies", "Give true or false.")
    if "if" in trigger:
        yield from _condition_faults(trigger["if"], f"{at}/if", known)


def _faults_of_timed(trigger: Mapping[str, Any], at: str, known: Names) -> Iterator[Fault]:
    given = {name: value for name, value in trigger.items() if name != "if"}
    if timed_triggers.is_scheduled(trigger):
        yield from _faults_of_schedule(given, at)
    else:
        yield from schema_checks.faults(given, SCHEMAS["BeforeTrigger" if "before" in trigger else "DateTrigger"], at)
    if "if" in trigger:
        yield from _condition_faults(trigger["if"], f"{at}/if", known)


def _faults_of_schedule(given: Mapping[str, Any], at: str) -> Iterator[Fault]:
    every, timezone = given.get("every"), given.get("timezone")
    if not isinstance(every, str) or every not in SCHEDULES:
        yield Fault(f"{at}/every", f"Give one of {', '.join(SCHEDULES)}.")
        return
    yield from schema_checks.faults(given, SCHEMAS[SCHEDULES[every]], at)
    if isinstance(timezone, str) and not normalization.is_timezone(timezone):
        yield Fault(f"{at}/timezone", "Give the name of a time zone, such as Europe/Berlin.")


def _tag_faults(tag: Any, at: str) -> Iterator[Fault]:
    try:
        is_tag = isinstance(tag, str) and normalization.tag(tag) == tag
    except ValueError:
        is_tag = False
    if not is_tag:
        yield Fault(at, "Give a tag: 1 to 100 characters, no control characters, no spaces at its ends.")
