"""Validation: what is wrong with a definition, as pointers and sentences for the person who writes it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from app.domain.automations.definitions.json_schemas import (
    DEEPEST,
    EVENTS,
    ID,
    MOST_STEPS,
    MOST_TRIGGERS,
    SCHEMAS,
    TAG_EVENTS,
)
from app.domain.automations.steps import KINDS
from app.domain.automations.steps.base import Kind
from app.domain.contacts.contacts import ContactSchema
from app.domain.triggers import conditions
from app.domain.triggers.conditions import MOST_MATCHES
from app.domain.work import schema_checks
from app.errors import MAX_FAULTS, Fault, pointer_to
from app.lib import normalization, templates
from app.lib.templates import TemplateError

MOST_EXITS = 20
DEEPEST_VALUE = 20
CONTACT_FIELDS = tuple(ContactSchema().fields)
# Conditions of triggers and exits can name these: they are known when the event happens.
_KNOWN_TO_TRIGGERS = ("contact", "conversation", "trigger.event")


def faults(definition: Any, pointer: str = "") -> list[Fault]:
    """The faults of the definition, which is at the pointer; MAX_FAULTS at most."""
    return [fault for fault, _ in zip(_faults(definition, pointer), range(MAX_FAULTS), strict=False)]


def exit_faults(exits: Any, pointer: str = "") -> list[Fault]:
    """The faults of the exits of an automation."""
    return list(_trigger_faults(exits, pointer, MOST_EXITS))


@dataclass(slots=True)
class _Seen:
    """The names of the definition: where each identifier stands, and all that `steps` will have."""

    pointers: dict[str, str] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    steps: int = 0


def _faults(definition: Any, at: str) -> Iterator[Fault]:
    if not isinstance(definition, dict):
        yield Fault(at, 'Give a definition: {"triggers": [...], "steps": [...]}.')
        return
    for name in sorted(definition.keys() - SCHEMAS["Definition"]["properties"].keys()):
        yield Fault(at + pointer_to(name), "Unknown field. A definition has 'triggers' and 'steps'.")
    yield from _trigger_faults(definition.get("triggers", []), f"{at}/triggers", MOST_TRIGGERS)
    if "steps" not in definition:
        yield Fault(f"{at}/steps", "Give the steps: a list.")
        return
    seen = _Seen(names=set(_names(definition["steps"])))
    yield from _list_faults(definition["steps"], f"{at}/steps", seen, 1)
    if seen.steps > MOST_STEPS:
        yield Fault(f"{at}/steps", f"A definition has at most {MOST_STEPS} steps; this has {seen.steps:,}.")


def _names(steps: Any) -> Iterator[str]:
    """The identifiers and `save_as` of all steps, however deep."""
    pending = [steps]
    while pending:
        each = pending.pop()
        if isinstance(each, list):
            pending += each
        elif isinstance(each, dict):
            yield from (each[name] for name in ("id", "save_as") if isinstance(each.get(name), str))
            pending += (inner for inner in each.values() if isinstance(inner, list))


def _list_faults(steps: Any, at: str, seen: _Seen, depth: int) -> Iterator[Fault]:
    if not isinstance(steps, list):
        yield Fault(at, "Give a list of steps.")
    elif depth > DEEPEST:
        yield Fault(at, f"Steps are nested at most {DEEPEST} levels deep.")
    else:
        for index, step in enumerate(steps):
            yield from _step_faults(step, f"{at}/{index}", seen, depth)


def _step_faults(step: Any, at: str, seen: _Seen, depth: int) -> Iterator[Fault]:
    seen.steps += 1
    if not isinstance(step, dict):
        yield Fault(at, "Give a step: an object with 'id', 'kind' and the fields of its kind.")
        return
    yield from _id_faults(step, at, seen)
    name = step.get("kind")
    if not isinstance(name, str) or name not in KINDS:
        what = f"There is no kind of step '{name[:100]}'" if isinstance(name, str) else "Give the kind of the step"
        yield Fault(f"{at}/kind", f"{what}. The kinds are {', '.join(KINDS)}.")
        return
    kind = KINDS[name]
    wrong = list(_field_faults(step, name, kind, at))
    yield from wrong
    for each in kind.templates:
        yield from _template_faults(step.get(each), f"{at}/{each}")
    for each in kind.conditions:
        if each in step:
            yield from _condition_faults(step[each], f"{at}/{each}", seen.names)
    for each in kind.lists:
        if each in step:
            yield from _list_faults(step[each], f"{at}/{each}", seen, depth + 1)
    if not wrong:
        yield from kind.check(step, at)


def _id_faults(step: Mapping[str, Any], at: str, seen: _Seen) -> Iterator[Fault]:
    identifier = step.get("id")
    if not isinstance(identifier, str) or not re.fullmatch(ID, identifier):
        yield Fault(f"{at}/id", "Give the step an identifier of 1 to 64 letters, digits, '_' and '-'.")
    elif identifier in seen.pointers:
        yield Fault(f"{at}/id", f"Change this: the step at {seen.pointers[identifier]} has the same identifier.")
    else:
        seen.pointers[identifier] = at


def _field_faults(step: Mapping[str, Any], name: str, kind: Kind, at: str) -> Iterator[Fault]:
    for each in sorted(step.keys() - {"id", "kind", *kind.fields, *kind.lists}):
        has = ", ".join(("id", "kind", *dict.fromkeys((*kind.fields, *kind.lists))))
        yield Fault(at + pointer_to(each), f"Unknown field. A step of kind '{name}' has {has}.")
    for each in kind.required:
        if each not in step:
            yield Fault(f"{at}/{each}", f"A step of kind '{name}' needs '{each}'.")
    for each, schema in kind.fields.items():
        if each in step and each not in (*kind.lists, *kind.conditions):
            yield from schema_checks.faults(step[each], schema, f"{at}/{each}")


def _template_faults(value: Any, at: str, depth: int = 0) -> Iterator[Fault]:
    if isinstance(value, str):
        try:
            templates.check(value)
        except TemplateError as error:
            yield Fault(at, str(error))
    elif isinstance(value, (dict, list)):
        if depth == DEEPEST_VALUE:
            yield Fault(at, f"Values are nested at most {DEEPEST_VALUE} levels deep.")
            return
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _template_faults(inner, at + pointer_to(key), depth + 1)


def _condition_faults(condition: Any, at: str, names: set[str] | None) -> Iterator[Fault]:
    """`names`: what `steps` has; None for the condition of a trigger."""
    wrong = [Fault(at + pointer, detail) for pointer, detail in conditions.faults(condition)]
    yield from wrong
    if not wrong:
        for pointer, name in conditions.fields(condition):
            if detail := _unknown_field(name, names):
                yield Fault(at + pointer, detail)


def _unknown_field(name: str, names: set[str] | None) -> str | None:
    root, _, rest = name.partition(".")
    first = rest.partition(".")[0]
    if names is None and not any(f"{name}.".startswith(f"{known}.") for known in _KNOWN_TO_TRIGGERS):
        return (
            f"This is not known when an event happens. Name {' or '.join(f'{each}…' for each in _KNOWN_TO_TRIGGERS)}."
        )
    if root == "contact" and first not in CONTACT_FIELDS:
        return f"A contact has no field '{first}'. It has {', '.join(CONTACT_FIELDS)}."
    if root == "trigger" and first not in ("event", "variables"):
        return "Name trigger.event… or trigger.variables…."
    if root == "steps" and names is not None and first not in names:
        return f"The definition has no step with 'id' or 'save_as' '{first}'."
    return None


def _trigger_faults(triggers: Any, at: str, most: int) -> Iterator[Fault]:
    if not isinstance(triggers, list):
        yield Fault(at, 'Give a list, such as [{"event": "tag.added", "tag": "vip"}].')
    elif len(triggers) > most:
        yield Fault(at, f"Give at most {most}; this has {len(triggers):,}.")
    elif sum(conditions.matches(each.get("if")) for each in triggers if isinstance(each, dict)) > MOST_MATCHES:
        yield Fault(at, f"Give at most {MOST_MATCHES} comparisons with 'matches' in all of them together.")
    else:
        for index, trigger in enumerate(triggers):
            yield from _faults_of_trigger(trigger, f"{at}/{index}")


def _faults_of_trigger(trigger: Any, at: str) -> Iterator[Fault]:
    if not isinstance(trigger, dict):
        yield Fault(at, 'Give an object, such as {"event": "tag.added", "tag": "vip"}.')
        return
    for name in sorted(trigger.keys() - SCHEMAS["Trigger"]["properties"].keys()):
        yield Fault(at + pointer_to(name), "Unknown field. There are 'event', 'tag' and 'if'.")
    event = trigger.get("event")
    if not isinstance(event, str) or event not in EVENTS:
        yield Fault(f"{at}/event", f"Give one of {', '.join(EVENTS)}.")
    elif "tag" in trigger and event not in TAG_EVENTS:
        yield Fault(f"{at}/tag", f"Remove this: only {' and '.join(TAG_EVENTS)} have a tag.")
    elif "tag" in trigger:
        yield from _tag_faults(trigger["tag"], f"{at}/tag")
    if "if" in trigger:
        yield from _condition_faults(trigger["if"], f"{at}/if", None)


def _tag_faults(tag: Any, at: str) -> Iterator[Fault]:
    try:
        is_tag = isinstance(tag, str) and normalization.tag(tag) == tag
    except ValueError:
        is_tag = False
    if not is_tag:
        yield Fault(at, "Give a tag: 1 to 100 characters, no control characters, no spaces at its ends.")
