"""Saved replies: texts that members insert by a shortcut while they write to a contact.

The texts of saved replies and macros are templates. Templates are checked when members write them, and rendered when
members use them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from textwrap import shorten
from typing import Any

from marshmallow import fields
from peewee import fn

from app import bounds
from app.domain.automations.definitions import known_names
from app.domain.automations.definitions.known_names import Names
from app.domain.channels import media
from app.domain.channels.media import AttachmentSchema
from app.domain.contacts import contacts
from app.domain.conversations import messages
from app.domain.people import members, workspaces
from app.domain.people.members import MemberSchema
from app.domain.work import audit
from app.domain.work.changes import Change, Effect
from app.domain.work.quotas import Quota
from app.domain.work.units import Unit
from app.errors import Conflict, Fault, Invalid, NotFound
from app.lib import json, templates
from app.lib.schemas import SPACES, ResponseBody, about, time
from app.lib.templates import Budget, Overspent, TemplateError
from app.models.contacts import Contact
from app.models.saved_replies import SavedReply

QUOTA = Quota(SavedReply, 1_000, "saved_replies")
LONGEST_SHORTCUT = 32
SHORTCUT = rf"^[^/\x00-\x1f\x7f-\x9f{SPACES}]+$"
SHORTCUT_FORM = f"a shortcut of 1 to {LONGEST_SHORTCUT} characters, without spaces, control characters and '/'"
LONGEST_TEXT = messages.MOST_CHARACTERS
# The most characters of a text that the audit log shows.
_MOST_AUDITED = 200
# The names that a template can use.
NAMES: Names = {"contact": known_names.CONTACT, "member": dict.fromkeys(MemberSchema().fields), **known_names.WORKSPACE}
_OVERSPENT = "The templates take more than {:,} steps together. Use fewer or shorter ones."


def create(change: Change) -> Effect:
    """Creates a saved reply.

    Raises Conflict above the QUOTA or for a taken shortcut, Invalid for files that cannot be attached, and Busy.
    """
    QUOTA.keep(change.workspace_id)
    SavedReply.insert(id=change.target, workspace_id=change.workspace_id, **_columns(change)).execute()
    audit.record(change, "saved_reply", change.target, _detail(change.payload, change.payload["shortcut"]))
    return Effect("made", "saved_reply", change.target)


def update(change: Change) -> Effect:
    """Changes the given fields. Detaches files that the saved reply no longer has.

    Raises NotFound, Conflict for a taken shortcut, Invalid for files that cannot be attached, and Busy.
    """
    reply = SavedReply.find(change.workspace_id, change.target)
    if "attachments" in change.payload:
        media.detach(change.unit, change.workspace_id, _files(reply) - set(upload_ids(change.payload)))
    SavedReply.update(**_columns(change), updated_at=fn.now()).where(SavedReply.id == reply.id).execute()
    audit.record(change, "saved_reply", reply.id, _detail(change.payload, reply.shortcut))
    return Effect("changed", "saved_reply", reply.id)


def delete(change: Change) -> Effect:
    """Deletes the saved reply. From then on, macros that use it are refused. Raises NotFound, Busy."""
    reply = SavedReply.find(change.workspace_id, change.target)
    media.detach(change.unit, change.workspace_id, _files(reply))
    SavedReply.delete().where(SavedReply.id == reply.id).execute()
    audit.record(change, "saved_reply", reply.id, {"shortcut": reply.shortcut})
    return Effect("deleted", "saved_reply", reply.id)


def check(workspace_id: str, body: Mapping[str, Any], *_: object) -> None:
    """Raises Invalid for a text that could never be sent, and for files that cannot be attached."""
    media.check_uploads(workspace_id, upload_ids(body))
    if found := list(text_faults(body["text"], "/text") if "text" in body else ()):
        raise Invalid(*found)


def text_faults(text: str, pointer: str) -> Iterator[Fault]:
    """Yields the faults of a text to send, which is a template."""
    if "{" not in text and not text.strip():
        yield Fault(pointer, "A message without text cannot be sent.")
    yield from template_faults(text, pointer)


def upload_ids(body: Mapping[str, Any]) -> list[str]:
    """Returns the uploads that the body names, each once."""
    return list(dict.fromkeys(each["upload_id"] for each in body.get("attachments", ())))


def read_shortcut(text: str) -> str:
    """Returns the text if it is a valid shortcut. Raises ValueError if not."""
    if len(text) > LONGEST_SHORTCUT or not re.fullmatch(SHORTCUT[1:-1], text):
        raise ValueError(f"Give {SHORTCUT_FORM}.")
    return text


def seen_by(unit: Unit, workspace_id: str, reply_id: str) -> SavedReply | None:
    """Returns the saved reply, read once per unit; None if there is none.

    It stays current: a write that changes saved replies never shares a unit with one that applies macros, or runs at
    the same time.
    """
    of_id = SavedReply.in_workspace(workspace_id).where(SavedReply.id == reply_id)
    found: SavedReply | None = unit.noted(("saved reply", workspace_id, reply_id), of_id.first)
    return found


class SavedReplySchema(ResponseBody):
    id = fields.String()
    shortcut = fields.String(metadata={"example": "refund"})
    text = fields.String(metadata={"example": "Hello {{ contact.first_name }}, your refund is on its way."})
    attachments = fields.List(fields.Nested(AttachmentSchema))
    created_at = time("When the saved reply was created.")
    updated_at = time("When it last changed.")


class RenderedReplySchema(SavedReplySchema):
    """A saved reply, with its text rendered for a contact."""

    rendered = fields.String(metadata=about("The text, filled in.", example="Hello Ada, your refund is on its way."))
    missing = fields.List(
        fields.String(),
        metadata=about("Names in the text that printed nothing.", example=["contact.last_name"]),
    )


def represent(reply: SavedReply) -> dict[str, Any]:
    """Returns the saved reply as the API shows it."""
    return SavedReplySchema.of(reply, attachments=media.shown(reply.attachments))


def render(reply: SavedReply, contact: Contact, member_id: str | None) -> dict[str, Any]:
    """Returns the saved reply with its text rendered for the contact and member.

    Raises Conflict, and Overloaded if too many texts are being rendered.
    """
    rendering = Rendering(contact, member_id)
    with bounds.alone(reply.workspace_id) if "{" in reply.text else nullcontext():
        rendered = rendering.render(reply.text)
    return {**represent(reply), "rendered": rendered, "missing": rendering.missing}


def template_faults(template: str, pointer: str) -> Iterator[Fault]:
    """Yields the faults of the template at `pointer` in the body."""
    yield from (Fault(pointer, detail) for detail in known_names.template_faults(template, NAMES))


class Rendering:
    """Renders templates for a contact, on behalf of the member `member_id` if given.

    All templates of one rendering share a budget. Raises Conflict if there is no such member.
    """

    def __init__(self, contact: Contact, member_id: str | None) -> None:
        self._budget = Budget(bounds.COMPUTING_PER_STEP.most)
        member = _member(contact.workspace_id, member_id) if member_id else {}
        workspace = {"timezone": workspaces.find(contact.workspace_id).timezone}
        named = {"contact": contacts.represent(contact), "member": member, "workspace": workspace}
        self._variables = json.loads(json.dumps(named))

    @property
    def missing(self) -> list[str]:
        """The names in the rendered templates that had no value, so that nothing was printed."""
        return list(self._budget.missing)

    def render(self, template: str) -> str:
        """Renders the template. Raises Conflict with the `code` `limit` or `template`."""
        try:
            return templates.render(template, self._variables, self._budget)
        except Overspent as error:
            bounds.COMPUTING_PER_STEP.reached()
            raise Conflict(_OVERSPENT.format(self._budget.most), code="limit") from error
        except TemplateError as error:
            raise Conflict(str(error), code="template") from error


def _columns(change: Change) -> dict[str, Any]:
    """Returns the columns that the payload sets, and gives its files to the saved reply.

    Raises Conflict, Invalid and Busy.
    """
    columns = dict(change.payload)
    if "shortcut" in columns:
        columns["folded"] = columns["shortcut"].casefold()
        _refuse_taken(change, columns["folded"])
    if "attachments" in columns:
        named = upload_ids(change.payload)
        columns["attachments"] = media.give(change.unit, change.workspace_id, named, change.target)
    return columns


def _refuse_taken(change: Change, folded: str) -> None:
    other = SavedReply.in_workspace(change.workspace_id).where(SavedReply.folded == folded).first()
    if other is not None and other.id != change.target:
        detail = f"Another saved reply has the shortcut '{other.shortcut}'."
        raise Conflict(detail, conflicting_saved_reply_id=other.id)


def _detail(payload: Mapping[str, Any], shortcut: str) -> dict[str, Any]:
    """Returns the audit entry's detail: shortcut, beginning of a new text, and number of new files."""
    shown: dict[str, Any] = {"shortcut": payload.get("shortcut", shortcut)}
    if "text" in payload:
        shown["text"] = shorten(payload["text"], _MOST_AUDITED, placeholder=" …")
    if "attachments" in payload:
        shown["files"] = len(payload["attachments"])
    return shown


def _files(reply: SavedReply) -> set[str]:
    return {each["id"] for each in reply.attachments}


def _member(workspace_id: str, member_id: str) -> dict[str, object]:
    try:
        return members.represent(members.find(workspace_id, member_id))
    except NotFound as error:
        raise Conflict("There is no such member in this workspace.", code="gone") from error
