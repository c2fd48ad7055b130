"""Graphemes: what a reader sees as one character, such as a flag or a family emoji."""

from __future__ import annotations

import regex

_ONE = regex.compile(r"\X")


def split(text: str) -> list[str]:
    """Returns the graphemes of the text."""
    return list(text) if text.isascii() else _ONE.findall(text)


def cut(text: str, most: int) -> str:
    """Cuts the text to `most` characters. Splits no grapheme, unless the first one is longer."""
    if len(text) <= most:
        return text
    end = 0
    for found in _ONE.finditer(text):
        if found.end() > most:
            break
        end = found.end()
    return text[: end or most]
