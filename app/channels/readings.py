"""Readings: what members see of a message whose kind Bellhop does not know."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

# Members of providers' documents that hold words of a person. Polls and checklists have these in lists.
_WORDS = frozenset({"text", "body", "caption", "title", "question", "description"})
# Members about people and chats, whose titles nobody has written just now.
_OTHERS = frozenset({"chat", "from", "user", "sender_chat", "channel"})
_MOST_LINES = 50
_LONGEST_KIND = 50


def reading(kind: str, part: object) -> str:
    """The words in the part of a provider's document, one a line; if it has none, a sentence that names the kind."""
    words = "\n".join(islice(_words(part), _MOST_LINES))
    return words or f"A message that Bellhop cannot show ({kind[:_LONGEST_KIND]})"


def _words(part: object) -> Iterator[str]:
    inner: Iterator[tuple[str, Any]] = iter(())
    if isinstance(part, Mapping):
        inner = ((name, value) for name, value in part.items() if name not in _OTHERS)
    elif isinstance(part, list):
        inner = (("", value) for value in part)
    for name, value in inner:
        if isinstance(value, str):
            if name in _WORDS and value.strip():
                yield value
        else:
            yield from _words(value)
