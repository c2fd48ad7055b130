"""Nearest names: which of the names that there are somebody meant who wrote one that there is not."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

# The most names that a sentence lists.
MOST_LISTED = 20
# Longer names are compared by their beginnings.
_LONGEST = 100


def nearest(name: object, known: Iterable[str], likeness: float = 0.6) -> str | None:
    """The known name that is most like `name`, whatever its case and separators; None if none is so like it."""
    if not isinstance(name, str):
        return None
    by_form = {_form(each): each for each in reversed(list(known))}
    found = get_close_matches(_form(name[:_LONGEST]), by_form, 1, likeness)
    return by_form[found[0]] if found else None


def meant(name: object, known: Iterable[str]) -> str:
    """` Did you mean 'first_name'?`, to follow a sentence; empty if no known name is like it."""
    found = nearest(name, known)
    return f" Did you mean '{found}'?" if found else ""


def meant_or_listed(name: object, known: Iterable[str]) -> str:
    """Like `meant`; if no known name is like it, ` There are first_name, last_name.`, and how many more."""
    names = sorted(known)
    rest = f" and {len(names) - MOST_LISTED} more" if len(names) > MOST_LISTED else ""
    listed = f" There are {', '.join(names[:MOST_LISTED])}{rest}." if names else ""
    return meant(name, names) or listed


def _form(name: str) -> str:
    return "".join(character for character in name.casefold() if character not in "_-. ")
