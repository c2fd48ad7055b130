"""Timed triggers: those that start runs at a time: before a booking, on a birthday, each Monday for a segment.

One for contacts that enter a segment is among them, because it looks at the segment again and again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from app.lib import json

# What an automation with such a trigger listens to; no event has such a kind.
BEFORE, DATE, SCHEDULE = "time:before", "time:date", "time:schedule"
# The `every` of a schedule that starts runs for contacts that have entered the segment since its last look.
ENTRY = "entry"
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")

Trigger = Mapping[str, Any]


def is_timed(trigger: Trigger) -> bool:
    """Whether it is a trigger by time, and not an event."""
    return "before" in trigger or "date" in trigger or is_scheduled(trigger)


def is_scheduled(trigger: Trigger) -> bool:
    """Whether it is a schedule, which starts runs for a segment."""
    return "segment_id" in trigger


def is_of_entries(trigger: Trigger) -> bool:
    """Whether it is a schedule that starts runs for contacts when they enter the segment."""
    return is_scheduled(trigger) and trigger.get("every") == ENTRY


def timed(triggers: Iterable[Trigger]) -> list[Trigger]:
    """Those of the triggers that are timed."""
    return [trigger for trigger in triggers if is_timed(trigger)]


def with_key(triggers: Iterable[Trigger], key: str) -> list[Trigger]:
    """Those of the triggers that are timed and have the key; they differ only in their conditions."""
    return [trigger for trigger in timed(triggers) if key_of(trigger) == key]


def key_of(trigger: Trigger) -> str:
    """What tells it from other triggers: all of it but its condition, which is judged when its time comes."""
    return json.dumps({name: trigger[name] for name in sorted(trigger) if name != "if"}).decode()


def trigger_of(key: str) -> Trigger:
    """The trigger with that key, without its condition."""
    return dict(json.loads(key.encode()))


def listens_to(trigger: Trigger) -> str:
    """What an automation with that timed trigger listens to."""
    if is_scheduled(trigger):
        return SCHEDULE
    return BEFORE if "before" in trigger else DATE


def heard_by(event_kind: str) -> str | None:
    """What listens to events of that kind because of the times that they set."""
    if event_kind.startswith("booking."):
        return BEFORE
    return DATE if event_kind in ("contact.created", "contact.updated", "contact.merged") else None


def concerned(triggers: Iterable[Trigger], event_kind: str) -> list[Trigger]:
    """Those of the triggers that are timed, and whose times events of that kind may set."""
    heard = heard_by(event_kind)
    return [trigger for trigger in timed(triggers) if listens_to(trigger) == heard]
