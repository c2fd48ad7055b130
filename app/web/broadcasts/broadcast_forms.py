"""Forms of broadcasts, and the API body that a form stands for."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count
from typing import Any
from zoneinfo import ZoneInfo

from app.domain.automations.definitions import known_names
from app.domain.bodies.broadcasts import BroadcastCreate
from app.domain.broadcasts import broadcasts
from app.domain.channels import media
from app.domain.people import workspaces
from app.errors import Conflict, Fault, Invalid
from app.lib import json, time_zones
from app.models.broadcasts import Broadcast
from app.web import filters, uploads
from app.web.access import workspace_id
from app.web.forms import checked, typed, whole
from app.web.forms import errors_of as sentences_of

FIELDS = (
    *("name", "audience", "text", "answers", "template", "automation_id", "channel_id"),
    *("send_at", "time_zone", "per_second", "canary"),
)
EVERYBODY = "everybody"
# The placeholders that a text can contain, such as `{{ contact.first_name }}`.
NAMES = [f"{{{{ contact.{name} }}}}" for name in known_names.CONTACT_FIELDS]
# Why a contact is skipped or left out, in the page's words.
REASONS: Mapping[str, str] = {
    "opted_out": "They have opted out.",
    "no_channel": "No connected channel can reach them.",
    "window_closed": "Their channel takes only a template now.",
    "duplicate": "Another contact with the same address has got it.",
    "erased": "They were deleted, or merged into another contact.",
    "limit": "They were sent the same text too often within five minutes.",
    "template": "The text is empty or too long for them, or cannot be made.",
    "reentry": "They may not enter the automation again.",
    "error": "A fault of ours. It is in the logs.",
}


@dataclass
class Given:
    """The form's fields. `kept`: the message's files; `sample`: the contact of the preview."""

    fields: dict[str, str] = field(default_factory=lambda: {**dict.fromkeys(FIELDS, ""), "canary": "true"})
    kept: list[str] = field(default_factory=list)
    sample: str = ""

    @property
    def digest(self) -> str:
        """A hash of the fields that affect the broadcast, to detect changes since its preview."""
        counts = [*(self.fields[name].strip() for name in FIELDS), *sorted(self.kept)]
        return hashlib.sha256(json.dumps(counts)).hexdigest()


def given() -> Given:
    """Reads the submitted form. `keep_files` adds its new files."""
    return Given(typed(*FIELDS), uploads.kept(), typed("sample")["sample"])


def given_of(broadcast: Broadcast) -> Given:
    """Returns the form filled in with a scheduled broadcast."""
    message = broadcast.message or {}
    fields = {
        "name": broadcast.name,
        "audience": broadcast.segment_id or EVERYBODY,
        "text": message.get("text") or "",
        "answers": "\n".join(button["label"] for button in message.get("buttons", ())),
        "template": json.dumps(message["template"]).decode() if message.get("template") else "",
        "automation_id": broadcast.automation_id or "",
        "channel_id": broadcast.channel_id or "",
        "send_at": _typed_time(broadcast.send_at) if broadcast.send_at else "",
        "time_zone": broadcast.time_zone,
        "per_second": str(broadcast.per_second or ""),
        "canary": "true" if broadcast.canary else "",
    }
    return Given(fields, [each["id"] for each in message.get("attachments", ())])


def keep_files(given: Given) -> None:
    """Stores newly added files and adds them to the form. Raises Invalid, TooMuchStored, Unavailable."""
    added = uploads.given("files")
    if len(given.kept) + len(added) > media.MOST_FILES:
        raise Invalid(Fault("/files", f"A message has at most {media.MOST_FILES} files."))
    given.kept += uploads.stored(added)


def answers_of(given: Given) -> list[str]:
    """Returns the labels of the buttons: the lines of the form's `answers` that are not blank."""
    return [line.strip() for line in given.fields["answers"].splitlines() if line.strip()]


