"""Notes: texts by members and automations about a conversation, which only members see."""

from __future__ import annotations

from functools import partial
from typing import Any

from flask import Response
from marshmallow import fields, validate

from app.api.authentication import caller
from app.api.lists import PageQuery, page_of
from app.api.parsing.blueprints import Blueprint
from app.api.routes import Document, accepts, reads, shows
from app.api.writes import accept, act
from app.domain.conversations import notes
from app.domain.conversations.notes import MOST_CHARACTERS, MOST_MENTIONS, NoteSchema
from app.domain.people import message_access
from app.lib import ids
from app.lib.schemas import NOT_BLANK, Formatted, RequestBody, about
from app.models.conversations import Conversation
from app.models.notes import Note

blueprint = Blueprint("notes", __name__, description="Notes of conversations, which contacts never see.")


class NoteCreate(RequestBody):
    """A note to add. `mentions`: the identifiers of the members to notify."""

    text = Formatted(
        notes.read_text,
        required=True,
        metadata={
            "minLength": 1,
            "maxLength": MOST_CHARACTERS,
            "pattern": NOT_BLANK,
            "example": "Called; wants the refund in cash.",
        },
    )
    mentions = fields.List(
        fields.String(), validate=validate.Length(max=MOST_MENTIONS), metadata=about("Members, who are notified.")
    )


@reads(blueprint, "/conversations/<conversation_id>/notes", message_access.MESSAGES, NoteSchema, PageQuery)
def list_notes(query: dict[str, Any], conversation_id: str) -> Document:
    """List the notes of a conversation, newest first."""
    found = Conversation.find(caller().workspace_id, conversation_id)
    return page_of(partial(Note.newest, found.id), query, notes.represent)


@accepts(
    blueprint, "POST /conversations/<conversation_id>/notes", message_access.MESSAGES, NoteSchema, NoteCreate, made=True
)
def add_note(body: dict[str, Any], conversation_id: str) -> Response:
    """Add a note to a conversation, open or closed.

    Mentioned members are notified, except the note's author.
    """
    found = Conversation.find(caller().workspace_id, conversation_id)
    payload = body | {"conversation_id": found.id, "contact_id": found.contact_id}
    return accept("notes.create", payload, ids.new("nte"))


shows(blueprint, "note", message_access.MESSAGES, NoteSchema, "Show a note.")


@accepts(blueprint, "DELETE /notes/<note_id>", message_access.MESSAGES, None)
def delete_note(note_id: str) -> Response:
    """Delete a note: your own or anybody else's."""
    return act("notes.delete", note_id)
