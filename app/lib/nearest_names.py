"""Nearest names: which of the names that there are somebody meant who wrote one that there is not."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from functools import lru_cache
from heapq import nlargest
from itertools import islice, pairwise

# The most names that a sentence lists.
MOST_LISTED = 20
# Longer names are compared by their beginnings.
_LONGEST = 100
# difflib may take a millisecond for two long names, and strangers choose both. So of many names only the first are
# looked at, and of these only those are compared that share most pairs of characters with the name.
_MOST_LOOKED_AT = 2_000
MOST_COMPARED = 10
_BITS = 256


def nearest(name: object, known: Iterable[str], likeness: float = 0.6) -> str | None:
    """The known name that is most like `name`, whatever its case and separators; None if no name is so like it."""
    if not isinstance(name, str):
        return None
    form, pairs = _shape(name[:_LONGEST])
    by_form: dict[str, str] = {}
    shared: dict[str, int] = {}
    for each in islice(known, _MOST_LOOKED_AT):
        its_form, its_pairs = _shape(each[:_LONGEST])
        if its_form not in by_form:
            by_form[its_form] = each
            shared[its_form] = 2 * (pairs & its_pairs).bit_count() - its_pairs.bit_count()
    compared = nlargest(MOST_COMPARED, by_form, shared.__getitem__)
    found = [form] if form in by_form else get_close_matches(form, compared, 1, likeness)
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


@lru_cache(4 * _MOST_LOOKED_AT)
def _shape(name: str) -> tuple[str, int]:
    """The name without its case and separators, and a set of bits: one for each pair of neighbours in it."""
    form = "".join(character for character in name.casefold() if character not in "_-. ")
    pairs = 0
    for one, other in pairwise(f" {form} "):
        pairs |= 1 << (ord(one) * 31 + ord(other)) % _BITS
    return form, pairs
