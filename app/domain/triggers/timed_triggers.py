"""Timed triggers: start runs at a time, such as before a booking, on a birthday or every Monday.

Triggers for contacts that enter a segment are timed too, because they look at the segment at intervals.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from app.lib import json

# The keys under which automations with timed triggers listen. No event has such a kind.
BEFORE, DATE, SCHEDULE = "time:before", "time:date", "time:schedule"
# The `every` of a schedule that starts runs for the contacts that entered the segment since the last look.
ENTRY = "entry"
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")

Trigger = Mapping[str, Any]


def is_timed(trigger: Trigger) -> bool:
    """Returns whether the trigger starts runs at a time, rather than on an event."""
    return "before" in trigger or "date" in trigger or is_scheduled(trigger)


def is_scheduled(trigger: Trigger) -> bool:
    """Returns whether the trigger is a schedule, which starts runs for the contacts of a segment."""
    return "segment_id" in trigger


def is_of_entries(trigger: Trigger) -> bool:
    """Returns whether the trigger is a schedule for the contacts that enter a segment."""
    return is_scheduled(trigger) and trigger.get("every") == ENTRY


def timed(triggers: Iterable[Trigger]) -> list[Trigger]:
    """Returns the timed triggers among `triggers`."""
    return [trigger for trigger in triggers if is_timed(trigger)]


def with_key(triggers: Iterable[Trigger], key: str) -> list[Trigger]:
    """Returns the timed triggers with that key. They differ only in their conditions."""
    return [trigger for trigger in timed(triggers) if key_of(trigger) == key]


def key_of(trigger: Trigger) -> str:
    """Returns a timed trigger's key: its JSON without the condition, which is judged when it is due."""
    return json.dumps({name: trigger[name] for name in sorted(trigger) if name != "if"}).decode()


def trigger_of(key: str) -> Trigger:
    """Returns the trigger that `key_of` made the key from, without its condition."""
    return dict(json.loads(key.encode()))


def listens_to(trigger: Trigger) -> str:
    """Returns the key under which an automation with that timed trigger listens."""
    if is_scheduled(trigger):
        return SCHEDULE
    return BEFORE if "before" in trigger else DATE


def heard_by(event_kind: str) -> str | None:
    """Returns the key of the timed triggers whose times an event of that kind may set, or None."""
    if event_kind.startswith("booking."):
        return BEFORE
    return DATE if event_kind in ("contact.created", "contact.updated", "contact.merged") else None


def concerned(triggers: Iterable[Trigger], event_kind: str) -> list[Trigger]:
    """Returns the timed triggers whose times an event of that kind may set."""
    heard = heard_by(event_kind)
    return [trigger for trigger in timed(triggers) if listens_to(trigger) == heard]
