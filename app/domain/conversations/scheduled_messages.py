"""Scheduled messages: each is queued once at its time, unless deleted or cancelled by a reply.

Creating or ending one changes `scheduled` of its conversation, so both happen under the lock on its contact.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from uuid import uuid4

import structlog

from app import sql
from app.database import rows, transaction
from app.domain.channels import channels, outboxes
from app.domain.conversations import (
    conversations,
    message_statuses,
    messages,
    recipients,
    sending_checks,
    sending_outcomes,
)
from app.domain.conversations.messages import MessageIds
from app.domain.triggers import batches
from app.domain.work import equal_parts
from app.domain.work.changes import Change, Effect
from app.domain.work.events import Cause
from app.domain.work.units import Busy, Unit
from app.errors import Conflict, Fault, Invalid, NotFound
from app.lib import clock, json
from app.models import sets
from app.models.channels import Channel
from app.models.conversations import Conversation, Message
from app.models.sets import Key
from app.models.uploads import Upload

log = structlog.get_logger(__name__)

MOST_DAYS = 90
MOST_OF_CONVERSATION, MOST_OF_WORKSPACE = 100, 100_000
REPLIED = {"code": "replied", "detail": "The contact wrote before this was sent."}
IS_ANY_DUE = "EXISTS (SELECT FROM messages WHERE send_at <= now())"
_BROKEN = {"code": "error", "detail": "Bellhop could not send this."}


def needs(workspace_id: str, payload: Mapping[str, Any], message_id: str | None) -> list[Key]:
    """Returns the keys of the message, and of the contact and conversation that the payload names."""
    return [*recipients.needs(workspace_id, payload, None), sets.key(Message, workspace_id, "id", str(message_id))]


def create(change: Change) -> Effect:
    """Schedules the message of the payload. Raises NotFound, Invalid, Conflict, Busy."""
    unit = change.unit
    contact, conversation = recipients.find(change)
    draft = messages.drafted(change, conversation)
    if channels.seen_by(unit, conversation.channel_id).deleted_at is not None:
        messages.queue_draft(change, contact, conversation, draft)  # the message fails at once
        return Effect("made", "message", draft.id)
    _take_room(unit, conversation)
    send_at, cancel_on_reply = _time(change.payload), change.payload.get("cancel_on_reply", True)
    unit.put(draft.altered(status="scheduled", send_at=send_at, cancel_on_reply=cancel_on_reply))
    return Effect("made", "message", draft.id)


def update(change: Change) -> Effect:
    """Changes the text or the time of a scheduled message. Raises NotFound, Invalid, Conflict, Busy."""
    _, message = _hold(change)
    send_at = _time(change.payload) if "send_at" in change.payload else message.send_at
    changed = message.altered(text=change.payload.get("text", message.text), send_at=send_at)
    _check_content(channels.seen_by(change.unit, str(message.channel_id)), changed)
    change.unit.put(changed)
    return Effect("changed", "message", message.id)


def delete(change: Change) -> Effect:
    """Deletes a scheduled message and its files. Raises NotFound, Conflict, Busy."""
    unit = change.unit
    conversation, message = _hold(change)
    for each in message.attachments:
        if (upload := unit.get(Upload, change.workspace_id, "id", each["id"])) is not None:
            unit.put(upload.altered(expires_at=unit.now))  # `media.delete_expired` deletes it
    unit.drop(message)
    count(unit, conversation, -1)
    return Effect("deleted", "message", message.id)


def check_new(workspace_id: str, payload: Mapping[str, Any], *_: object) -> None:
    """Raises Invalid for a time out of range, and what `recipients.check` raises."""
    check(payload["send_at"])
    recipients.check(workspace_id, payload)


def check(send_at: datetime | None) -> None:
    """Raises Invalid for a time that is past or too far ahead; None is always valid."""
    now = clock.now()
    if send_at is not None and not now < send_at <= now + timedelta(days=MOST_DAYS):
        raise Invalid(Fault("/send_at", f"Give a time that is to come, within {MOST_DAYS} days."))


def check_change(workspace_id: str, payload: Mapping[str, Any], message_id: str, *_: object) -> None:
    """Raises Conflict if the message is not scheduled, and Invalid for what `update` would refuse.

    If there is no such message, checks only the time: a queued write may create the message.
    """
    message = Message.in_workspace(workspace_id).where(Message.id == message_id).first()
    if message is not None:
        _check_scheduled(message)
    check(payload.get("send_at"))
    if message is not None:
        _check_content(Channel.get_by_id(message.channel_id), message.altered(**payload))


def cancel(change: Change, conversation_id: str) -> None:
    """Fails the conversation's scheduled messages that a reply of the contact cancels. Raises Busy."""
    unit, workspace_id = change.unit, change.workspace_id
    conversation = unit.get(Conversation, workspace_id, "id", conversation_id)
    if conversation is None or not conversation.scheduled:  # saves a query for each message of a contact
        return
    found = [message_id for (message_id,) in rows(_OF_CONVERSATION, (conversation_id,))]
    unit.read(sets.key(Message, workspace_id, "id", message_id) for message_id in found)
    for message_id in found:
        _fail(change, message_id, REPLIED)


