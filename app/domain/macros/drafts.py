"""Drafts: texts that members have begun to write in conversations, kept until they are sent.

Saving a draft makes no job: only the member sees the draft, and it has no effects.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from app.database import rows, transaction
from app.domain.conversations import notes
from app.domain.jobs import idempotency_keys
from app.errors import Fault, Invalid
from app.models.contacts import Contact
from app.models.conversations import Conversation

DRAFT_KINDS = ("reply", "note")
MOST_CHARACTERS = notes.MOST_CHARACTERS
# The most drafts of a member that are kept. The oldest are deleted.
MOST_OF_MEMBER = 200
# How many sent forms a draft remembers. A draft that arrives after its form was sent is ignored.
_SENT_KEYS = 8


def save(conversation: Conversation, member_id: str, kind: str, text: str, key: str) -> bool:
    """Stores the text as the member's draft in the conversation, in place of an earlier one.

    `key`: the idempotency key of the form in which the text was typed. Returns False and stores nothing if that form
    was sent already, or if the contact was deleted. Safe to repeat. Raises Invalid.
    """
    if kind not in DRAFT_KINDS:
        raise Invalid(Fault("/kind", "There is no such kind of draft."))
    if len(text) > MOST_CHARACTERS or "\0" in text:
        raise Invalid(Fault("/text", f"A draft has at most {MOST_CHARACTERS:,} characters, none of them U+0000."))
    return _store(_SAVE, conversation, member_id, idempotency_keys.parse(key), kind, text)


def note_sent(conversation: Conversation, member_id: str, key: str) -> None:
    """Empties the member's draft if it was typed in the form with `key`, which is being sent.

    Keeps a draft that was typed in another form.
    """
    _store(_EMPTY, conversation, member_id, key)


def of_contact(contact: Contact) -> Iterator[dict[str, Any]]:
    """Yields the unsent texts in the contact's conversations, as an export shows them."""
    names = ("conversation_id", "member_id", "kind", "text", "updated_at")
    for found in rows(_OF_CONTACT, (contact.id,)):
        yield dict(zip(names, found, strict=True))


def erase(conversation_ids: Sequence[str]) -> None:
    """Deletes the drafts in these conversations."""
    rows("DELETE FROM drafts WHERE conversation_id = ANY(%s)", (list(conversation_ids),))


def _store(
    statement: str, conversation: Conversation, member_id: str, key: str, kind: str = "", text: str = ""
) -> bool:
    values: dict[str, Any] = {"id": conversation.id, "workspace_id": conversation.workspace_id, "member_id": member_id}
    values |= {"key": key, "kind": kind, "text": text, "sent_keys": _SENT_KEYS}
    with transaction():
        stored = rows(statement, values)
        if stored == [(True,)]:
            rows(_DROP_OLDEST, (member_id, member_id, MOST_OF_MEMBER))
    return bool(stored)


# Locks the contact, so that an erasure cannot miss a draft that is being stored.
_CONVERSATION = """
    FROM conversations JOIN contacts ON contacts.id = contact_id
    WHERE conversations.id = %(id)s AND conversations.workspace_id = %(workspace_id)s FOR KEY SHARE OF contacts
"""
_SAVE = f"""
    INSERT INTO drafts (member_id, conversation_id, workspace_id, kind, text, key)
    SELECT %(member_id)s, conversations.id, conversations.workspace_id, %(kind)s, %(text)s, %(key)s {_CONVERSATION}
    ON CONFLICT (member_id, conversation_id) DO UPDATE
        SET kind = excluded.kind, text = excluded.text, key = excluded.key, updated_at = now()
        WHERE NOT excluded.key = ANY(drafts.sent_keys)
    RETURNING xmax = 0
"""
_EMPTY = f"""
    INSERT INTO drafts (member_id, conversation_id, workspace_id, kind, text, key, sent_keys)
    SELECT %(member_id)s, conversations.id, conversations.workspace_id, 'reply', '', %(key)s, ARRAY[%(key)s]
    {_CONVERSATION}
    ON CONFLICT (member_id, conversation_id) DO UPDATE
        SET text = CASE WHEN drafts.key = excluded.key THEN '' ELSE drafts.text END, updated_at = now(),
            sent_keys = (array_remove(drafts.sent_keys, excluded.key) || excluded.key)
                [greatest(1, cardinality(array_remove(drafts.sent_keys, excluded.key)) + 2 - %(sent_keys)s):]
    RETURNING xmax = 0
"""
_DROP_OLDEST = """
    DELETE FROM drafts WHERE member_id = %s AND conversation_id IN (
        SELECT conversation_id FROM drafts WHERE member_id = %s ORDER BY updated_at DESC OFFSET %s)
"""
_OF_CONTACT = """
    SELECT conversation_id, member_id, kind, text, updated_at FROM drafts
    WHERE conversation_id = ANY(ARRAY(SELECT id FROM conversations WHERE contact_id = %s)) AND text <> ''
    ORDER BY conversation_id, member_id
"""
