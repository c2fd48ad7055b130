"""Recipients: finds the contact and the conversation of an outgoing message, or creates them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from app.channels.base import ChannelKind
from app.domain.channels import channels, media
from app.domain.contacts import contacts
from app.domain.conversations import conversations, sending_checks
from app.domain.work.changes import Change
from app.domain.work.units import Unit
from app.errors import Conflict, Fault, Invalid, NotFound, valid
from app.lib import normalization
from app.models import sets
from app.models.channels import Channel
from app.models.contacts import Contact
from app.models.conversations import Conversation
from app.models.jobs import Job
from app.models.sets import Key

_NO_CHANNEL = Fault("/channel_id", "There is no such channel in this workspace.")
_NOT_FIRST = "Its provider does not let a business write first: the contact has to write before."
_NO_CONVERSATION = "This contact has no conversation, and no connected channel on which one can be opened."


def needs(workspace_id: str, payload: Mapping[str, Any], _: str | None) -> list[Key]:
    """Returns the keys that `find` reads first from its unit, as far as the payload names them."""
    named = ((Contact, payload.get("contact_id")), (Conversation, payload.get("conversation_id")))
    return [sets.key(model, workspace_id, "id", value) for model, value in named if value is not None]


def check(workspace_id: str, payload: Mapping[str, Any], *_: object) -> None:
    """Raises NotFound for the conversation, and Invalid for content that no queued write can mend.

    Checks nothing if a queued write may create the channel.
    """
    if "channel_id" in payload and Job.will_make(workspace_id, "channel", payload["channel_id"]):
        return
    media.check_uploads(workspace_id, upload_ids(payload))
    kind = _kind_for(workspace_id, payload)
    if kind is not None:
        files, offered = len(upload_ids(payload)), len(payload.get("buttons", ()))
        sending_checks.check_size(kind, payload.get("text") or "", files, offered)
        sending_checks.check_template(kind, payload.get("template"))


def find(change: Change) -> tuple[Contact, Conversation]:
    """Returns the contact, locked, and the conversation; opens one if the channel allows it.

    A closed conversation is reopened, unless the message is scheduled. Raises NotFound, Invalid, Conflict, Busy.
    """
    payload = change.payload
    if "conversation_id" in payload:
        contact, conversation = conversations.hold(change, payload["conversation_id"])
    elif "contact_id" in payload:
        contact, conversation = _of_contact(change)
    else:
        contact, conversation = _at(change, _channel(change.workspace_id, payload["channel_id"]), payload["to"])
    return contact, conversation if "send_at" in payload else conversations.reopen(change, contact, conversation)


def latest(unit: Unit, contact: Contact, *, channel_id: str | None, kind: str | None) -> Conversation | None:
    """Returns the contact's latest conversation on a connected channel with that id or kind, if any."""
    return conversations.on_channel(unit, contact, offered(unit, contact.workspace_id, channel_id, kind))


def open_first(
    change: Change, contact: Contact, *, channel_id: str | None = None, kind: str | None = None
) -> Conversation | None:
    """Opens a conversation on the newest such channel whose provider lets a business write first.

    `channel_id`, `kind`: as in `latest`, which has to find none before. Returns None without such a channel, or if the
    contact has no phone number.
    """
    return _open_on_one_of(change, contact, offered(change.unit, contact.workspace_id, channel_id, kind).values())


def opening(contact: Contact, among: Iterable[Channel]) -> tuple[Channel, str] | None:
    """Returns the first channel that may open a conversation, and the contact's address there.

    None if there is no such channel, or the contact has no phone number.
    """
    for channel in among:
        kind = channels.kind_of(channel)
        if kind.may_open and contact.phone is not None:
            return channel, kind.recipient(contact.phone)
    return None


def offered(unit: Unit, workspace_id: str, channel_id: str | None, kind: str | None = None) -> Mapping[str, Channel]:
    """Returns the connected channels of that id and kind, if given, newest first, by identifier.

    The channels are read once per unit, and filtered once for all contacts.
    """

    def choose() -> dict[str, Channel]:
        found = unit.noted(("connected channels", workspace_id), lambda: channels.noted(unit, connected(workspace_id)))
        return {each.id: each for each in found if channel_id in (None, each.id) and kind in (None, each.kind)}

    return unit.noted(("offered channels", workspace_id, channel_id, kind), choose)


