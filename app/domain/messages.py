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
from app.domain.units import Unit
from app.errors import Fault, Invalid
from app.lib import ids
from app.models.contacts import Contact
from app.models.conversations import Conversation, Message
from app.models.runs import Run

Status = Literal["received", "queued", "sending", "sent", "delivered", "read", "failed", "unknown"]

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


def create(change: Change) -> Effect:
    """Queues the message of the payload. Raises NotFound, Invalid, Conflict, Busy."""
    contact, conversation = recipients.find(change)
    actor_id = change.actor_id or ""
    if is_of_member := actor_id.startswith(("mem_", "vis_")):
        conversation = _hold(change.unit, conversation)
    upload_ids = recipients.upload_ids(change.payload)
    message = queue(
        change,
        contact,
        conversation,
        change.payload.get("text"),
        author={"type": "member" if is_of_member else "api", "id": actor_id},
        template=change.payload.get("template"),
        message_id=change.target,
        attachments=media.claim_uploads(change.unit, change.workspace_id, upload_ids, change.target),
    )
    return Effect("made", "message", message.id)


def by_member(change: Change, contact: Contact, conversation: Conversation, text: str, member_id: str) -> Message:
    """Queues a member's message. Until the conversation is closed it holds the contact's runs. Raises Invalid, Busy."""
    held = _hold(change.unit, conversations.reopen(change, contact, conversation))
    return queue(change, contact, held, text, author={"type": "member", "id": member_id})


def receive(change: Change, contact: Contact, channel_id: str, text: str) -> Message:
    """Stores a message from the contact, in an open conversation, and gives it to the run that waits for it, if any.

    Raises Busy.
    """
    unit = change.unit
    conversation = conversations.touch(unit, conversations.open_for(change, contact, channel_id))
    author = {"type": "contact", "id": contact.id}
    # PostgreSQL stores no U+0000.
    received = _made(unit, conversation, text.replace("\0", ""), direction="in", status="received", author=author)
    message = replies.take(unit, conversation, received)
    unit.put(message)
    data = {
        "contact": contacts.represent(contact),
        "conversation": conversations.represent(conversation),
        "message": represent(message),
    }
    change.events.record("message.received", data, contact.id)
    return message


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


def find(workspace_id: str, message_id: str) -> Message:
    """Raises NotFound."""
    return Message.get_in(workspace_id, message_id, "msg")


def represent(message: Message) -> dict[str, Any]:
    """The message as the API shows it."""
    return {
        "id": message.id,
        "conversation_id": message.conversation_id,
        "direction": message.direction,
        "text": message.text,
        "attachments": media.shown(message.attachments),
        "status": message.status,
        "failure": message.failure,
        "author": message.author,
        "provider_time": message.provider_time,
        "created_at": message.created_at,
    }


def _made(unit: Unit, conversation: Conversation, text: str, **fields: Any) -> Message:
    return Message(
        id=ids.new("msg"),
        workspace_id=conversation.workspace_id,
        conversation_id=conversation.id,
        contact_id=conversation.contact_id,
        text=text,
        created_at=unit.now,
        **fields,
    )


def _hold(unit: Unit, conversation: Conversation) -> Conversation:
    """Holds the contact's runs until the conversation is closed, those too that were let go on before."""
    conversation = conversations.alter(unit, conversation, held_at=unit.now)
    for run in conversations.runs_that(unit, conversation, "is_released"):
        if run.contact_id == conversation.contact_id and run.is_released:
            run_states.change(unit, run, is_released=False)
    return conversation


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
