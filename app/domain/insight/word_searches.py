"""Word searches: contacts and messages of a workspace with all words of a text, in any order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.domain.contacts.contacts import SHORTEST_SEARCH
from app.models import message_searches
from app.models.contacts import Contact
from app.models.conversations import Message

MOST_FOUND = 20
LONGEST = 100
# The most words that are searched for: the longest of the text.
MOST_WORDS = 5


@dataclass(frozen=True, slots=True)
class Findings:
    """The newest contacts and messages, at most MOST_FOUND of each; `has_more`: there are others."""

    contacts: Sequence[Contact]
    messages: Sequence[Message]
    has_more: bool


def find(text: str, workspace_id: str, with_messages: bool) -> Findings:
    """Finds contacts by parts of names and identifiers, and messages by the beginnings of words."""
    words = words_of(text)
    if not words:
        return Findings([], [], False)
    contacts = Contact.newest(workspace_id, {"words": words}, None, MOST_FOUND + 1)
    messages: Sequence[Message] = ()
    if with_messages:
        messages = message_searches.newest(workspace_id, {"q": " ".join(words)}, None, MOST_FOUND + 1)
    has_more = max(len(contacts), len(messages)) > MOST_FOUND
    return Findings(contacts[:MOST_FOUND], messages[:MOST_FOUND], has_more)


def words_of(text: str) -> list[str]:
    """Returns the words to search for, without single letters or digits, which would find too much."""
    if "\0" in text:
        return []
    words = {word for word in text[:LONGEST].split() if len(word) >= SHORTEST_SEARCH}
    return sorted(words, key=lambda word: (-len(word), word))[:MOST_WORDS]
