"""Cells of CSV files: guards text that a spreadsheet would run, and splits lists of tags."""

from __future__ import annotations

import re

# Matches before a sign with which a formula may begin, with the quotes and spaces in front of it. `_guard` adds an
# apostrophe only at the start of a cell, after a semicolon, where many programs split lines despite our quotes, and
# after line breaks and tabs. Some programs take full-width signs for ASCII ones. The quotes and spaces are matched once
# and possessively, so that matching takes linear time.
_FORMULA = re.compile(r"(?<!['\s\ufeff\x22])(['\s\ufeff\x22]*+)(?=[=+\-@\uff1d\uff0b\uff0d\uff20])")
_NUMBER = r"[0-9][0-9 .,/()+\-]*\Z"
_BREAK = re.compile(r"[\t\r\n]")
_GUARDED_BREAK = re.compile(r"([\t\r\n])'")
# Apostrophes that belong to the text are doubled where `unguarded` would remove them.
_ALSO_GUARDED = re.compile(rf"'*[\t\r\n]|'+{_NUMBER}")
_ALSO_UNGUARDED = re.compile(rf"'(?:'*[\t\r\n]|'*{_NUMBER})")
# A quoted tag (quotes inside are doubled) before the next separator, or any other text up to it.
_TAG = re.compile(r'\s*"((?:[^"]|"")*)"\s*(?=[;,]|\Z)|([^;,]+)')


def guarded(text: str) -> str:
    """Puts an apostrophe before everything that a spreadsheet would run as a formula."""
    changed = _FORMULA.sub(_guard, text)
    return f"'{changed}" if _ALSO_GUARDED.match(text) and not _FORMULA.match(text) else changed


def unguarded(text: str) -> str:
    """Reverses `guarded`. Also removes the apostrophe with which spreadsheets mark a number as text."""
    changed = _FORMULA.sub(_unguard, text)
    return changed[1:] if _ALSO_UNGUARDED.match(text) and not _FORMULA.match(text) else changed


def tags(text: str) -> list[str]:
    """Splits tags at semicolons, commas or Google's `:::`. Quoted tags may contain these."""
    found = (quoted.replace('""', '"') if quoted else plain for quoted, plain in _TAG.findall(text.replace(":::", ";")))
    return [tag for tag in found if tag.strip()]


def _guard(found: re.Match[str]) -> str:
    run = _BREAK.sub(r"\g<0>'", found[1])
    return f"'{run}" if _begins_cell(found) else run


def _unguard(found: re.Match[str]) -> str:
    run = _GUARDED_BREAK.sub(r"\1", found[1])
    return run.removeprefix("'") if _begins_cell(found) else run


def _begins_cell(found: re.Match[str]) -> bool:
    return found.start() == 0 or found.string[found.start() - 1] == ";"
