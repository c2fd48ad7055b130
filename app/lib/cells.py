"""Cells of CSV files: text that a spreadsheet must not run, and lists of tags in one cell."""

from __future__ import annotations

import re

# Where a spreadsheet may see a formula: at the beginning of a cell, behind a line break or tab, and behind a semicolon,
# at which many divide lines without regard to our quotes. Some take wide signs for narrow ones. A run of what may come
# before the sign is matched once and as a whole, so that the time stays linear.
_FORMULA = re.compile(r"(?<!['\s\ufeff\x22])(['\s\ufeff\x22]*+)(?=[=+\-@\uff1d\uff0b\uff0d\uff20])")
_NUMBER = r"[0-9][0-9 .,/()+\-]*\Z"
_BREAK = re.compile(r"[\t\r\n]")
_GUARDED_BREAK = re.compile(r"([\t\r\n])'")
# Apostrophes of the text itself get another one where `unguarded` would take them for ours.
_ALSO_GUARDED = re.compile(rf"'*[\t\r\n]|'+{_NUMBER}")
_ALSO_UNGUARDED = re.compile(rf"'(?:'*[\t\r\n]|'*{_NUMBER})")
# A tag in quotation marks (doubled inside of it) up to the next separator, or anything else up to that.
_TAG = re.compile(r'\s*"((?:[^"]|"")*)"\s*(?=[;,]|\Z)|([^;,]+)')


def guarded(text: str) -> str:
    """The text with an apostrophe before whatever a spreadsheet would run as a formula."""
    changed = _FORMULA.sub(_guard, text)
    return f"'{changed}" if _ALSO_GUARDED.match(text) and not _FORMULA.match(text) else changed


def unguarded(text: str) -> str:
    """The text that `guarded` was given. Also removes the apostrophe that keeps a number as text in spreadsheets."""
    changed = _FORMULA.sub(_unguard, text)
    return changed[1:] if _ALSO_UNGUARDED.match(text) and not _FORMULA.match(text) else changed


def tags(text: str) -> list[str]:
    """The tags that semicolons or commas separate, or Google's `:::`. Those in quotation marks may contain either."""
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
