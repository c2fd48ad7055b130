"""What members do in a conversation: answer, add notes, assign, label, snooze, close, and send again."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import Any

from flask import Blueprint, flash, jsonify, redirect, request
from werkzeug.wrappers import Response

from app.domain.conversations import conversation_changes, conversations, messages, notes, recipients, viewers
from app.domain.people import workspaces
from app.errors import Conflict, Fault, Invalid
from app.lib import clock, ids, json, normalization
from app.models.conversations import Conversation, Message
from app.models.notes import Note
from app.web import uploads, writes
from app.web.access import page, viewer, workspace_id
from app.web.forms import Answer, errors_of, status_of, typed
from app.web.inbox import inbox_pages, snooze_times, views

blueprint = Blueprint("conversation_forms", __name__, url_prefix="/workspaces/<workspace>/inbox/<conversation_id>")

ANSWER = "conversations.answer"
_MENTION = re.compile(r"(?<![\w.@+-])@([\w.+-]*[\w+-])")


@blueprint.post("/write")
@page(ANSWER, most_bytes=uploads.MOST_FORM_BYTES)
def write(conversation_id: str) -> Answer:
    """Sends the answer, or adds the note, that the form has. A script gets it as JSON."""
    conversation = Conversation.find(workspace_id(), conversation_id)
    given = typed("kind", "text", "template", "language", "parameters")
    try:
        made = (_add_note if given["kind"] == "note" else _answer)(conversation, given)
    except (Invalid, Conflict) as error:
        errors = {name if name in ("template", "files") else "text": said for name, said in errors_of(error).items()}
        if _is_script():
            return _refused(error, errors)
        return inbox_pages.page_of(conversation, typed=given, errors=errors), status_of(error)
    return Response(json.dumps(made), mimetype="application/json") if _is_script() else _back(conversation)


@blueprint.post("/change")
@page(ANSWER)
def change(conversation_id: str) -> Answer:
    """Changes the conversation as the pressed button says."""
    conversation = Conversation.find(workspace_id(), conversation_id)
    given = typed("do", "assignee_id", "label", "until", "zone")
    try:
        wanted, done = _change(conversation, given)
        check = partial(conversation_changes.check, workspace_id(), wanted)
        payload = wanted | {"contact_id": conversation.contact_id}
        job = writes.submit("conversations.update", payload, conversation.id, check)
    except (Invalid, Conflict) as error:
        said = next(iter(errors_of(error).values()))
        if _is_script():
            return _refused(error, {"": said})
        flash(said, "error")
        return _back(conversation)
    if _is_script():
        return Response(status=204)
    if job.is_finished and done:
        flash(done, "good")
    return _back(conversation)


@blueprint.post("/messages/<message_id>/resend")
@page(ANSWER)
def resend(conversation_id: str, message_id: str) -> Answer:
    """Sends a message again that failed, or whose outcome is unknown."""
    conversation = Conversation.find(workspace_id(), conversation_id)
    message = Message.find(workspace_id(), message_id)
    writes.tell("It is being sent again.", "messages.resend", {"contact_id": message.contact_id}, message.id)
    return _back(conversation)


@blueprint.post("/notes/<note_id>/delete")
@page(ANSWER)
def delete_note(conversation_id: str, note_id: str) -> Answer:
    """Deletes a note."""
    conversation = Conversation.find(workspace_id(), conversation_id)
    writes.tell("The note is deleted.", "notes.delete", {}, Note.find(workspace_id(), note_id).id)
    return _back(conversation)


@blueprint.post("/typing")
@page(ANSWER)
def tell_typing(conversation_id: str) -> Answer:
    """Shows the other members, and the visitor of a web chat, that the viewer is typing."""
    conversation = Conversation.find(workspace_id(), conversation_id)
    conversations.tell_typing(conversation, {"type": "member", "id": viewer().actor_id})
    return Response(status=204)


@blueprint.post("/look")
@page(ANSWER)
def look(conversation_id: str) -> Answer:
    """Shows the other members for half a minute that the viewer looks at it, and returns who else does, as JSON."""
    conversation = Conversation.find(workspace_id(), conversation_id)
    me = {"type": "member", "id": viewer().actor_id}
    viewers.look(conversation, me)
    return jsonify([each["author"] for each in viewers.of(conversation) if each["author"] != me])


def _answer(conversation: Conversation, given: Mapping[str, str]) -> dict[str, Any]:
    """Queues the message of the form, and returns it as the API shows it. Raises Invalid, Conflict."""
    body: dict[str, Any] = {"conversation_id": conversation.id, "contact_id": conversation.contact_id}
    if given["template"]:
        body["template"] = _template(given)
    files = uploads.given("files")
    if given["text"].strip() or not (files or given["template"]):
        messages.check(given["text"])
        body["text"] = given["text"]
    recipients.check(workspace_id(), body)
    if files:
        body["attachments"] = [{"upload_id": upload_id} for upload_id in uploads.stored(files)]
    check = partial(recipients.check, workspace_id(), body)
    job = writes.submit("messages.create", body, ids.new("msg"), check)
    made = Message.get_or_none(Message.id == job.resource_id)
    return messages.represent(made) if made else {"id": job.resource_id}


def _add_note(conversation: Conversation, given: Mapping[str, str]) -> dict[str, Any]:
    """Adds the note of the form; @name mentions the members of that name. Raises Invalid, Conflict."""
    try:
        text = notes.read_text(given["text"])
    except ValueError as error:
        raise Invalid(Fault("/text", str(error))) from error
    named = {name.lower() for name in _MENTION.findall(text)}
    mentions = [member_id for member_id, name in inbox_pages.people().items() if name.lower() in named]
    mentions = mentions[: notes.MOST_MENTIONS]
    body = {"text": text, "mentions": mentions}
    body |= {"conversation_id": conversation.id, "contact_id": conversation.contact_id}
    job = writes.submit("notes.create", body, ids.new("nte"), partial(notes.check, conversation, mentions))
    return {"id": job.resource_id}


def _change(conversation: Conversation, given: Mapping[str, str]) -> tuple[dict[str, Any], str]:
    """The change that the pressed button stands for, and what the next page says of it. Raises Invalid."""
    do = given["do"]
    if do in ("close", "open"):
        closes = do == "close"
        return {
            "status": "closed" if closes else "open"
        }, f"The conversation is {'closed' if closes else 'open again'}."
    if do == "assign":
        return {"assignee_id": given["assignee_id"] or None}, "The conversation is assigned."
    if do in ("label", "unlabel"):
        try:
            label = normalization.label(given["label"])
        except ValueError as error:
            raise Invalid(Fault("/label", str(error))) from error
        others = {each for each in conversation.labels if each != label}
        return {"labels": sorted(others | {label} if do == "label" else others)}, "The labels are changed."
    if do == "snooze":
        zone = snooze_times.zone_of(given["zone"], workspaces.find(workspace_id()).timezone)
        until = snooze_times.read(given["until"], zone, clock.now())
        return {"snoozed_until": until}, "The conversation is snoozed. It wakes earlier if the contact writes."
    if do == "wake":
        return {"snoozed_until": None}, "The conversation is awake."
    if do == "read":
        return {"read": True}, ""
    raise Invalid(Fault("/do", "There is no such change."))


def _template(given: Mapping[str, str]) -> dict[str, Any]:
    """The template in the provider's form: its name, its language, and a parameter of its text for each line."""
    parameters = [{"type": "text", "text": line} for line in given["parameters"].split("\n") if line.strip()]
    components = [{"type": "body", "parameters": parameters}] if parameters else []
    language = {"code": given["language"].strip() or "en"}
    return {"name": given["template"].strip(), "language": language, "components": components}


def _back(conversation: Conversation) -> Response:
    """To the conversation, in the list that the form was sent from."""
    return redirect(views.asked_for().address("inbox_pages.show", conversation_id=conversation.id), 303)


def _refused(error: Invalid | Conflict, errors: dict[str, str]) -> Response:
    """The refusal for the script: a sentence for each field."""
    response = jsonify(errors=errors)
    response.status_code = status_of(error)
    return response


def _is_script() -> bool:
    return request.accept_mimetypes.best == "application/json"
