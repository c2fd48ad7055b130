"""Plain names: text of any script as lower-case ASCII letters, digits and underscores."""

from __future__ import annotations

import re
import unicodedata

_GAP = re.compile(r"[^a-z0-9]+")


def plain(text: str, longest: int) -> str:
    """Returns the plain name, cut to `longest` characters; "" for a text without letters or digits.

    Accents are dropped. A letter of another script is spelt by the last word of its Unicode name, such as `zhe`.
    """
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    spelt = "".join(_spelt(each) for each in decomposed if not unicodedata.combining(each))
    return _GAP.sub("_", spelt).strip("_")[:longest].strip("_")


def _spelt(character: str) -> str:
    if character.isascii() or not character.isalnum():
        return character
    if (digit := unicodedata.digit(character, None)) is not None:
        return str(digit)
    # Examples: CYRILLIC SMALL LETTER ZHE, LATIN SMALL LETTER O WITH STROKE, CJK UNIFIED IDEOGRAPH-4E2D.
    name = unicodedata.name(character, "").partition(" WITH ")[0]
    return name.replace("-", " ").rpartition(" ")[2].lower()
