"""Nearest names: finds the known name that an unknown one probably misspells."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from functools import lru_cache
from heapq import nlargest
from itertools import islice, pairwise

# The most names that a message lists.
MOST_LISTED = 20
# Only the first characters of a longer name are compared.
_LONGEST = 100
# difflib takes up to a millisecond for two long names, and a caller may choose both. So only the first _MOST_LOOKED_AT
# names are considered. Of these, only the MOST_COMPARED that share the most pairs of characters with the given name are
# compared.
_MOST_LOOKED_AT = 2_000
MOST_COMPARED = 10
_BITS = 256


def nearest(name: object, known: Iterable[str], likeness: float = 0.6) -> str | None:
    """Returns the most similar known name, ignoring case and separators; None if none is similar.

    `likeness`: the least similarity, as a difflib ratio. Considers only the first _MOST_LOOKED_AT names.
    """
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
    """Returns ` Did you mean 'first_name'?`, to append to a sentence; "" if no known name is similar."""
    found = nearest(name, known)
    return f" Did you mean '{found}'?" if found else ""


def meant_or_listed(name: object, known: Iterable[str]) -> str:
    """Like `meant`. If no name is similar, returns a list such as ` There are first_name, last_name.`

    The list has up to MOST_LISTED names, and says how many others there are. Returns "" if there are no names.
    """
    names = sorted(known)
    rest = f" and {len(names) - MOST_LISTED} more" if len(names) > MOST_LISTED else ""
    listed = f" There are {', '.join(names[:MOST_LISTED])}{rest}." if names else ""
    return meant(name, names) or listed


@lru_cache(4 * _MOST_LOOKED_AT)
def _shape(name: str) -> tuple[str, int]:
    """Returns the folded name, and a bit set of its pairs of neighbouring characters."""
    form = "".join(character for character in name.casefold() if character not in "_-. ")
    pairs = 0
    for one, other in pairwise(f" {form} "):
        pairs |= 1 << (ord(one) * 31 + ord(other)) % _BITS
    return form, pairs
