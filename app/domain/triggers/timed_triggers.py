"""Timed triggers: those that start runs at a time, such as a day before a booking, and when that is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from app.lib import json
from app.models.bookings import Booking

# What an automation with such a trigger listens to; no event has this kind.
BEFORE = "before:booking"

Trigger = Mapping[str, Any]


def is_timed(trigger: Trigger) -> bool:
    """Whether it is a trigger by time, and not an event."""
    return "before" in trigger


def timed(triggers: Iterable[Trigger]) -> list[Trigger]:
    """Those of the triggers that are timed."""
    return [trigger for trigger in triggers if is_timed(trigger)]


def key_of(trigger: Trigger) -> str:
    """What tells it from other triggers: all of it but its condition, which is judged when its time comes."""
    return json.dumps({name: trigger[name] for name in sorted(trigger) if name != "if"}).decode()


def trigger_of(key: str) -> Trigger:
    """The trigger with that key, without its condition."""
    return dict(json.loads(key.encode()))


def heard_by(event_kind: str) -> set[str]:
    """What listens to events of that kind because of the times that they set."""
    return {BEFORE} if event_kind.startswith("booking.") else set()


def time_for(trigger: Trigger, booking: Booking) -> datetime:
    """When the trigger starts a run for the booking."""
    at: datetime = booking.starts_at - timedelta(seconds=trigger["seconds"])
    return at
