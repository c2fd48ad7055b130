"""Compositions: turns the form below a conversation into a message, now or later, or a note."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import Any

from flask import request

from app.domain.bodies.pointers import refuse_bad_text
from app.domain.channels import media
from app.domain.conversations import messages, notes, recipients, scheduled_messages
from app.domain.jobs import idempotency_keys
from app.domain.macros import drafts
from app.domain.people import workspaces
from app.errors import Fault, Invalid, valid
from app.lib import clock, ids
from app.models.conversations import Conversation, Message
from app.models.notes import Note
from app.web import uploads, writes
from app.web.access import viewer, workspace_id
from app.web.forms import typed_all
from app.web.inbox import inbox_pages, snooze_times, threads

FIELDS = (
    *("kind", "text", "template", "language", "parameters"),
    *("later", "later_choice", "cancel_on_reply", "zone", "seen", "saved_reply_id"),
)
# The value of the button that sends at the typed time.
TYPED = "typed"
_UNKNOWN = "Nobody here is called {}. That name notified nobody."
_MENTION = re.compile(r"(?<![\w.@+-])@([\w.+-]*[\w+-])")


def send(conversation: Conversation, given: Mapping[str, str]) -> dict[str, Any]:
    """Queues or schedules the form's message, and empties the draft. Raises Invalid, Conflict.

    Returns the message as in the API; only its `id` if it is not stored yet.
    """
    body: dict[str, Any] = {"conversation_id": conversation.id, "contact_id": conversation.contact_id}
    if given["template"]:
        body["template"] = _template(given)
    if send_at := _send_at(given):
        body |= {"send_at": send_at, "cancel_on_reply": given["cancel_on_reply"] == "true"}
    files, saved = uploads.given("files"), upload_ids()
    if given["text"].strip() or not (files or saved or given["template"]):
        messages.check(given["text"])
        body["text"] = given["text"]
    body["attachments"] = [{"upload_id": upload_id} for upload_id in saved]
    refuse_bad_text(body)
    recipients.check(workspace_id(), body)
    if files:
        body["attachments"] += [{"upload_id": upload_id} for upload_id in uploads.stored(files)]

    def check() -> None:
        if "seen" in request.form and send_at is None:
            seen = given["seen"][: threads.LONGEST_SEEN].split()
            threads.refuse_unseen(conversation, seen, viewer().actor_id)

    kind = "messages.create" if send_at is None else "scheduled_messages.create"
    job = writes.submit(kind, body, ids.new("msg"), check, partial(_empty_draft, conversation))
    made = Message.get_or_none(Message.id == job.resource_id)
    return messages.represent(made) if made else {"id": job.resource_id}


def add_note(conversation: Conversation, given: Mapping[str, str]) -> dict[str, Any]:
    """Adds the form's note, and empties the draft. Raises Invalid, Conflict.

    `@name` mentions the members with that name. Returns the note as in the API, or only its `id` if it is not stored
    yet. Its `warning` is a sentence about mentioned names that nobody has, or None.
    """
    text = valid("/text", notes.read_text, given["text"])
    if uploads.given("files") or upload_ids():
        raise Invalid(Fault("/files", "A note has no files. Remove them, or send them as an answer."))
    people = inbox_pages.people()
    named = {name.lower(): name for name in _MENTION.findall(text)}
    mentions = [member_id for member_id, name in people.items() if name.lower() in named]
    mentions = mentions[: notes.MOST_MENTIONS]
    unknown = [name for folded, name in named.items() if folded not in {each.lower() for each in people.values()}]
    body = {"text": text, "mentions": mentions}
    body |= {"conversation_id": conversation.id, "contact_id": conversation.contact_id}
    job = writes.submit("notes.create", body, ids.new("nte"), store=partial(_empty_draft, conversation))
    made = Note.get_or_none(Note.id == job.resource_id)
    shown: dict[str, Any] = notes.represent(made) if made else {"id": job.resource_id}
    return shown | {"warning": _UNKNOWN.format(", ".join(f"@{name}" for name in unknown)) if unknown else None}


def upload_ids() -> list[str]:
    """Returns the ids of saved replies' files that go with the message, each once.

    Returns at most MOST_FILES + 1, so that validation refuses too many.
    """
    return list(dict.fromkeys(typed_all("upload_id")))[: media.MOST_FILES + 1]


def _empty_draft(conversation: Conversation, _: str) -> None:
    """Empties the viewer's draft when its text is accepted, so that sent text never comes back."""
    member_id = viewer().member_id
    if member_id is None:
        return
    try:
        key = idempotency_keys.parse(request.form.get("once", ""))
    except Invalid:
        return
    drafts.note_sent(conversation, member_id, key)


def _send_at(given: Mapping[str, str]) -> datetime | None:
    """Returns when to send the message; None for now. Raises Invalid."""
    chosen, words = given["later_choice"], given["later"].strip()
    if not (chosen or words):
        return None
    if chosen not in ("", TYPED):
        words = chosen
    zone = snooze_times.zone_of(given["zone"], workspaces.find(workspace_id()).timezone)
    send_at = snooze_times.parse(words, zone, clock.now())
    scheduled_messages.check(send_at)
    return send_at


def _template(given: Mapping[str, str]) -> dict[str, Any]:
    """Returns the template in the provider's format, with a text parameter for each line.

    A blank line is an empty parameter, unless only blank lines follow.
    """
    lines = given["parameters"].rstrip()
    parameters = [{"type": "text", "text": line.strip()} for line in lines.split("\n")] if lines else []
    components = [{"type": "body", "parameters": parameters}] if parameters else []
    language = {"code": given["language"].strip() or "en"}
    return {"name": given["template"].strip(), "language": language, "components": components}
