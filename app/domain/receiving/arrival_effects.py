"""Effects of arrivals: applies messages, edits, echoes, receipts, blocks and new numbers.

Each effect locks the contact first, and may raise Busy. `prefetch` reads the rows that many arrivals need.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any, NamedTuple

from app import mailbox
from app.channels.inbound import Arrival, Blocked, Echoed, Edited, Media, Moved, Receipt, Received
from app.database import database, rows
from app.domain.channels import buttons, channels, fetches, media
from app.domain.contacts import contacts
from app.domain.conversations import (
    conversations,
    message_statuses,
    messages,
    opt_outs,
    peers,
    read_receipts,
    replies,
    scheduled_messages,
)
from app.domain.conversations.messages import MessageIds
from app.domain.conversations.peers import Peer
from app.domain.receiving import sender_contacts
from app.domain.work.changes import Change
from app.domain.work.units import Unit
from app.errors import Invalid, NotFound
from app.lib import ids
from app.lib.schemas import composed
from app.models import sets
from app.models.channels import Channel
from app.models.contacts import Contact
from app.models.conversations import Conversation, Message
from app.models.identities import Identity
from app.models.runs import Run
from app.models.sets import Key

# How many of a conversation's newest messages are searched for the album's message.
MOST_SEARCHED = 30
# How long a receipt waits for its message.
RECEIPTS_KEPT = timedelta(days=1)
Items = Sequence[tuple[Channel, Arrival]]


class _Name(NamedTuple):
    """A message as the provider names it. `message_id`: our own id, if the provider repeats that."""

    channel_id: str
    provider_id: str
    message_id: str | None = None


def apply(change: Change, channel: Channel, item: Arrival) -> bool:
    """Applies the arrival; safe to repeat. Returns False if a receipt must wait for its message."""
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
            return _apply_receipt(change, channel, item)
    return True


def needs(items: Items) -> Iterator[Key]:
    """Yields the keys of the senders' identities, through which the unit also locks their contacts."""
    for channel, item in items:
        if isinstance(item, (Received, Blocked)):
            yield sender_contacts.key(channel, item.sender)
        elif isinstance(item, Echoed):
            yield sender_contacts.key(channel, item.recipient)


def prefetch(items: Items, unit: Unit) -> None:
    """Reads the messages, contacts, conversations and waiting runs of the items.

    Skips rows that another transaction has locked.
    """
    names = [
        _Name(channel.id, item.provider_id, getattr(item, "message_id", None))
        for channel, item in items
        if not isinstance(item, (Blocked, Moved))
    ]
    places = _look_up(unit, list(dict.fromkeys(names)))
    unit.read([*(place.keys[0] for place in places), *_phones(items, unit)])
    # Do not lock a row whose contact another transaction has locked: that transaction may wait for the row.
    unit.read(key for place in places if unit.is_free(place.keys[0]) for key in place.keys)
    wanted = list(dict.fromkeys(_peers(items, unit)))
    peers.prefetch(unit, wanted)
    unit.read(_runs(wanted, unit))


def _receive(change: Change, channel: Channel, item: Received) -> None:
    unit = change.unit
    if _find(unit, channel, item.provider_id) is not None:
        return
    contact = sender_contacts.contact_of(
        change, channel, item.sender, name=item.name, phone=item.phone, locale=item.locale
    )
    reopens = channel.settings.get("reopen", True) is not False
    conversation = peers.conversation_with(
        change, contact, channel.id, item.peer, reopens=reopens, referral=item.referral
    )
    if (begun := _album_of(unit, conversation, item.album)) is not None:
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
    _note(unit, channel, item.provider_id, message)
    _begin_album(unit, conversation, message)
    for each in filter(None, (conversation.id, peers.followed_by(unit, conversation))):
        scheduled_messages.cancel(change, each)


