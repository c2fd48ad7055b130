"""Searches of conversations: by the words of their messages, by their contacts and by ids."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from app.domain.insight import searches, word_searches
from app.models import message_searches
from app.models.contacts import Contact
from app.models.conversations import Conversation, Message

LONGEST = message_searches.LONGEST_SEARCH
# How many of the newest matching contacts are examined, and how many of them are shown.
CONTACTS_LOOKED_AT, MOST_CONTACTS = 200, 20
# How many characters of a text are shown before the first match, and in all.
_BEFORE, _LONGEST_LINE = 30, 160
_FIELDS = ("first_name", "last_name", "email", "phone", "external_id")

# A part of a text, and whether it matched the search.
Piece = tuple[str, bool]


@dataclass(frozen=True, slots=True)
class Hit:
    """A conversation that was found, and the line of text that shows why."""

    conversation: Conversation
    line: Sequence[Piece]


@dataclass(frozen=True, slots=True)
class Found:
    """Hits, each conversation once. `last_id`: the message to continue after; None at the end.

    `has_more_contacts`: more contacts match than are shown.
    """

    hits: list[Hit]
    last_id: str | None
    has_more_contacts: bool = False


def find(workspace_id: str, text: str, last_id: str | None, limit: int) -> Found:
    """Finds conversations by their messages' words, the latest message first.

    Examines up to `limit` messages after the message `last_id`. Without `last_id`, the result begins with conversations
    whose id is in the text, followed by conversations of contacts that have all its words, whole or in part. Costs at
    most one search of messages and two of contacts.
    """
    text = text[:LONGEST].replace("\0", "")
    words = words_of(text)
    first, has_more_contacts = ([], False) if last_id else _of_contacts(workspace_id, text, words)
    messages = message_searches.newest(workspace_id, {"q": text}, last_id, limit + 1)
    hits = {hit.conversation.id: hit for hit in first}
    for hit in _of_messages(workspace_id, messages[:limit], words):
        hits.setdefault(hit.conversation.id, hit)
    return Found(list(hits.values()), messages[limit - 1].id if len(messages) > limit else None, has_more_contacts)


def words_of(text: str) -> list[str]:
    """Returns the words of a search, in lower case."""
    return text.lower().split()


def marked(text: str, words: Sequence[str]) -> list[Piece]:
    """Returns the part of `text` around the first match, on one line, as (piece, is a match).

    Each of `words` matches at the beginning of a word of the text. If none does, as in scripts without spaces, they
    match anywhere.
    """
    line = " ".join(text.split())
    sought = "|".join(re.escape(each) for each in sorted(words, key=len, reverse=True))
    if not sought:
        return [(line[:_LONGEST_LINE], False)]
    at_beginning, anywhere = re.compile(rf"(?<!\w)(?:{sought})", re.I), re.compile(sought, re.I)
    pattern = at_beginning if at_beginning.search(line) else anywhere
    begin = match.start() if (match := pattern.search(line)) else 0
    start = max(0, begin - _BEFORE) if len(line) > _LONGEST_LINE else 0
    shown = ("…" if start else "") + line[start : start + _LONGEST_LINE]
    return list(_pieces(shown + ("…" if len(line) > start + _LONGEST_LINE else ""), pattern))


def _pieces(line: str, pattern: re.Pattern[str]) -> Iterator[Piece]:
    at = 0
    for match in pattern.finditer(line):
        if match.start() > at:
            yield line[at : match.start()], False
        yield match[0], True
        at = match.end()
    if at < len(line):
        yield line[at:], False


def _of_contacts(workspace_id: str, text: str, words: Sequence[str]) -> tuple[list[Hit], bool]:
    """Returns the hits for ids in the text and for contacts, and whether more contacts match."""
    named = searches.find(text, workspace_id).found
    talks = {each.id for each in named if each.type == "conversation"}
    if message_ids := [each.id for each in named if each.type == "message"]:
        found = Message.in_workspace(workspace_id).where(Message.id.in_(message_ids))
        talks |= {message.conversation_id for message in found}
    hits = [Hit(each, [(f"Conversation {each.id}", True)]) for each in _conversations(workspace_id, talks)]
    contacts = [each.id for each in named if each.type == "contact"]
    contacts += [each.parent for each in named if each.parent and each.type not in ("conversation", "message")]
    if sought := word_searches.words_of(text):
        matching = Contact.newest(workspace_id, {"words": sought}, None, CONTACTS_LOOKED_AT)
        contacts += [contact.id for contact in matching]
    latest = Conversation.latest_of_contacts(workspace_id, list(dict.fromkeys(contacts)))
    shown = [each for each in dict.fromkeys(contacts) if each in latest]
    by_id = {each.id: each for each in Contact.in_workspace(workspace_id).where(Contact.id.in_(shown[:MOST_CONTACTS]))}
    hits += [Hit(latest[each], _why(by_id[each], words)) for each in shown[:MOST_CONTACTS] if each in by_id]
    return hits, len(shown) > MOST_CONTACTS


def _why(contact: Contact, words: Sequence[str]) -> list[Piece]:
    """Returns the name and identifiers with one of the words, marked; if none, the name or the id."""
    name = " ".join(part for part in (contact.first_name, contact.last_name) if part)
    values = [name, *(getattr(contact, each) for each in _FIELDS[2:])]
    having = [value for value in values if value and any(word in value.lower() for word in words)]
    return marked(" · ".join(having) or name or contact.id, words)


def _of_messages(workspace_id: str, messages: Sequence[Message], words: Sequence[str]) -> Iterator[Hit]:
    talks = {each.id: each for each in _conversations(workspace_id, {each.conversation_id for each in messages})}
    for message in messages:
        if message.conversation_id in talks:
            yield Hit(talks[message.conversation_id], marked(message.text or "", words))


def _conversations(workspace_id: str, conversation_ids: set[str]) -> list[Conversation]:
    if not conversation_ids:
        return []
    return list(Conversation.in_workspace(workspace_id).where(Conversation.id.in_(list(conversation_ids))))