def end_some(change: Change, channel_id: str, failure: Mapping[str, Any], limit: int) -> int:
    """Fails up to `limit` scheduled messages of the channel; returns how many.

    Raises Busy if other transactions have locked all of them.
    """
    unit = change.unit
    found = [MessageIds(*row) for row in rows(_OF_CHANNEL, (change.workspace_id, channel_id, limit))]
    unit.read(key for each in found for key in each.keys)
    ended = 0
    for each in found:
        if all(map(unit.is_free, each.keys)):
            _fail(change, each.message_id, failure)
            ended += 1
    if found and not ended:
        raise Busy
    return ended


def queue_some() -> int:
    """Queues due scheduled messages until none is left or the time slice is over; returns how many.

    Each workspace gets an equal part of the slice. Safe to run concurrently: each message is queued once.
    """
    owners = (owner for (owner,) in rows(sql.prepared("find_owners_of_due_messages", _OWNERS)))
    return equal_parts.serve(owners, _queue_due)


def count(unit: Unit, conversation: Conversation, more: int) -> Conversation:
    """Adds `more`, which may be negative, to the conversation's number of scheduled messages."""
    return conversations.alter(unit, conversation, scheduled=conversation.scheduled + more)


def _hold(change: Change) -> tuple[Conversation, Message]:
    """Returns the conversation and the scheduled message, locked. Raises NotFound, Conflict, Busy."""
    message = change.unit.get(Message, change.workspace_id, "id", change.target)
    if message is None:
        raise NotFound
    _check_scheduled(message)
    return conversations.hold(change, message.conversation_id)[1], message


def _fail(change: Change, message_id: str, failure: Mapping[str, Any]) -> None:
    unit = change.unit
    message = unit.get(Message, change.workspace_id, "id", message_id)
    if message is None or message.status != "scheduled":
        return
    with suppress(NotFound):  # deleting the contact also ends the message
        contact, conversation = conversations.hold(change, message.conversation_id)
        failed = unit.put(message.altered(status="failed", send_at=None, failure=dict(failure)))
        messages.tell(change.events, contact, count(unit, conversation, -1), failed)


def _take_room(unit: Unit, conversation: Conversation) -> None:
    """Counts another scheduled message. Raises Conflict at the conversation's or workspace's limit."""
    if conversation.scheduled >= MOST_OF_CONVERSATION:
        raise Conflict(f"A conversation has at most {MOST_OF_CONVERSATION} scheduled messages. Delete one first.")
    of_workspace = ("scheduled messages", conversation.workspace_id)
    number = unit.noted(of_workspace, partial(_stored, conversation.workspace_id))
    if number >= MOST_OF_WORKSPACE:
        raise Conflict(f"A workspace has at most {MOST_OF_WORKSPACE:,} scheduled messages. Delete one first.")
    unit.notes[of_workspace] = number + 1
    count(unit, conversation, 1)


def _stored(workspace_id: str) -> int:
    scheduled = "SELECT FROM messages WHERE workspace_id = %s AND send_at IS NOT NULL LIMIT %s"
    [(number,)] = rows(f"SELECT count(*) FROM ({scheduled}) AS scheduled", (workspace_id, MOST_OF_WORKSPACE))
    return int(number)


def _time(payload: Mapping[str, Any]) -> datetime:
    return datetime.fromisoformat(payload["send_at"])


def _check_scheduled(message: Message) -> None:
    if message.status != "scheduled":
        detail = f"Only a scheduled message can be changed or deleted. The status of this one is {message.status}."
        raise Conflict(detail)


def _check_content(channel: Channel, message: Message) -> None:
    files, buttons = len(message.attachments), len(message.buttons or ())
    sending_checks.check_size(channels.kind_of(channel), message.text or "", files, buttons)
    if message.expires_at is not None and message.send_at >= message.expires_at:
        raise Invalid(Fault("/send_at", "The message will have expired by then."))