def _wish(unit: Unit, conversation: Conversation, item: Received) -> opt_outs.Wish | None:
    """Returns "stop" or "start" if the whole message opts out or in; None for any other message.

    An everyday word in an answer does not opt out.
    """
    is_answer = item.button_id is not None or replies.is_awaited(unit, conversation)
    wish = opt_outs.opt_wish(unit, conversation.workspace_id, item.text, is_answer=is_answer)
    if wish == "stop" and not is_answer and buttons.is_offered(conversation.id, item.text or ""):
        # Many contacts type the label instead of pressing the button.
        return opt_outs.opt_wish(unit, conversation.workspace_id, item.text, is_answer=True)
    return wish


def _text(channel: Channel, item: Received) -> str | None:
    """Returns the received text. A press without text gives the button's label, or else its id.

    None if there is neither a text nor a press.
    """
    if item.text is not None or item.button_id is None:
        return None if item.text is None else str(composed(item.text))
    known = buttons.label_of(channel.id, item.pressed, item.button_id) if item.pressed else None
    return known or item.button_id


def _window(channel: Channel, conversation: Conversation, item: Received) -> dict[str, Any]:
    """Returns the new `window_ends_at`, which never moves back; {} if the kind has no window."""
    window = channels.kind_of(channel).window
    if window is None:
        return {}
    ends_at = item.at + window
    return {"window_ends_at": max(conversation.window_ends_at or ends_at, ends_at)}


def _edit(change: Change, channel: Channel, item: Edited) -> None:
    message = _find(change.unit, channel, item.provider_id)
    if message is None or message.direction != "in" or (message.edited_at or item.at) > item.at:
        return
    # A deleted contact's texts are gone for good: do not bring one back.
    with suppress(NotFound):
        conversations.hold(change, message.conversation_id)
        change.unit.put(message.altered(text=composed(item.text), edited_at=item.at))


def _echo(change: Change, channel: Channel, item: Echoed) -> None:
    unit = change.unit
    if _find(unit, channel, item.provider_id) is not None:
        return
    contact = sender_contacts.contact_of(change, channel, item.recipient, phone=item.phone)
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
    _note(unit, channel, item.provider_id, message)
    messages.tell(change.events, contact, conversation, message)


def _block(change: Change, channel: Channel, item: Blocked) -> None:
    """Opts the contact out if they block us. An end of the block does not opt them in again."""
    contact: Contact | None = sender_contacts.known(change.unit, channel, item.sender)
    if contact is not None and item.is_blocked:
        contacts.set_fields(change, contact, opted_out=True)


def _move(change: Change, channel: Channel, item: Moved) -> None:
    contact = sender_contacts.move(change, channel, item.formers, item.sender, phone=item.phone)
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


def _album_of(unit: Unit, conversation: Conversation, album: str | None) -> Message | None:
    """Returns the message with the album's first file, locked; None if there is none. Raises Busy."""
    if album is None:
        return None
    name = _album_name(conversation, album)
    if name not in unit.notes:
        found = rows(
            """
            SELECT id FROM (
                SELECT id, album FROM messages WHERE conversation_id = %s
                ORDER BY coalesce(provider_time, created_at) DESC, id DESC LIMIT %s) AS newest
            WHERE album = %s LIMIT 1
            """,
            (conversation.id, MOST_SEARCHED, album),
        )
        unit.notes[name] = found[0][0] if found else None
    message_id = unit.notes[name]
    return unit.get(Message, conversation.workspace_id, "id", message_id) if message_id else None


def _begin_album(unit: Unit, conversation: Conversation, message: Message) -> None:
    """Notes in the unit that the message is its album's first, if it belongs to an album."""
    if message.album is not None:
        unit.notes[_album_name(conversation, message.album)] = message.id


def _album_name(conversation: Conversation, album: str) -> tuple[str, str, str]:
    return ("album", conversation.id, album)


