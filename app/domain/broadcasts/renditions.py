"""Renditions: a broadcast's message as a contact would get it on each kind of channel.

They are computed without locking any rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from app.channels.base import ChannelKind
from app.channels.kinds import KINDS
from app.database import now
from app.domain.broadcasts import ways
from app.domain.broadcasts.ways import Way
from app.domain.conversations import messages, recipients, sending_checks
from app.errors import Invalid
from app.models.channels import Channel
from app.models.contacts import Contact
from app.models.conversations import Conversation

_NO_TEXT = "This channel has no templates, and the message has no text."


@dataclass(frozen=True, slots=True)
class Rendition:
    """The message on one kind of channel.

    `fault`: why the contact would not get it there; None if they would. `is_chosen`: whether the broadcast uses this
    kind for the contact. `is_template`: whether the template is sent in place of text and files. `open_until`: when the
    contact's window closes; None if it is closed, or the kind has none.
    """

    kind: ChannelKind
    channel: Channel
    is_chosen: bool
    is_template: bool
    open_until: datetime | None
    fault: str | None


def of(message: Mapping[str, Any], text: str | None, contact: Contact, channel_id: str | None) -> list[Rendition]:
    """Returns the message on each kind of connected channel, or on `channel_id` only.

    The chosen kind comes first. `text`: already rendered. Takes three statements, however many channels there are.
    """
    connected = recipients.connected(contact.workspace_id)
    offered = {each.id: each for each in connected if channel_id in (None, each.id)}
    if not offered:
        return []
    latest, at = Conversation.latest_on_each(contact.id, offered), now()
    chosen = _chosen(contact, latest, offered)
    found = []
    for name in sorted({each.kind for each in offered.values()}, key=list(KINDS).index):
        some = {each.id: each for each in offered.values() if each.kind == name}
        way = ways.find(contact, next((each for each in latest if each.channel_id in some), None), some)
        talk = way.conversation if way and KINDS[name].window else None
        found.append(
            Rendition(
                KINDS[name],
                way.channel if way else next(iter(some.values())),
                is_chosen=chosen is not None and chosen.kind == name,
                is_template=KINDS[name].sends_templates and bool(message.get("template")),
                open_until=talk.window_ends_at if talk and talk.is_window_open(at) else None,
                fault=_fault(KINDS[name], way, contact, message, text, at),
            )
        )
    return sorted(found, key=lambda each: not each.is_chosen)


def _chosen(contact: Contact, latest: list[Conversation], offered: Mapping[str, Channel]) -> Channel | None:
    """Returns the channel that the broadcast uses for the contact, even if nothing can be sent there."""
    if latest:
        return offered[latest[0].channel_id]
    way = ways.find(contact, None, offered)
    return way.channel if way else None


def _fault(
    kind: ChannelKind, way: Way | None, contact: Contact, message: Mapping[str, Any], text: str | None, at: datetime
) -> str | None:
    has_template = bool(message.get("template"))
    files, buttons = len(message.get("attachments", ())), len(message.get("buttons", ()))
    if way is None:
        return (sending_checks.OPTED_OUT if contact.opted_out else sending_checks.NO_ADDRESS).detail
    refusal = ways.refusal(way, has_template=has_template, opted_out=contact.opted_out, at=at)
    if refusal is not None:
        return refusal.detail
    if ways.is_empty(kind, text, files):
        return _NO_TEXT
    try:
        messages.check_content(kind, text, has_template=has_template, files=files, buttons=buttons)
    except Invalid as error:
        return error.faults[0].detail
    return None
