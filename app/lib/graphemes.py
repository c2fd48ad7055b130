"""Graphemes: the signs that a reader sees, which may be several characters, such as a flag or a family."""

from __future__ import annotations

import regex

_ONE = regex.compile(r"\X")


def cut(text: str, most: int) -> str:
    """The first `most` characters at most, without a part of a grapheme unless the first alone is longer."""
    if len(text) <= most:
        return text
    end = 0
    for found in _ONE.finditer(text):
        if found.end() > most:
            break
        end = found.end()
    return text[: end or most]