def _apply_receipt(change: Change, channel: Channel, receipt: Receipt) -> bool:
    """Raises the message's status to the receipt's, also from `unknown`, and records the event.

    Opts the contact out if the receipt says so. Does nothing if the contact was deleted. Returns False if
    the message is not known yet. Raises Busy.
    """
    unit = change.unit
    message = _find(unit, channel, receipt.provider_id, receipt.message_id)
    if message is None:
        return False
    try:
        contact, conversation = conversations.hold(change, message.conversation_id)
    except NotFound:
        return True
    if receipt.is_opt_out:
        contact = contacts.set_fields(change, contact, opted_out=True)
    if message_statuses.may_rise(message, receipt.status):
        is_failure = receipt.status == "failed"
        failure = {"code": receipt.code or "provider", "detail": receipt.detail} if is_failure else None
        provider_id = message.provider_id or receipt.provider_id
        raised = unit.put(message.altered(status=receipt.status, failure=failure, provider_id=provider_id))
        messages.tell(change.events, contact, conversation, raised)
    return True


def _look_up(unit: Unit, names: Sequence[_Name]) -> list[MessageIds]:
    """Looks up the messages with one statement, notes the results and returns the ids that exist."""
    if not names:
        return []
    found = rows(
        """
        SELECT sought.number, named.*, talk.contact_id
        FROM unnest(%s::text[], %s::text[], %s::text[]) WITH ORDINALITY
            AS sought(channel_id, provider_id, message_id, number)
        CROSS JOIN LATERAL (
            SELECT workspace_id, id, conversation_id FROM messages
            WHERE channel_id = sought.channel_id AND provider_id = sought.provider_id
            UNION ALL
            SELECT workspace_id, id, conversation_id FROM messages
            WHERE id = sought.message_id AND channel_id = sought.channel_id AND direction = 'out'
            LIMIT 1) AS named
        CROSS JOIN LATERAL (SELECT contact_id FROM conversations WHERE id = named.conversation_id LIMIT 1) AS talk
        """,
        tuple(map(list, zip(*names, strict=True))),
    )
    places = {names[number - 1]: MessageIds(*place) for number, *place in found}
    unit.notes |= {name: places.get(name) for name in names}
    return list(places.values())


def _find(unit: Unit, channel: Channel, provider_id: str, message_id: str | None = None) -> Message | None:
    """Returns the message, locked with its contact and conversation; None if none. Raises Busy."""
    name = _Name(channel.id, provider_id, message_id)
    if name not in unit.notes:
        _look_up(unit, [name])
    place: MessageIds | None = unit.notes[name]
    if place is None:
        return None
    for each in place.keys:
        unit.get(*each)
    return unit.get(Message, channel.workspace_id, "id", place.message_id)


def _note(unit: Unit, channel: Channel, provider_id: str, message: Message) -> None:
    """Notes the message, which the unit creates, for `_find`."""
    place = MessageIds(message.workspace_id, message.id, message.conversation_id, message.contact_id)
    unit.notes[_Name(channel.id, provider_id)] = place


def _phones(items: Items, unit: Unit) -> Iterator[Key]:
    for channel, item in items:
        if isinstance(item, (Received, Echoed)) and item.phone is not None:
            identity = sender_contacts.key(channel, item.sender if isinstance(item, Received) else item.recipient)
            if unit.is_free(identity) and unit.get(*identity) is None:
                yield from contacts.ways_to_find(channel.workspace_id, "phone", item.phone)


def _peers(items: Items, unit: Unit) -> Iterator[Peer]:
    for (channel, item), identity in zip(items, map(_identity, items), strict=True):
        if identity is None or not isinstance(item, (Received, Echoed)) or not unit.is_free(identity):
            continue
        found = unit.get(Identity, *identity[1:])
        if found is not None and unit.is_free(sets.key(Contact, channel.workspace_id, "id", found.contact_id)):
            yield Peer(channel.workspace_id, found.contact_id, channel.id, item.peer)


def _identity(entry: tuple[Channel, Arrival]) -> Key | None:
    return next(needs([entry]), None)


def _runs(wanted: Sequence[Peer], unit: Unit) -> Iterator[Key]:
    for peer in wanted:
        if (conversation_id := unit.notes[peer]) is None:
            continue
        key = sets.key(Conversation, peer.workspace_id, "id", conversation_id)
        conversation = unit.get(Conversation, *key[1:]) if unit.is_free(key) else None
        if conversation is not None and conversation.waiting_run_id is not None:
            yield sets.key(Run, peer.workspace_id, "id", conversation.waiting_run_id)
