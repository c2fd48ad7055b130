"""Filters of lists, read from the address. A page ignores invalid filters, and says why."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from app.lib import ids
from app.web import lists

Reader = Callable[[str], Any]
Chip = tuple[str, str | datetime, str]
# Between these times, PostgreSQL and the calendars of all time zones can represent every time.
_FIRST, _LAST = datetime(2000, 1, 1, tzinfo=UTC), datetime(3000, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Filter:
    """A filter of a list. `read` parses its text; `choices` are the options of its select, if any."""

    label: str
    read: Reader = str
    choices: Sequence[tuple[str, str]] = ()

    def __call__(self, text: str) -> Any:
        """Parses the filter. Raises ValueError, with a sentence for the user."""
        return self.read(text)


@dataclass(frozen=True, slots=True)
class Filters:
    """The filters of a list, by name. `given`: all, as text. `values`: the valid filters, parsed.

    `readers`: the filters that the list has. `errors`: a sentence for each invalid filter.
    """

    readers: Mapping[str, Reader]
    given: Mapping[str, str]
    values: Mapping[str, Any]
    errors: Mapping[str, str]

    @property
    def links(self) -> dict[str, str]:
        """Returns the valid filters as text, for links."""
        return {name: text for name, text in self.given.items() if name in self.values}

    def shown(self, **offered: Sequence[tuple[str, str]] | None) -> dict[str, Any]:
        """Returns what a template needs of a list's filters: `chosen`, `choices` and `chips`.

        All readers must be Filters. `offered`: further options, by filter, such as the endpoints; None: too many.
        """
        kinds = {name: each for name, each in self.readers.items() if isinstance(each, Filter)}
        choices = {name: kind.choices for name, kind in kinds.items() if kind.choices} | offered
        named = {name: dict(pairs) for name, pairs in choices.items() if pairs}
        chips: list[Chip] = [
            (
                kinds[name].label,
                value if isinstance(value, datetime) else named.get(name, {}).get(self.given[name], self.given[name]),
                lists.address(**{name: None, "preset": None}),
            )
            for name, value in self.values.items()
        ]
        return {"chosen": self, "choices": choices, "chips": chips}


def read(readers: Mapping[str, Reader]) -> Filters:
    """Reads the filters in the address, each with the reader of its name."""
    given, values, errors = lists.filters(*readers), {}, {}
    for name, text in given.items():
        try:
            values[name] = readers[name](text)
        except ValueError as error:
            errors[name] = str(error)
    return Filters(readers, given, values, errors)


def one_of(choices: Collection[str]) -> Reader:
    """Returns a reader that raises ValueError for anything but the choices."""

    def reader(text: str) -> str:
        if text not in choices:
            raise ValueError("There is no such choice, so this filter is left out.")
        return text

    return reader


def choices(first_label: str, values: Collection[str]) -> list[tuple[str, str]]:
    """Returns the options of a select: an empty one with `first_label`, then the values."""
    return [("", first_label), *((value, value.replace("_", " ")) for value in values)]


def select(label: str, first_label: str, values: Collection[str]) -> Filter:
    """Returns a filter by one of the values. Its select begins with an empty option, `first_label`."""
    return Filter(label, one_of(values), choices(first_label, values))


def offered(
    found: Sequence[tuple[str, str]], most: int, first_label: str, chosen: str | None
) -> list[tuple[str, str]] | None:
    """Returns the options of a select: an empty one, then the found (value, label) pairs.

    None if more than `most` were found. `chosen` is included even if it was not found, as if deleted.
    """
    if len(found) > most:
        return None
    deleted = [(chosen, chosen)] if chosen and chosen not in dict(found) else []
    return [("", first_label), *found, *deleted]


def identifier(prefix: str) -> Reader:
    """Returns a reader that raises ValueError for anything but an identifier with the prefix."""

    def reader(text: str) -> str:
        if not ids.is_id(text, prefix):
            raise ValueError(f"An identifier of this kind begins with {prefix}_. This filter is left out.")
        return text

    return reader


def version(text: str) -> int:
    """Parses a version's number. Raises ValueError, with a sentence for the user."""
    if not (text.isascii() and text.isdigit() and 0 < len(text) < 10):
        raise ValueError("A version is a number. This filter is left out.")
    return int(text)


def step(text: str) -> str:
    """Returns a step's identifier. Raises ValueError, with a sentence for the user."""
    if not re.fullmatch("[A-Za-z0-9_-]{1,64}", text):
        raise ValueError("A step is named by letters, digits, - and _. This filter is left out.")
    return text


def status_code(text: str) -> int:
    """Parses an HTTP status code. Raises ValueError, with a sentence for the user."""
    if not (text.isascii() and text.isdigit() and len(text) == 3 and 100 <= int(text) <= 599):
        raise ValueError("A status code is a number from 100 to 599. This filter is left out.")
    return int(text)


def time(text: str) -> datetime:
    """Parses a time; without a zone, in UTC. Raises ValueError, with a sentence for the user."""
    try:
        read_time = datetime.fromisoformat(text)
        moment = (read_time if read_time.tzinfo else read_time.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError("Give a time such as 2026-11-21T10:00. This filter is left out.") from None
    if not _FIRST <= moment <= _LAST:
        raise ValueError("This time is too far away. The filter is left out.")
    return moment
