"""Checks of a broadcast before it is accepted, allowing for what queued writes may still create."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.domain.broadcasts import broadcast_choices, broadcasts
from app.domain.channels import channels, media
from app.domain.conversations import sending_checks
from app.errors import Fault, Invalid, NotFound
from app.models.automations import Automation
from app.models.channels import Channel
from app.models.jobs import Job
from app.models.segments import Segment

_NO_CHANNEL = Fault("/channel_id", "There is no such channel in this workspace.")
_NO_AUTOMATION = Fault("/automation_id", "There is no such automation in this workspace.")


def check(workspace_id: str, payload: Mapping[str, Any]) -> None:
    """Raises Invalid for a time out of range, a missing resource or a message over a limit.

    Also for files that cannot be attached.
    """
    broadcasts.check_time(payload.get("send_at"))
    faults = [
        fault
        for name, model, kind, fault in (
            ("segment_id", Segment, "segment", broadcasts.NO_SEGMENT),
            ("channel_id", Channel, "channel", _NO_CHANNEL),
            ("automation_id", Automation, "automation", _NO_AUTOMATION),
        )
        if payload.get(name) is not None and not _is_there(workspace_id, model, kind, payload[name])
    ]
    if faults:
        raise Invalid(*faults)
    if "message" in payload:
        _check_message(workspace_id, payload["message"], payload.get("channel_id"))


def filter_of(workspace_id: str, payload: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the filter of the payload or its segment. Raises Invalid if there is no such segment."""
    condition = broadcast_choices.condition_of(workspace_id, payload)
    if condition is None:
        raise Invalid(broadcasts.NO_SEGMENT)
    return condition


def _is_there(workspace_id: str, model: Any, kind: str, resource_id: str) -> bool:
    """Returns whether the workspace has the resource, or a queued write will create it."""
    try:
        model.find(workspace_id, resource_id)
    except NotFound:
        return bool(Job.will_make(workspace_id, kind, resource_id))
    return True


def _check_message(workspace_id: str, message: Mapping[str, Any], channel_id: str | None) -> None:
    try:
        media.check_uploads(workspace_id, [each["upload_id"] for each in message.get("attachments", ())])
        text, channel = message.get("text") or "", channel_id and Channel.find(workspace_id, channel_id)
        if channel and "{" not in text:  # a rendered template's size depends on the contact
            files, offered = len(message.get("attachments", ())), len(message.get("buttons", ()))
            sending_checks.check_size(channels.kind_of(channel), text, files, offered)
    except Invalid as error:
        raise Invalid(*(Fault(f"/message{fault.pointer}", fault.detail) for fault in error.faults)) from error
    except NotFound:  # a queued write will create the channel
        return
