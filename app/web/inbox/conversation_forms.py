"""Actions in a conversation: writing, scheduled messages, notes, changes, macros, presence.

Forms redirect to the conversation, which shows the reason of a refusal. Scripts get JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from flask import Blueprint, flash, jsonify, render_template, request
from werkzeug.wrappers import Response

from app.domain.conversations import conversation_changes, conversations, messages, viewers
from app.domain.macros import drafts
from app.domain.people import workspaces
from app.errors import Conflict, Fault, Invalid, NotFound
from app.lib import clock, json
from app.models.conversations import Conversation, Message
from app.models.macros import Macro
from app.models.notes import Note
from app.web import uploads, writes
from app.web.access import page, viewer, workspace_id
from app.web.forms import Answer, errors_of, is_script, status_of, typed
from app.web.inbox import compositions, inbox_pages, reply_pages, snooze_times
from app.web.inbox.form_answers import FIELDS, action_of, back, refused, told, turned_down
from app.web.inbox.threads import NewerReply

blueprint = Blueprint("conversation_forms", __name__, url_prefix="/workspaces/<workspace>/inbox/<conversation_id>")

ANSWER = "conversations.answer"
# What the page says after each change.
_DONE = {
    "assign": "The conversation is assigned.",
    "label": "The labels are changed.",
    "unlabel": "The labels are changed.",
    "snooze": "The conversation is snoozed. It wakes earlier if the contact writes.",
    "wake": "The conversation is awake.",
    "close": "The conversation is closed.",
    "open": "The conversation is open again.",
    "read": "",
}
# What the page says after each change of a scheduled message.
_DONE_LATER = {"change": "It is changed.", "now": "It is being sent.", "delete": "It is deleted, and will not be sent."}
# The delay of a message that is sent "now": its time must still be in the future when the write is accepted.
_AT_ONCE = timedelta(seconds=2)


@blueprint.post("/write")
@page(ANSWER, most_bytes=uploads.MOST_FORM_BYTES)
def write(conversation_id: str) -> Answer:
    """Sends the answer or adds the note in the form. If it is refused, shows the form again."""
    conversation = Conversation.find(workspace_id(), conversation_id)
    given = typed(*compositions.FIELDS)
    if "insert" in request.form:  # without the script: shows the form again, with the saved reply in it
        return inbox_pages.page_of(conversation, **reply_pages.inserted(conversation, given))
    write_it = compositions.add_note if given["kind"] == "note" else compositions.send
    try:
        made = write_it(conversation, given)
    except (Invalid, Conflict) as error:
        newer = error.replies if isinstance(error, NewerReply) else []
        errors = {name if name in ("template", "files") else "text": said for name, said in errors_of(error).items()}
        if is_script():
            return refused(error, errors, newer=[messages.represent(each) for each in newer])
        asks = {"typed": given, "errors": errors, "is_asked": bool(newer), "uploads": reply_pages.files_of_form()}
        return inbox_pages.page_of(conversation, **asks), status_of(error)
    if is_script():
        return Response(json.dumps(made), mimetype="application/json")
    if made.get("warning"):
        flash(made["warning"], "warn")
    return back(conversation)


@blueprint.post("/draft")
@page(ANSWER)
def save_draft(conversation_id: str) -> Response:
    """Saves the draft under the form's key. Returns `is_kept`, which is false for support staff."""
    conversation = Conversation.find(workspace_id(), conversation_id)
    given = typed("kind", "text", "key")
    member_id = viewer().member_id
    if member_id is None:
        return jsonify(is_kept=False)
    try:
        is_kept = drafts.save(conversation, member_id, given["kind"], given["text"], given["key"])
    except Invalid as error:
        return refused(error, errors_of(error))
    return jsonify(is_kept=is_kept)


