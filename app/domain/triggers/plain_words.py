"""Describes triggers, conditions, durations and the fields that they name, in plain words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.domain.triggers import event_kinds, timed_triggers
from app.lib import graphemes

Given = Mapping[str, Any]
# The names of automations, members, segments and channels, by identifier.
Names = Mapping[str, str]
LONGEST_TEXT = 160  # the most characters of a text that a picture shows

# Operators in words, to be followed by the value.
COMPARISONS: Mapping[str, str] = {
    "equals": "is",
    "not_equals": "is not",
    "contains": "contains",
    "not_contains": "does not contain",
    "exists": "is known",
    "not_exists": "is not known",
    "greater_than": "is greater than",
    "less_than": "is less than",
    "at_least": "is at least",
    "at_most": "is at most",
    "starts_with": "begins with",
    "has_word": "has the word",
    "matches": "matches",
    "one_of": "is one of",
}
# Operators in words for `days_ago`. They are reversed, because a later time is fewer days ago.
_AGO: Mapping[str, str] = {
    "greater_than": "less than",
    "less_than": "more than",
    "at_least": "at most",
    "at_most": "at least",
}
_TAGS: Mapping[str, str] = {"contains": "has the tag", "not_contains": "does not have the tag"}
_MOST_SHOWN = 5  # the most values of a list that are shown


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
    words = event_kinds.EVENTS.get(given["event"], str(given["event"]))
    return words.replace("a tag", f"the tag {quoted(given['tag'])}") if given.get("tag") else words


def duration(seconds: float, most: int = 3) -> str:
    """Writes a duration, with its `most` largest units: 1 day, 2 hours 30 minutes."""
    whole, parts = int(seconds), []
    for size, unit in ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second")):
        number, whole = divmod(whole, size)
        if number:
            parts.append(many(number, unit))
    return " ".join(parts[:most]) or "0 seconds"


def many(number: Any, one: str) -> str:
    """Writes a number with its noun, in the plural if necessary."""
    return f"{number:,} {one}" if number == 1 else f"{number:,} {one}s"


def named(names: Names, identifier: Any, unknown: str) -> str:
    """Returns the name of the identifier, in quotes; `unknown` if it has none."""
    return quoted(names[identifier], 60) if identifier in names else unknown


def condition(given: Mapping[str, Any]) -> str:
    """Writes the condition in words, without "if". Raises KeyError or similar if it has faults."""
    for name, between in (("all", " and "), ("any", " or ")):
        if name in given:
            return between.join(map(_inner, given[name]))
    if "not" in given:
        return f"it is not so that {_inner(given['not'])}"
    return _comparison(given)


def value_of(path: str) -> str:
    """Describes a field: `contact.email` as "the contact's email"."""
    root, _, rest = path.partition(".")
    parts = rest.split(".")
    if path == "trigger.event":
        return "the event"
    if path.startswith("trigger.event."):
        return f"the event's {_spaced(rest.removeprefix('event.').removeprefix('data.'))}"
    if path.startswith(("trigger.variables.", "run.variables.")):
        return f"the variable {quoted(rest.removeprefix('variables.'))}"
    if root == "steps":
        return (
            f"the {_spaced('.'.join(parts[1:]))} of {quoted(parts[0])}" if parts[1:] else f"the answer {quoted(rest)}"
        )
    if root in ("contact", "conversation", "run") and rest:
        return f"the {root}'s {_spaced(rest.removeprefix('custom_fields.'))}"
    return f"the {_spaced(path)}"


def quoted(text: Any, longest: int = 40) -> str:
    """Puts the text in quotes and on one line, cut to `longest` characters."""
    return f"“{cut(str(text), longest)}”"


def cut(text: str, longest: int) -> str:
    """Puts the text on one line. Cuts it to `longest` characters, the ellipsis included."""
    line = " ".join(text.split())
    return line if len(line) <= longest else f"{graphemes.cut(line, longest - 1).rstrip()}…"


def text_of(given: Given) -> str:
    """Returns the step's text, on one line and truncated; "" if it has none."""
    return cut(str(given.get("text") or ""), LONGEST_TEXT)


def shown(value: Any) -> str:
    """Returns any value on one line and truncated; text is in quotes."""
    return quoted(value, LONGEST_TEXT) if isinstance(value, str) else cut(str(value), LONGEST_TEXT)


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


def _inner(given: Mapping[str, Any]) -> str:
    return f"({condition(given)})" if len(given.get("all") or given.get("any") or ()) > 1 else condition(given)


def _comparison(given: Mapping[str, Any]) -> str:
    field, comparison = given["field"], given["is"]
    if field == "contact.tags" and comparison in _TAGS and "value" in given:
        return f"the contact {_TAGS[comparison]} {quoted(given['value'])}"
    if "days_ago" in given:
        days = given["days_ago"]
        return f"{value_of(field)} is {_AGO[comparison]} {many(days, 'day')} ago"
    words = f"{value_of(field)} {COMPARISONS[comparison]}"
    if "other" in given:
        return f"{words} {value_of(given['other'])}"
    return f"{words} {_value(given['value'])}" if "value" in given else words


def _value(value: Any) -> str:
    if isinstance(value, list):
        shown = [_value(each) for each in value[:_MOST_SHOWN]]
        return ", ".join(shown) + (f" and {len(value) - _MOST_SHOWN} more" if len(value) > _MOST_SHOWN else "")
    if isinstance(value, bool):
        return "true" if value else "false"
    return quoted(value) if isinstance(value, str) else str(value)


def _spaced(path: str) -> str:
    return cut(path.replace("_", " ").replace(".", " "), 60)
