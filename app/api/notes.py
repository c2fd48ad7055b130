"""Notes: texts by members and automations about a conversation, which only members see."""

from __future__ import annotations

from functools import partial
from typing import Any

from flask import Response
from marshmallow import fields, validate

from app.api.authentication import authorize, caller
from app.api.jobs import accepts_write
from app.api.lists import PageQuery, envelope, page_of
from app.api.parsing.blueprints import Blueprint
from app.api.responses import respond
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
        fields.String(),
        validate=validate.Length(max=MOST_MENTIONS),
        metadata=about("Members, who are notified."),
    )


@blueprint.route("/workspaces/<workspace>/conversations/<conversation_id>/notes", methods=["GET"])
@authorize(message_access.MESSAGES)
@blueprint.arguments(PageQuery)
@blueprint.response(200, envelope(NoteSchema, many=True))
def list_notes(query: dict[str, Any], conversation_id: str) -> Response:
    """List the notes of a conversation, newest first."""
    found = Conversation.find(caller().workspace_id, conversation_id)
    of_conversation = {**query, "conversation_id": found.id}
    return respond(200, page_of(partial(Note.newest, found.id), of_conversation, notes.represent))


@blueprint.route("/workspaces/<workspace>/conversations/<conversation_id>/notes", methods=["POST"])
@authorize(message_access.MESSAGES)
@blueprint.arguments(NoteCreate)
@accepts_write(NoteSchema, made=True)
def add_note(body: dict[str, Any], conversation_id: str) -> Response:
    """Add a note to a conversation, open or closed.

    Mentioned members are notified, except the note's author.
    """
    found = Conversation.find(caller().workspace_id, conversation_id)
    payload = body | {"conversation_id": found.id, "contact_id": found.contact_id}
    return accept("notes.create", payload, ids.new("nte"))


@blueprint.route("/workspaces/<workspace>/notes/<note_id>", methods=["GET"])
@authorize(message_access.MESSAGES)
@blueprint.response(200, envelope(NoteSchema))
def show_note(note_id: str) -> Response:
    """Show a note."""
    return respond(200, {"data": notes.represent(Note.find(caller().workspace_id, note_id))})


@blueprint.route("/workspaces/<workspace>/notes/<note_id>", methods=["DELETE"])
@authorize(message_access.MESSAGES)
@accepts_write()
def delete_note(note_id: str) -> Response:
    """Delete a note: your own or anybody else's."""
    return act("notes.delete", note_id)
