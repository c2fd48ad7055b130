"""Readings: the texts that members see of filled-in forms and of messages of unknown kinds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from app.lib import json

# Members of providers' documents that hold text written by people. Polls and checklists hold them in lists.
_WORDS = frozenset({"text", "body", "caption", "title", "question", "description"})
# Members about people and chats. Their titles are not part of the message.
_OTHERS = frozenset({"chat", "from", "user", "sender_chat", "channel"})
_MOST_LINES = 50
_LONGEST_KIND = 50


def reading(kind: str, part: object) -> str:
    """Returns the texts in the message's part, one a line; if it has none, a sentence with the kind."""
    words = "\n".join(islice(_words(part), _MOST_LINES))
    return words or f"A message that Bellhop cannot show ({kind[:_LONGEST_KIND]})"


def answers_in(said: object) -> dict[str, Any] | None:
    """Parses the answers of a filled-in form; None if they are not a JSON object."""
    try:
        answers = json.loads(said) if isinstance(said, str) else said
    except ValueError:
        return None
    return answers if isinstance(answers, dict) else None


def lines_of(answers: Mapping[str, Any]) -> list[str]:
    """Returns the answers as members read them, one line each."""
    texts = {name: value if isinstance(value, str) else json.dumps(value).decode() for name, value in answers.items()}
    return [f"{name}: {text}" for name, text in texts.items()]


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
