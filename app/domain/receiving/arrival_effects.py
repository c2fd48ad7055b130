"""Effects of arrivals: what a message, an edit, an echo, a block or a new number changes.

Receipts have their own module. Each function locks the contact first, and may raise Busy.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from app import mailbox
from app.channels.inbound import Arrival, Blocked, Echoed, Edited, Media, Moved, Receipt, Received
from app.database import database
from app.domain.channels import buttons, channels, fetches, media, provider_messages
from app.domain.contacts import contacts
from app.domain.conversations import (
    conversations,
    messages,
    opt_outs,
    peers,
    read_receipts,
    replies,
    scheduled_messages,
)
from app.domain.receiving import albums, receipts, senders
from app.domain.work.changes import Change
from app.domain.work.units import Unit
from app.errors import Invalid, NotFound
from app.lib import ids
from app.lib.schemas import composed
from app.models.channels import Channel
from app.models.contacts import Contact
from app.models.conversations import Conversation, Message


def apply(change: Change, channel: Channel, item: Arrival) -> bool:
    """Applies the arrival, once, however often it comes.

    Returns False if it must wait for its message.
    """
    match item:
        case Received():
            _receive(change, channel, item)
        case Edited():
            _edit(change, channel, item)
        case Echoed():
            _echo(change, channel, item)
        case Blocked():
            _block(change, channel, item)
        case Moved():
            _move(change, channel, item)
        case Receipt():
            return receipts.apply(change, channel, item)
    return True


def _receive(change: Change, channel: Channel, item: Received) -> None:
    unit = change.unit
    if provider_messages.find(unit, channel, item.provider_id) is not None:
        return
    contact = senders.contact_of(change, channel, item.sender, name=item.name, phone=item.phone, locale=item.locale)
    reopens = channel.settings.get("reopen", True) is not False
    conversation = peers.conversation_with(
        change, contact, channel.id, item.peer, reopens=reopens, referral=item.referral
    )
    if (begun := albums.message_of(unit, conversation, item.album)) is not None:
        more = _attached(change, channel, begun.id, item)
        text = "\n".join(filter(None, (begun.text, item.text))) or None
        unit.put(begun.altered(attachments=[*begun.attachments, *more], text=text))
        return
    wish = _wish(unit, conversation, item)
    if wish is not None:
        contact = contacts.set_fields(change, contact, opted_out=wish == "stop")
    asked_at = None if wish == "stop" else max(conversation.asked_at or item.at, item.at)
    news = {"unread": conversation.unread + 1, "asked_at": asked_at} | _window(channel, conversation, item)
    conversation = conversations.alter(unit, conversation, **news)
    if item.button_id is not None and channels.kind_of(channel).confirms_presses:
        read_receipts.queue(unit, conversation, item.provider_id)
    message_id = ids.new("msg")
    message = messages.receive(
        change,
        contact,
        channel.id,
        _text(channel, item),
        conversation=conversation,
        id=message_id,
        attachments=_attached(change, channel, message_id, item),
        button_id=item.button_id,
        provider_id=item.provider_id,
        provider_time=item.at,
        provider_payload=item.payload,
        data=item.data,
        album=item.album,
    )
    provider_messages.note(unit, channel, item.provider_id, message)
    albums.begin(unit, conversation, message)
    for each in filter(None, (conversation.id, peers.followed_by(unit, conversation))):
        scheduled_messages.cancel(change, each)


def _wish(unit: Unit, conversation: Conversation, item: Received) -> opt_outs.Wish | None:
    """Returns "stop" or "start" if the whole message opts out or in; None for any other message.

    An everyday word in an answer does not opt out.
    """
    is_answer = item.button_id is not None or replies.is_awaited(unit, conversation)
    wish = opt_outs.wish_of(unit, conversation.workspace_id, item.text, is_answer=is_answer)
    if wish == "stop" and not is_answer and buttons.is_offered(conversation.id, item.text or ""):
        # Many contacts type the label instead of pressing the button.
        return opt_outs.wish_of(unit, conversation.workspace_id, item.text, is_answer=True)
    return wish


def _text(channel: Channel, item: Received) -> str | None:
    """Returns the received text. For a press without a label, the label of our own button, or its id."""
    if item.text is not None or item.button_id is None:
        return None if item.text is None else str(composed(item.text))
    known = buttons.label_of(channel.id, item.pressed, item.button_id) if item.pressed else None
    return known or item.button_id


def _window(channel: Channel, conversation: Conversation, item: Received) -> dict[str, Any]:
    """Returns the new end of the window for free text, which never moves back.

    Empty if the kind of channel has no window.
    """
    window = channels.kind_of(channel).window
    if window is None:
        return {}
    ends_at = item.at + window
    return {"window_ends_at": max(conversation.window_ends_at or ends_at, ends_at)}


def _edit(change: Change, channel: Channel, item: Edited) -> None:
    message = provider_messages.find(change.unit, channel, item.provider_id)
    if message is None or message.direction != "in" or (message.edited_at or item.at) > item.at:
        return
    # A deleted contact's texts are gone for good: do not bring one back.
    with suppress(NotFound):
        provider_messages.contact_and_conversation(change.unit, message)
        change.unit.put(message.altered(text=composed(item.text), edited_at=item.at))


def _echo(change: Change, channel: Channel, item: Echoed) -> None:
    unit = change.unit
    if provider_messages.find(unit, channel, item.provider_id) is not None:
        return
    contact = senders.contact_of(change, channel, item.recipient, phone=item.phone)
    conversation = peers.conversation_with(change, contact, channel.id, item.peer, reopens=None)
    conversation = conversations.answer(unit, conversations.touch(unit, conversation))
    message_id = ids.new("msg")
    message = Message(
        id=message_id,
        workspace_id=channel.workspace_id,
        conversation_id=conversation.id,
        contact_id=contact.id,
        channel_id=channel.id,
        direction="out",
        text=composed(item.text),
        attachments=_expected(change, channel, message_id, item.media),
        status="sent",
        author={"type": "provider", "id": channel.id},
        provider_id=item.provider_id,
        provider_time=item.at,
        created_at=unit.now,
    )
    unit.put(message)
    provider_messages.note(unit, channel, item.provider_id, message)
    messages.tell(change.events, contact, conversation, message)


def _block(change: Change, channel: Channel, item: Blocked) -> None:
    """Opts the contact out if they block us.

    Unblocking changes nothing: it does not opt in again.
    """
    contact: Contact | None = senders.known(change.unit, channel, item.sender)
    if contact is not None and item.is_blocked:
        contacts.set_fields(change, contact, opted_out=True)


def _move(change: Change, channel: Channel, item: Moved) -> None:
    contact = senders.move(change, channel, item.formers, item.sender, phone=item.phone)
    if contact is not None:
        peers.readdress(change.unit, contact, channel.id, item.formers, item.peer)


def _attached(change: Change, channel: Channel, message_id: str, item: Received) -> list[dict[str, Any]]:
    if channels.kind_of(channel).has_provider:
        return _expected(change, channel, message_id, item.media)
    attachments = []
    for each in item.media:
        # The sender has uploaded the file. Leave out files that have expired or belong to another message.
        with suppress(Invalid):
            attachments += media.claim_uploads(
                change.unit, channel.workspace_id, [each.ref], message_id, visitor_id=item.sender
            )
    return attachments


def _expected(change: Change, channel: Channel, message_id: str, files: Sequence[Media]) -> list[dict[str, Any]]:
    if not files:
        return []
    database.after_commit(partial(mailbox.ring, fetches.MAIL, channel.id))
    return media.expect(change.unit, channel, files, message_id=message_id)
