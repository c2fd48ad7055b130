"""Writes triggers, exits, goals and durations in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.domain.triggers import timed_triggers
from app.web.automations.condition_words import condition, quoted

Given = Mapping[str, Any]
# The names of automations, members, segments and channels, by identifier.
Names = Mapping[str, str]


def trigger(given: Given, names: Names) -> str:
    """Describes a trigger, exit or goal; if it has faults, only says that it is not complete."""
    try:
        words = _timed(given, names) if timed_triggers.is_timed(given) else event(given)
        if given.get("also_replies"):
            words += ", replies too"
        return words + (f", if {condition(given['if'])}" if "if" in given else "")
    except (KeyError, TypeError, ValueError, AttributeError):
        return "Something that is not complete"


def goal(given: Given) -> str:
    """Describes the goal of an automation, and the time within which it counts."""
    seconds = given.get("within_seconds")
    return trigger(given, {}) + (f", within {duration(seconds)}" if isinstance(seconds, int) else "")


def event(given: Given) -> str:
    """Describes the kind of event, with the tag that it is limited to."""
    words = EVENTS.get(given["event"], str(given["event"]))
    return words.replace("a tag", f"the tag {quoted(given['tag'])}") if given.get("tag") else words


def duration(seconds: float) -> str:
    """Writes a duration: 1 day, 2 hours 30 minutes."""
    whole, parts = int(seconds), []
    for size, unit in ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second")):
        number, whole = divmod(whole, size)
        if number:
            parts.append(f"{number:,} {unit}{'' if number == 1 else 's'}")
    return " ".join(parts[:3]) or "0 seconds"


def many(number: Any, one: str) -> str:
    """Writes a number with its noun, in the plural if necessary."""
    return f"{number:,} {one}" if number == 1 else f"{number:,} {one}s"


def named(names: Names, identifier: Any, unknown: str) -> str:
    """Returns the name of the identifier, in quotes; `unknown` if it has none."""
    return quoted(names[identifier], 60) if identifier in names else unknown


def _timed(given: Given, names: Names) -> str:
    if "before" in given:
        return f"{duration(given['seconds'])} before a booking begins"
    if "date" in given:
        name = str(given["date"]).removeprefix("contact.custom_fields.").replace("_", " ")
        days = given.get("offset_days", 0)
        moved = f"{many(abs(days), 'day')} {'before' if days < 0 else 'after'} " if days else "On "
        yearly = ", every year" if given.get("every") else ""
        return f"{moved}the day in {quoted(name)}, at {given['at']}{yearly}"
    segment = named(names, given["segment_id"], "a segment")
    if timed_triggers.is_of_entries(given):
        return f"The contact enters {segment}"
    on = given.get("on")
    day = f" on day {on}" if isinstance(on, int) else f" on {str(on).capitalize()}" if on else ""
    zone = f" ({given['timezone']})" if given.get("timezone") else ""
    return f"Every {given['every']}{day} at {given['at']}{zone}, for each contact in {segment}"


EVENTS: Mapping[str, str] = {
    "contact.created": "A contact is created",
    "contact.updated": "A contact changes",
    "tag.added": "The contact gets a tag",
    "tag.removed": "The contact loses a tag",
    "sale.recorded": "A sale is recorded",
    "booking.created": "A booking is made",
    "booking.cancelled": "A booking is cancelled",
    "message.received": "The contact writes",
    "conversation.opened": "A conversation is opened",
    "conversation.closed": "A conversation is closed",
    "conversation.assigned": "A conversation is assigned",
    "conversation.labelled": "A conversation gets or loses a label",
    "conversation.snoozed": "A conversation is snoozed",
    "conversation.woken": "A conversation wakes",
    "automation.started": "A run of an automation starts",
    "automation.completed": "A run of an automation is completed",
    "automation.failed": "A run of an automation fails",
    "automation.cancelled": "A run of an automation is cancelled",
}
