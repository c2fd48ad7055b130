"""Scheduled messages of a conversation: listing, changing, sending at once and deleting them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from flask import Blueprint, render_template
from werkzeug.wrappers import Response

from app.domain.conversations import messages
from app.domain.people import workspaces
from app.errors import Conflict, Fault, Invalid
from app.lib import clock
from app.models.conversations import Conversation, Message
from app.web import writes
from app.web.access import page, workspace_id
from app.web.forms import typed
from app.web.inbox import composers, inbox_pages, snooze_times
from app.web.inbox.form_answers import told, turned_down

blueprint = Blueprint("later_forms", __name__, url_prefix="/workspaces/<workspace>/inbox/<conversation_id>")

ANSWER = "conversations.answer"
# The delay of a message that is sent "now": its time must still be in the future when the write is accepted.
_AT_ONCE = timedelta(seconds=2)
_DONE = {"change": "It is changed.", "now": "It is being sent.", "delete": "It is deleted, and will not be sent."}


@blueprint.get("/later")
@page(ANSWER)
def show(conversation_id: str) -> str:
    """Renders the scheduled messages, for the script to insert when they change."""
    conversation = Conversation.find(workspace_id(), conversation_id)
    return render_template(
        "inbox/later.html",
        conversation=conversation,
        later=composers.later(conversation),
        people=inbox_pages.people(),
        most_characters=messages.MOST_CHARACTERS,
    )


@blueprint.post("/messages/<message_id>/later")
@page(ANSWER)
def change(conversation_id: str, message_id: str) -> Response:
    """Changes a scheduled message, sends it at once or deletes it, depending on the button.

    Redirects to the conversation, which shows the reason of a refusal. Responds to scripts with JSON.
    """
    conversation = Conversation.find(workspace_id(), conversation_id)
    message = Message.find(workspace_id(), message_id)
    given = typed("do", "text", "until", "zone")
    names = {"contact_id": message.contact_id, "conversation_id": message.conversation_id}
    try:
        body = _body(message, given)
        kind = "delete" if given["do"] == "delete" else "update"
        job = writes.submit(f"scheduled_messages.{kind}", names | body, message.id)
    except (Invalid, Conflict) as error:
        return turned_down(conversation, error)
    return told(conversation, _DONE[given["do"]] if job.is_finished else "")


def _body(message: Message, given: Mapping[str, str]) -> dict[str, Any]:
    """Returns the body of the write for the pressed button. Raises Invalid."""
    if given["do"] == "delete":
        return {}
    if given["do"] not in ("change", "now"):
        raise Invalid(Fault("/do", "There is no such change."))
    body: dict[str, Any] = {}
    if given["text"].strip() or not (message.attachments or message.template):
        messages.check(given["text"])
        body["text"] = given["text"]
    if given["do"] == "now":
        body["send_at"] = clock.now() + _AT_ONCE
    elif given["until"].strip():
        zone = snooze_times.zone_of(given["zone"], workspaces.find(workspace_id()).timezone)
        body["send_at"] = snooze_times.parse(given["until"], zone, clock.now())
    return body
