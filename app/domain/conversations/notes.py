"""Notes: what members and automations write about a conversation, visible to members only.

Notes appear in no event, webhook or template. The live streams of members show notes; visitors' streams do not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from marshmallow import fields

from app.database import rows
from app.domain.conversations import conversations
from app.domain.conversations.messages import AuthorSchema
from app.domain.people import conversation_notifications, members
from app.domain.work import quotas
from app.domain.work.changes import Change, Effect
from app.domain.work.units import Unit
from app.errors import Conflict, Fault, Invalid, NotFound
from app.lib import ids
from app.lib.schemas import ResponseBody, about, time
from app.models import sets
from app.models.contacts import Contact
from app.models.conversations import Conversation
from app.models.notes import Note
from app.models.sets import Key

MOST_CHARACTERS = 10_000
MOST_MENTIONS = 20
MOST_NOTES = 1_000
TOO_MANY = f"A conversation has at most {MOST_NOTES:,} notes. Delete one first."


def needs(workspace_id: str, payload: Mapping[str, Any], note_id: str | None) -> list[Key]:
    """Returns the keys that a verb of this module reads from its unit."""
    if "conversation_id" not in payload:
        return [sets.key(Note, workspace_id, "id", str(note_id))]
    return [
        sets.key(Contact, workspace_id, "id", payload["contact_id"]),
        sets.key(Conversation, workspace_id, "id", payload["conversation_id"]),
    ]


def create(change: Change) -> Effect:
    """Adds the payload's note. Raises NotFound, Busy, and Conflict for too many notes."""
    payload = change.payload
    _, conversation = conversations.hold(change, payload["conversation_id"])
    if not has_room(change.unit, conversation):
        raise Conflict(TOO_MANY)
    mentions = list(dict.fromkeys(payload.get("mentions", ())))
    add(change.unit, conversation, payload["text"], change.author, mentions, change.target)
    return Effect("made", "note", change.target)


def delete(change: Change) -> Effect:
    """Deletes the note. Raises NotFound, Busy."""
    unit = change.unit
    note = unit.get(Note, change.workspace_id, "id", change.target)
    if note is None:
        raise NotFound
    unit.notes["notes", note.conversation_id] = _number(unit, note.conversation_id) - 1
    unit.drop(note)
    return Effect("deleted", "note", note.id)


def add(
    unit: Unit,
    conversation: Conversation,
    text: str,
    author: Mapping[str, str],
    mentions: Sequence[str] = (),
    note_id: str | None = None,
) -> Note:
    """Adds a note, and notifies the mentioned members but its author. The contact must be locked."""
    note = Note(
        id=note_id or ids.new("nte"),
        workspace_id=conversation.workspace_id,
        conversation_id=conversation.id,
        contact_id=conversation.contact_id,
        author=author,
        text=text,
        mentions=list(mentions),
        created_at=unit.now,
    )
    unit.notes["notes", conversation.id] = _number(unit, conversation.id) + 1
    unit.put(note)
    for member_id in sorted(set(mentions) - {author["id"]}):
        conversation_notifications.mentioned(unit, note, member_id)
    return note


def has_room(unit: Unit, conversation: Conversation) -> bool:
    """Whether the conversation can have another note. The contact must be locked."""
    return _number(unit, conversation.id) < MOST_NOTES


def check(workspace_id: str, payload: Mapping[str, Any], *_: object) -> None:
    """Raises Invalid for a mention of a non-member, and Conflict if there is no room for a note.

    A queued deletion of a note makes room.
    """
    mentions = payload.get("mentions", ())
    known = members.existing(workspace_id, mentions)
    unknown = [number for number, each in enumerate(mentions) if each not in known]
    if unknown:
        raise Invalid(*(Fault(f"/mentions/{number}", conversations.NO_MEMBER.detail) for number in unknown))
    if _stored(payload["conversation_id"]) >= MOST_NOTES and not quotas.is_deletion_queued(workspace_id, "notes"):
        raise Conflict(TOO_MANY)


def read_text(text: str) -> str:
    """Returns a note's text. Raises ValueError if it is too long, has U+0000 or only spaces."""
    if len(text) > MOST_CHARACTERS or not text.strip() or "\0" in text:
        raise ValueError(f"A note has 1 to {MOST_CHARACTERS:,} characters, none of them U+0000, and more than spaces.")
    return text


class NoteSchema(ResponseBody):
    id = fields.String()
    conversation_id = fields.String()
    text = fields.String(metadata={"example": "Called; wants the refund in cash."})
    mentions = fields.List(fields.String(), metadata=about("Members."))
    author = fields.Nested(AuthorSchema)
    created_at = time("When the note was added.")


represent = NoteSchema.of


def _number(unit: Unit, conversation_id: str) -> int:
    return unit.noted(("notes", conversation_id), partial(_stored, conversation_id))


def _stored(conversation_id: str) -> int:
    [(number,)] = rows("SELECT count(*) FROM notes WHERE conversation_id = %s", (conversation_id,))
    return int(number)