def _queue_due(workspace_ids: Sequence[str], each: int) -> Counter[str]:
    """Queues the first due messages of each workspace; returns how many, by workspace."""
    found = rows(sql.prepared("find_due_messages", _DUE), {"owners": sql.array(workspace_ids), "each": each})
    batch = [MessageIds(*row) for row in found]
    if not batch:
        return Counter()
    with transaction():
        tasks = [partial(_queue, due, number) for number, due in enumerate(batch)]
        needed = [key for due in batch for key in due.keys]
        results = batches.run(tasks, needed, then=partial(_read_further, batch), in_order=False)
        # Such an error is Bellhop's own and would recur, so the message fails without another attempt.
        _give_up([due for due, result in zip(batch, results, strict=True) if _is_broken(due, result)])
    done = (due for due, result in zip(batch, results, strict=True) if result and not isinstance(result, Busy))
    return Counter(due.workspace_id for due in done)


def _read_further(batch: Sequence[MessageIds], unit: Unit) -> None:
    keys = {sets.key(Conversation, due.workspace_id, "id", due.conversation_id) for due in batch}
    outboxes.prefetch(unit, (key.value for key in keys if unit.is_free(key)))


def _queue(due: MessageIds, number: int, unit: Unit) -> bool:
    """Queues the message as if it were written now.

    Returns False if the message is gone, no longer scheduled, or not due yet. Raises NotFound, Busy.
    """
    change = Change(due.workspace_id, {}, due.message_id, "messages.queue", None, Cause(None, uuid4().hex), unit)
    message = unit.get(Message, due.workspace_id, "id", due.message_id)
    if message is None or message.send_at is None or message.send_at > unit.now:
        return False
    contact, conversation = conversations.hold(change, message.conversation_id)
    conversation = count(unit, conversation, -1)
    if channels.seen_by(unit, conversation.channel_id).deleted_at is None:
        conversation = conversations.reopen(change, contact, conversation)
    if message.author["type"] == "member":
        conversation = conversations.hold_runs(unit, conversation)
    # Messages that are queued together are sent in the order of their times.
    queued_at = unit.now + timedelta(microseconds=number)
    queued = message.altered(status="queued", send_at=None, created_at=queued_at)
    messages.queue_draft(change, contact, conversation, queued)
    return True


def _is_broken(due: MessageIds, result: object) -> bool:
    is_so = isinstance(result, Exception) and not isinstance(result, Busy)
    if is_so:
        log.error("message.not_queued", message=due.message_id, exc_info=result)
    return is_so


def _give_up(broken: Sequence[MessageIds]) -> None:
    if broken:
        ended = rows(_END, (json.dumps(_BROKEN).decode(), [due.message_id for due in broken]))
        rows(_COUNT_AGAIN, ([due.conversation_id for due in broken],))
        sending_outcomes.tell([message_id for (message_id,) in ended])


_OF_CONVERSATION = """
    SELECT id FROM messages
    WHERE conversation_id = %s AND send_at IS NOT NULL AND cancel_on_reply ORDER BY send_at, id
"""
_OF_CHANNEL = """
    SELECT messages.workspace_id, messages.id, conversation_id, conversations.contact_id
    FROM messages JOIN conversations ON conversations.id = conversation_id
    WHERE messages.workspace_id = %s AND send_at IS NOT NULL AND messages.channel_id = %s LIMIT %s
"""
# Steps through the index from one workspace with scheduled messages to the next. Returns the workspaces with a due one.
_OWNERS = """
    WITH RECURSIVE owner(id, earliest) AS (
        (SELECT workspace_id, send_at FROM messages WHERE send_at IS NOT NULL
            ORDER BY workspace_id, send_at, id LIMIT 1)
        UNION ALL
        SELECT next.workspace_id, next.send_at FROM owner CROSS JOIN LATERAL (
            SELECT workspace_id, send_at FROM messages WHERE send_at IS NOT NULL AND workspace_id > owner.id
            ORDER BY workspace_id, send_at, id LIMIT 1) AS next
    )
    SELECT id FROM owner WHERE earliest <= now()
"""
_DUE = """
    SELECT due.workspace_id, due.id, due.conversation_id, talk.contact_id
    FROM unnest(%(owners)s::text[]) AS owner CROSS JOIN LATERAL (
        SELECT id, workspace_id, conversation_id, send_at FROM messages
        WHERE workspace_id = owner AND send_at <= now() ORDER BY send_at, id LIMIT %(each)s) AS due
    CROSS JOIN LATERAL (SELECT contact_id FROM conversations WHERE id = due.conversation_id LIMIT 1) AS talk
    ORDER BY due.send_at, due.id
"""
_END = f"""
    UPDATE messages SET failure = %s::json, {message_statuses.ENDING}
    WHERE id = ANY(%s) AND status = 'scheduled' RETURNING id
"""
_COUNT_AGAIN = """
    UPDATE conversations SET scheduled = (
        SELECT count(*) FROM messages WHERE conversation_id = conversations.id AND send_at IS NOT NULL)
    WHERE id = ANY(%s) RETURNING id
"""
