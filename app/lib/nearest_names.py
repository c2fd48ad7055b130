"""Nearest names: which of the names that there are somebody meant who wrote one that there is not."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

# Longer names are compared by their beginnings.
_LONGEST = 100


def nearest(name: object, known: Iterable[str]) -> str | None:
    """The known name that is most like `name`, whatever its case and separators; None if none is like it."""
    if not isinstance(name, str):
        return None
    by_form = {_form(each): each for each in reversed(list(known))}
    found = get_close_matches(_form(name[:_LONGEST]), by_form, 1)
    return by_form[found[0]] if found else None


def meant(name: object, known: Iterable[str]) -> str:
    """` Did you mean 'first_name'?`, to follow a sentence; empty if no known name is like it."""
    found = nearest(name, known)
    return f" Did you mean '{found}'?" if found else ""


def _form(name: str) -> str:
    return "".join(character for character in name.casefold() if character not in "_-. ")
