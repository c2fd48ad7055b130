"""Messages: what is queued for a contact, what comes in, and how often a text was sent.

Whoever calls these functions has locked the contact.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Literal

from app.database import rows
from app.domain import contacts, conversations, replies, run_states
from app.domain.changes import Change
from app.domain.events import Recorder
from app.domain.units import Unit
from app.errors import Fault, Invalid
from app.lib import ids
from app.models.contacts import Contact
from app.models.conversations import Conversation, Message
from app.models.runs import Run

Status = Literal["received", "queued", "sending", "sent", "delivered", "read", "failed", "unknown"]

# The kind of event that goes with a status.
EVENTS = {
    "received": "message.received",
    "sent": "message.sent",
    "delivered": "message.delivered",
    "read": "message.read",
    "failed": "message.failed",
}
MOST_CHARACTERS = 4_096
# How long a sent text counts as recent.
RECENT = timedelta(minutes=5)


def prefetch(unit: Unit, runs: Sequence[Run]) -> None:
    """Reads what the steps of these runs need to send messages, in three statements for any number of runs."""
    conversations.prefetch(unit, runs)
    _count_sent(unit, {run.contact_id for run in runs})


def check(text: str) -> None:
    """Raises Invalid for a text that cannot be sent."""
    if not text.strip():
        raise Invalid(Fault("/text", "A message without text cannot be sent."))
    if len(text) > MOST_CHARACTERS:
        detail = f"A message has at most {MOST_CHARACTERS:,} characters; this one has {len(text):,}."
        raise Invalid(Fault("/text", detail))
    if "\0" in text:
        raise Invalid(Fault("/text", "A message cannot contain the character U+0000."))


def queue(
    change: Change,
    contact: Contact,
    conversation: Conversation,
    text: str,
    *,
    author: Mapping[str, str],
    template: Mapping[str, Any] | None = None,
    run_id: str | None = None,
) -> Message:
    """Queues a message to the contact, behind those that the conversation has. Raises Invalid."""
    check(text)
    unit = change.unit
    message = _made(unit, conversation, text, direction="out", status="queued", author=author, run_id=run_id)
    message.template = template
    unit.put(message)
    conversations.touch(unit, conversation)
    unit.notes[_sent(contact.id, text)] = recent(unit, contact.id, text) + 1
    return message


def by_member(change: Change, contact: Contact, conversation: Conversation, text: str, member_id: str) -> Message:
    """Queues a member's message. Until the conversation is closed it holds the contact's runs. Raises Invalid, Busy."""
    unit = change.unit
    reopened = conversations.reopen(change, contact, conversation)
    held = conversations.alter(unit, reopened, held_at=unit.now)
    _hold_again(unit, held)
    return queue(change, contact, held, text, author={"type": "member", "id": member_id})


def receive(
    change: Change,
    contact: Contact,
    channel_id: str,
    text: str | None,
    *,
    conversation: Conversation | None = None,
    **fields: Any,
) -> Message:
    """Stores a message from the contact, and gives it to the run that waits for it, if any. Raises Busy.

    It is in that `conversation`, or else in an open one on the channel. `fields` are further columns of the message.
    """
    unit = change.unit
    conversation = conversations.touch(unit, conversation or conversations.open_for(change, contact, channel_id))
    author = {"type": "contact", "id": contact.id}
    received = _made(unit, conversation, storable(text), direction="in", status="received", author=author)
    message = replies.take(unit, conversation, Message(**received.__data__ | fields))
    unit.put(message)
    tell(change.events, contact, conversation, message)
    return message


def storable(text: str | None) -> str | None:
    """The text without U+0000, which PostgreSQL does not store."""
    return text and text.replace("\0", "")


def tell(recorder: Recorder, contact: Contact, conversation: Conversation, message: Message) -> None:
    """Records the event that goes with the message's status, if there is one."""
    if (kind := EVENTS.get(message.status)) is not None:
        data = {
            "contact": contacts.represent(contact),
            "conversation": conversations.represent(conversation),
            "message": represent(message),
        }
        recorder.record(kind, data, contact.id)


def recent(unit: Unit, contact_id: str, text: str) -> int:
    """How often the text has been sent to the contact in the last five minutes."""
    if ("sent", contact_id) not in unit.notes:
        _count_sent(unit, {contact_id})
    return unit.notes.get(_sent(contact_id, text), 0)  # type: ignore[no-any-return]


def erase(message_ids: Sequence[str]) -> None:
    """Takes what was written out of these messages; when, in which direction and by whom stays."""
    rows(
        """
        UPDATE messages SET text = NULL, template = NULL, failure = CASE WHEN failure IS NOT NULL THEN
            json_build_object('code', failure->'code', 'detail', NULL) END
        WHERE id = ANY(%s)
        """,
        (list(message_ids),),
    )


def represent(message: Message) -> dict[str, Any]:
    """The message as the API shows it."""
    return {
        "id": message.id,
        "conversation_id": message.conversation_id,
        "direction": message.direction,
        "text": message.text,
        "status": message.status,
        "failure": message.failure,
        "author": message.author,
        "created_at": message.created_at,
    }


def _made(unit: Unit, conversation: Conversation, text: str | None, **fields: Any) -> Message:
    return Message(
        id=ids.new("msg"),
        workspace_id=conversation.workspace_id,
        conversation_id=conversation.id,
        contact_id=conversation.contact_id,
        channel_id=conversation.channel_id,
        text=text,
        created_at=unit.now,
        **fields,
    )


def _hold_again(unit: Unit, conversation: Conversation) -> None:
    """Holds runs, too, that were let go on after an earlier message of a member."""
    for run in conversations.runs_that(unit, conversation, "is_released"):
        if run.contact_id == conversation.contact_id and run.is_released:
            run_states.change(unit, run, is_released=False)


def _count_sent(unit: Unit, contact_ids: Iterable[str]) -> None:
    since = unit.now - RECENT
    counted = rows(
        """
        SELECT contact_id, md5(text), count(*) FROM messages
        WHERE contact_id = ANY(%s) AND id > %s AND direction = 'out' AND created_at > %s AND text IS NOT NULL
        GROUP BY contact_id, md5(text)
        """,
        (sorted(contact_ids), ids.around("msg", since, -1), since),
    )
    unit.notes |= {("sent", contact_id): True for contact_id in contact_ids}
    unit.notes |= {("sent", contact_id, digest): count for contact_id, digest, count in counted}


def _sent(contact_id: str, text: str) -> tuple[str, str, str]:
    return ("sent", contact_id, hashlib.md5(text.encode(), usedforsecurity=False).hexdigest())