def body_of(given: Given, broadcast: Broadcast | None = None) -> dict[str, Any]:
    """Returns the API body that the form stands for, validated. Raises Invalid.

    Keeps what the form cannot show of a scheduled broadcast: its own filter, the identifiers of its buttons, and the
    seconds of its time.
    """
    fields = given.fields
    body: dict[str, Any] = {"name": fields["name"], "canary": fields["canary"] == "true"}
    own_filter = broadcast.filter if broadcast and broadcast.segment_id is None else None
    if fields["audience"] == EVERYBODY:
        body["filter"] = own_filter or {"field": "contact.created_at", "is": "exists"}
    elif fields["audience"]:
        body["segment_id"] = fields["audience"]
    else:
        raise Invalid(Fault("/segment_id", "Choose who gets it."))
    message = _message(given, broadcast)
    if fields["automation_id"]:
        if message:
            raise Invalid(Fault("/automation_id", "Write a message or choose an automation, not both."))
        body["automation_id"] = fields["automation_id"]
    else:
        body["message"] = message
    body |= {name: fields[name] for name in ("channel_id", "time_zone") if fields[name]}
    if fields["per_second"].strip():
        body["per_second"] = whole(fields["per_second"])
    if text := fields["send_at"].strip():
        body["send_at"] = _start(text, broadcast).isoformat()
    found = checked(BroadcastCreate(), body)
    broadcasts.check(workspace_id(), found)
    return found


def zone() -> ZoneInfo:
    """Returns the workspace's time zone, in which start times are typed; UTC if it has none."""
    return time_zones.first_known(workspaces.find(workspace_id()).timezone)


def errors_of(error: Invalid | Conflict) -> dict[str, str]:
    """Returns the error messages by field of the form, whose names differ from the body's."""
    if isinstance(error, Conflict):
        return sentences_of(error)
    fields = {"filter": "audience", "segment_id": "audience", "message": "text"}
    of_message = {"template": "template", "buttons": "answers", "attachments": "files"}
    found: dict[str, str] = {}
    for fault in error.faults:
        top, _, inner = fault.pointer.removeprefix("/").partition("/")
        name = of_message.get(inner.partition("/")[0], "text")
        found.setdefault(name if top == "message" else fields.get(top, top), fault.detail)
    return found


def _start(text: str, broadcast: Broadcast | None) -> datetime:
    """Returns the typed start; if unchanged, the broadcast's own, seconds included. Raises Invalid."""
    own: datetime | None = broadcast.send_at if broadcast else None
    if own is not None and text == _typed_time(own):
        return own
    try:
        given = datetime.fromisoformat(text)
        moment = given if given.tzinfo else time_zones.instant_of(given.date(), given.time(), zone())
        return filters.time(moment.isoformat())
    except (ValueError, OverflowError):
        raise Invalid(Fault("/send_at", "Give a time such as 2026-11-21T10:00.")) from None


def _typed_time(moment: datetime) -> str:
    return moment.astimezone(zone()).replace(tzinfo=None).isoformat(timespec="minutes")


def _message(given: Given, broadcast: Broadcast | None) -> dict[str, Any]:
    fields = given.fields
    message: dict[str, Any] = {"text": fields["text"]} if fields["text"] else {}
    if labels := answers_of(given):
        message["buttons"] = _buttons(labels, broadcast)
    if fields["template"].strip():
        try:
            message["template"] = json.loads(fields["template"])
        except ValueError as error:
            raise Invalid(
                Fault("/message/template", "This is not JSON. Give the template as its provider has it.")
            ) from error
    if given.kept:
        message["attachments"] = [{"upload_id": each} for each in given.kept]
    return message


def _buttons(labels: Sequence[str], broadcast: Broadcast | None) -> list[dict[str, str]]:
    """Returns a button for each label. An existing label keeps its identifier."""
    message = (broadcast and broadcast.message) or {}
    had = {each["label"]: each["id"] for each in message.get("buttons", ())}
    free = (each for number in count(1) if (each := f"answer-{number}") not in had.values())
    return [{"id": had.get(label) or next(free), "label": label} for label in labels]