def connected(workspace_id: str) -> list[Channel]:
    """Returns the workspace's connected channels, newest first."""
    is_connected = (Channel.state == "connected") & Channel.deleted_at.is_null()
    return list(Channel.in_workspace(workspace_id).where(is_connected).order_by(Channel.id.desc()))


def open_on(change: Change, contact: Contact, channel: Channel, peer: str, *, is_quiet: bool = False) -> Conversation:
    """Opens a conversation with the contact at `peer`; `is_quiet` is as in `conversations.open_on`."""
    opened = conversations.open_on(change, contact, channel.id, is_quiet=is_quiet)
    return conversations.alter(change.unit, opened, peer=peer)


def upload_ids(payload: Mapping[str, Any]) -> list[str]:
    """Returns the identifiers of the uploads in a message's body."""
    return [each["upload_id"] for each in payload.get("attachments", ())]


def _kind_for(workspace_id: str, payload: Mapping[str, Any]) -> ChannelKind | None:
    """Returns the kind of channel that sends the message; None if not known yet. Raises Invalid."""
    if "conversation_id" in payload:
        conversation = Conversation.find(workspace_id, payload["conversation_id"])
        return channels.kind_of(Channel.get_by_id(conversation.channel_id))
    if "contact_id" in payload:
        contacts.find_named(workspace_id, payload["contact_id"])
    if "channel_id" not in payload:
        return None
    kind = channels.kind_of(_channel(workspace_id, payload["channel_id"]))
    if "to" in payload:
        valid("/to", kind.recipient, payload["to"])
    return kind


def _of_contact(change: Change) -> tuple[Contact, Conversation]:
    """Returns the contact's latest conversation, on a given channel or kind, or opens one."""
    unit, payload = change.unit, change.payload
    contact = contacts.find_named(change.workspace_id, payload["contact_id"], unit)
    wanted: list[Channel] | None = None
    if "channel_id" in payload:
        wanted = [_channel(change.workspace_id, payload["channel_id"])]
    elif "channel_kind" in payload:
        wanted = [channel for channel in connected(change.workspace_id) if channel.kind == payload["channel_kind"]]
    if wanted is None:
        found = conversations.most_recent(unit, contact.workspace_id, contact.id)
    else:
        found = conversations.on_channel(unit, contact, [channel.id for channel in wanted])
    if found is not None:
        return contact, found
    opened = _open_on_one_of(change, contact, connected(change.workspace_id) if wanted is None else wanted)
    if opened is None:
        # Conflict, not Invalid: the request may succeed once the contact's state has changed.
        raise Conflict(_NOT_FIRST if wanted else _NO_CONVERSATION)
    return contact, opened


def _at(change: Change, channel: Channel, to: str) -> tuple[Contact, Conversation]:
    """Returns the contact at the address `to` and a conversation; creates both if the kind allows it."""
    unit, workspace_id, kind = change.unit, change.workspace_id, channels.kind_of(channel)
    recipient = valid("/to", kind.recipient, to)
    identity = contacts.find_identity(unit, workspace_id, kind.name, recipient)
    if identity is not None:
        contact = contacts.find(workspace_id, identity.contact_id, unit)
    elif kind.may_open:
        made = contacts.upsert(replace(change, payload={"phone": valid("/to", normalization.phone, to)}))
        contact = contacts.find(workspace_id, made.resource_id, unit)
        contacts.give_identity(unit, workspace_id, kind.name, recipient, contact.id)
    else:
        raise Conflict(_NOT_FIRST)
    found = conversations.on_channel(unit, contact, [channel.id])
    if found is None and not kind.may_open:
        raise Conflict(_NOT_FIRST)
    return contact, found or open_on(change, contact, channel, recipient)


def _open_on_one_of(change: Change, contact: Contact, among: Iterable[Channel]) -> Conversation | None:
    found = opening(contact, among)
    return open_on(change, contact, *found) if found else None


def _channel(workspace_id: str, channel_id: str) -> Channel:
    try:
        return Channel.find(workspace_id, channel_id)
    except NotFound as error:
        raise Invalid(_NO_CHANNEL) from error
