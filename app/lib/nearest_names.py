"""Nearest names: suggests the known name for an unknown one."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

# The most names that a message lists.
MOST_LISTED = 20
# Of a longer name, only the first characters are compared.
_LONGEST = 100


def nearest(name: object, known: Iterable[str], likeness: float = 0.6) -> str | None:
    """Returns the most similar known name, ignoring case and separators; None if none is similar enough.

    `likeness`: the least similarity, as a difflib ratio.
    """
    if not isinstance(name, str):
        return None
    by_form = {_form(each): each for each in reversed(list(known))}
    found = get_close_matches(_form(name[:_LONGEST]), by_form, 1, likeness)
    return by_form[found[0]] if found else None


def meant(name: object, known: Iterable[str]) -> str:
    """Returns ` Did you mean 'first_name'?`, to append to a sentence; "" if no known name is similar."""
    found = nearest(name, known)
    return f" Did you mean '{found}'?" if found else ""


def meant_or_listed(name: object, known: Iterable[str]) -> str:
    """Like `meant`; if none is similar, returns ` There are first_name, last_name.` and the number of others."""
    names = sorted(known)
    rest = f" and {len(names) - MOST_LISTED} more" if len(names) > MOST_LISTED else ""
    listed = f" There are {', '.join(names[:MOST_LISTED])}{rest}." if names else ""
    return meant(name, names) or listed


def _form(name: str) -> str:
    return "".join(character for character in name.casefold() if character not in "_-. ")
