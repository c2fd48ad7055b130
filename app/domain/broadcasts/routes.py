"""Routes: which channel reaches a contact with a message, and whether it may go. Locks no rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from app.channels.base import ChannelKind, Verdict
from app.channels.kinds import CHANNEL_KINDS
from app.database import now
from app.domain.channels import channels
from app.domain.conversations import messages, recipients, sending_checks
from app.errors import Invalid
from app.models.channels import Channel
from app.models.contacts import Contact
from app.models.conversations import Conversation


class Address(NamedTuple):
    """A kind of channel, and a peer there. Two contacts with the same address are one recipient."""

    kind: str
    peer: str


@dataclass(frozen=True, slots=True)
class Route:
    """A channel and address that reach a contact. `conversation`: None if one has to be opened."""

    channel: Channel
    peer: str
    conversation: Conversation | None = None

    @property
    def address(self) -> Address:
        """The address that a message to the contact goes to."""
        return Address(self.channel.kind, self.peer)


def find(contact: Contact, latest: Conversation | None, offered: Mapping[str, Channel]) -> Route | None:
    """Returns the route to the contact; None if there is none.

    `latest`: the contact's latest conversation on `offered`, which has the channels by id, newest first.
    """
    if latest is not None:
        return None if latest.peer is None else Route(offered[latest.channel_id], latest.peer, latest)
    opening = recipients.opening(contact, offered.values())
    return Route(*opening) if opening else None


def is_empty(kind: ChannelKind, text: str | None, files: int) -> bool:
    """Returns whether nothing would arrive: there is no text or file, and the kind has no templates."""
    return not (text or files or kind.sends_templates)


def refusal(way: Route, *, has_template: bool, opted_out: bool, at: datetime) -> Verdict | None:
    """Returns why nothing may be sent to the contact by this route at `at`; None if it may."""
    return sending_checks.refusal(
        channels.kind_of(way.channel),
        has_template=has_template,
        opted_out=opted_out,
        is_open=way.conversation is not None and way.conversation.is_window_open(at),
        is_expired=False,
    )


@dataclass(frozen=True, slots=True)
class ChannelPreview:
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


def renditions(
    message: Mapping[str, Any], text: str | None, contact: Contact, channel_id: str | None
) -> list[ChannelPreview]:
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
    for name in sorted({each.kind for each in offered.values()}, key=list(CHANNEL_KINDS).index):
        some = {each.id: each for each in offered.values() if each.kind == name}
        way = find(contact, next((each for each in latest if each.channel_id in some), None), some)
        conversation = way.conversation if way and CHANNEL_KINDS[name].window else None
        found.append(
            ChannelPreview(
                CHANNEL_KINDS[name],
                way.channel if way else next(iter(some.values())),
                is_chosen=chosen is not None and chosen.kind == name,
                is_template=CHANNEL_KINDS[name].sends_templates and bool(message.get("template")),
                open_until=conversation.window_ends_at if conversation and conversation.is_window_open(at) else None,
                fault=_fault(CHANNEL_KINDS[name], way, contact, message, text, at),
            )
        )
    return sorted(found, key=lambda each: not each.is_chosen)


def _chosen(contact: Contact, latest: list[Conversation], offered: Mapping[str, Channel]) -> Channel | None:
    """Returns the channel that the broadcast uses for the contact, even if nothing can be sent there."""
    if latest:
        return offered[latest[0].channel_id]
    way = find(contact, None, offered)
    return way.channel if way else None


def _fault(
    kind: ChannelKind, way: Route | None, contact: Contact, message: Mapping[str, Any], text: str | None, at: datetime
) -> str | None:
    has_template = bool(message.get("template"))
    files, buttons = len(message.get("attachments", ())), len(message.get("buttons", ()))
    if way is None:
        return (sending_checks.OPTED_OUT if contact.opted_out else sending_checks.NO_ADDRESS).detail
    refused = refusal(way, has_template=has_template, opted_out=contact.opted_out, at=at)
    if refused is not None:
        return refused.detail
    if is_empty(kind, text, files):
        return "This channel has no templates, and the message has no text."
    try:
        messages.check_content(kind, text, has_template=has_template, files=files, buttons=buttons)
    except Invalid as error:
        return error.faults[0].detail
    return None