@blueprint.post("/change")
@page(ANSWER)
def change(conversation_id: str) -> Answer:
    """Applies the change of the pressed button, one of those in `_DONE`."""
    conversation = Conversation.find(workspace_id(), conversation_id)
    try:
        action = action_of(typed(*FIELDS), _DONE)
        done, wanted = _DONE[action["do"]], conversation_changes.ACTIONS[action["do"]](conversation, action)
        payload = wanted | {"contact_id": conversation.contact_id}
        job = writes.submit("conversations.update", payload, conversation.id)
    except (Invalid, Conflict) as error:
        return turned_down(conversation, error)
    queued = writes.STILL_QUEUED if is_script() else ""  # for browsers, `submit` has flashed it
    return told(conversation, done if job.is_finished else queued)


@blueprint.post("/macro")
@page(ANSWER)
def apply_macro(conversation_id: str) -> Response:
    """Runs all actions of the macro, or none."""
    conversation = Conversation.find(workspace_id(), conversation_id)
    try:
        macro = _chosen_macro()
        payload = {"macro_id": macro.id, "contact_id": conversation.contact_id}
        job = writes.submit("macros.apply", payload, conversation.id)
    except (Invalid, Conflict) as error:
        return turned_down(conversation, error, "Nothing was done. ")
    return told(conversation, f"{macro.name} is applied." if job.is_finished else "")


@blueprint.get("/later")
@page(ANSWER)
def show_later(conversation_id: str) -> str:
    """Renders the scheduled messages, for the script to insert when they change."""
    conversation = Conversation.find(workspace_id(), conversation_id)
    return render_template(
        "inbox/later.html",
        conversation=conversation,
        later=inbox_pages.later(conversation),
        people=inbox_pages.people(),
        most_characters=messages.MOST_CHARACTERS,
    )


@blueprint.post("/messages/<message_id>/later")
@page(ANSWER)
def change_later(conversation_id: str, message_id: str) -> Response:
    """Changes a scheduled message, sends it at once or deletes it, depending on the button."""
    conversation = Conversation.find(workspace_id(), conversation_id)
    message = Message.find(workspace_id(), message_id)
    given = typed("do", "text", "until", "zone")
    names = {"contact_id": message.contact_id, "conversation_id": message.conversation_id}
    try:
        body = _later_body(message, given)
        kind = "delete" if given["do"] == "delete" else "update"
        job = writes.submit(f"scheduled_messages.{kind}", names | body, message.id)
    except (Invalid, Conflict) as error:
        return turned_down(conversation, error)
    return told(conversation, _DONE_LATER[given["do"]] if job.is_finished else "")


@blueprint.post("/messages/<message_id>/resend")
@page(ANSWER)
def resend(conversation_id: str, message_id: str) -> Answer:
    """Resends a message that failed or whose outcome is unknown."""
    conversation = Conversation.find(workspace_id(), conversation_id)
    message = Message.find(workspace_id(), message_id)
    writes.tell("It is being sent again.", "messages.resend", {"contact_id": message.contact_id}, message.id)
    return back(conversation)


@blueprint.post("/notes/<note_id>/delete")
@page(ANSWER)
def delete_note(conversation_id: str, note_id: str) -> Answer:
    """Deletes a note for everybody."""
    conversation = Conversation.find(workspace_id(), conversation_id)
    writes.tell("The note is deleted.", "notes.delete", {}, Note.find(workspace_id(), note_id).id)
    return back(conversation)


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
    """Shows other members for half a minute that the viewer is here. Returns other viewers as JSON."""
    conversation = Conversation.find(workspace_id(), conversation_id)
    me = {"type": "member", "id": viewer().actor_id}
    viewers.look(conversation, me)
    return jsonify([each["author"] for each in viewers.of(conversation) if each["author"] != me])


def _chosen_macro() -> Macro:
    try:
        return Macro.find(workspace_id(), typed("macro_id")["macro_id"])
    except NotFound as error:
        raise Invalid(Fault("/macro_id", "There is no such macro. It may have been deleted.")) from error


def _later_body(message: Message, given: Mapping[str, str]) -> dict[str, Any]:
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
