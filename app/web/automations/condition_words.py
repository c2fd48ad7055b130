"""Writes conditions, and the fields that they name, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.lib import graphemes

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


def condition(given: Mapping[str, Any]) -> str:
    """Writes the condition in words, without "if".

    A condition with faults raises KeyError or similar.
    """
    for name, between in (("all", " and "), ("any", " or ")):
        if name in given:
            parts = [_inner(each) for each in given[name]]
            return between.join(parts)
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
    """Puts the text in quotes, and truncates it."""
    return f"“{cut(str(text), longest)}”"


def cut(text: str, longest: int) -> str:
    """Puts the text on one line, and truncates it with an ellipsis."""
    line = " ".join(text.split())
    return line if len(line) <= longest else f"{graphemes.cut(line, longest - 1).rstrip()}…"


def _inner(given: Mapping[str, Any]) -> str:
    return f"({condition(given)})" if len(given.get("all") or given.get("any") or ()) > 1 else condition(given)


def _comparison(given: Mapping[str, Any]) -> str:
    field, comparison = given["field"], given["is"]
    if field == "contact.tags" and comparison in _TAGS and "value" in given:
        return f"the contact {_TAGS[comparison]} {quoted(given['value'])}"
    if "days_ago" in given:
        days = given["days_ago"]
        return f"{value_of(field)} is {_AGO[comparison]} {days:,} {'day' if days == 1 else 'days'} ago"
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
