"""Definitions of automations: JSON Schemas, validation, and the programs that runs execute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from app.domain.automations.definitions.json_schemas import SCHEMAS
from app.domain.automations.definitions.loops import caused, chains, identifiers, loop
from app.domain.automations.definitions.programs import compile
from app.domain.automations.definitions.validation import exit_faults, faults, filter_faults, goal_faults, names
from app.domain.triggers import timed_triggers
from app.domain.triggers.automation_listeners import awaited_key


def listened_keys(
    definition: Mapping[str, Any], exits: Sequence[Mapping[str, Any]], goal: Mapping[str, Any] | None = None
) -> set[str]:
    """Returns the keys that an automation listens to, for triggers, exits, goal and awaited events.

    The key of an event is its kind, plus ":" and the tag if the trigger names one. Timed triggers and awaited events
    have keys of their own (`timed_triggers.listens_to`, `awaited_key`).
    """
    listed = [*definition.get("triggers", []), *exits, *([goal] if goal else [])]
    steps = compile(definition).steps.values() if definition else ()
    awaited = {awaited_key(step.fields["event"]) for step in steps if step.kind == "wait_for_event"}
    return awaited | {_listened(each) for each in listed}


def _listened(trigger: Mapping[str, Any]) -> str:
    if timed_triggers.is_timed(trigger):
        return timed_triggers.listens_to(trigger)
    return f"{trigger['event']}:{trigger['tag']}" if "tag" in trigger else str(trigger["event"])
