"""Plain names: text of any script as a name of small ASCII letters, digits and underscores."""

from __future__ import annotations

import re
import unicodedata

_GAP = re.compile(r"[^a-z0-9]+")


def plain(text: str, longest: int) -> str:
    """A name that is the same for the same text; empty if the text has no letters and digits.

    Accents are left out. A letter of another script is spelt by its name in Unicode, such as `zhe`.
    """
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    spelt = "".join(_spelt(each) for each in decomposed if not unicodedata.combining(each))
    return _GAP.sub("_", spelt).strip("_")[:longest].strip("_")


def _spelt(character: str) -> str:
    if character.isascii() or not character.isalnum():
        return character
    if (digit := unicodedata.digit(character, None)) is not None:
        return str(digit)
    # Such as CYRILLIC SMALL LETTER ZHE, LATIN SMALL LETTER O WITH STROKE, CJK UNIFIED IDEOGRAPH-4E2D.
    name = unicodedata.name(character, "").partition(" WITH ")[0]
    return name.replace("-", " ").rpartition(" ")[2].lower()
