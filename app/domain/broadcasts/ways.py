"""Ways: finds the channel on which a message reaches a contact, and whether it may be sent now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from app.channels.base import ChannelKind, Verdict
from app.domain.channels import channels
from app.domain.conversations import recipients, sending_checks
from app.models.channels import Channel
from app.models.contacts import Contact
from app.models.conversations import Conversation


class Address(NamedTuple):
    """A kind of channel, and a peer there. Two contacts with the same address are one recipient."""

    kind: str
    peer: str


@dataclass(frozen=True, slots=True)
class Way:
    """A channel and address that reach a contact. `conversation`: None if one has to be opened."""

    channel: Channel
    peer: str
    conversation: Conversation | None = None

    @property
    def address(self) -> Address:
        """The address that a message to the contact goes to."""
        return Address(self.channel.kind, self.peer)


def find(contact: Contact, latest: Conversation | None, offered: Mapping[str, Channel]) -> Way | None:
    """Returns the way to the contact; None if there is none.

    `latest`: the contact's latest conversation on the `offered` channels, which are by id, newest first.
    """
    if latest is not None:
        return None if latest.peer is None else Way(offered[latest.channel_id], latest.peer, latest)
    opening = recipients.opening(contact, offered.values())
    return Way(*opening) if opening else None


def is_empty(kind: ChannelKind, text: str | None, files: int) -> bool:
    """Returns whether nothing would arrive: only a template is given, and the kind has no templates."""
    return not (text or files or kind.sends_templates)


def refusal(way: Way, *, has_template: bool, opted_out: bool, at: datetime) -> Verdict | None:
    """Returns why nothing may be sent to the contact this way at `at`; None if sending is allowed."""
    return sending_checks.refusal(
        channels.kind_of(way.channel),
        has_template=has_template,
        opted_out=opted_out,
        is_open=way.conversation is not None and way.conversation.is_window_open(at),
        is_expired=False,
    )
