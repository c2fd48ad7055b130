"""Queues scheduled messages whose time has come, each exactly once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import NamedTuple
from uuid import uuid4

import structlog

from app import sql
from app.database import rows, transaction
from app.domain.channels import channels, outboxes
from app.domain.conversations import conversations, message_statuses, messages, scheduled_messages, sending_outcomes
from app.domain.triggers import batches
from app.domain.work import equal_parts
from app.domain.work.changes import Change
from app.domain.work.events import Cause
from app.domain.work.units import Busy, Unit
from app.lib import json
from app.models import sets
from app.models.conversations import Conversation, Message
from app.models.sets import Key

log = structlog.get_logger(__name__)

IS_ANY_DUE = "EXISTS (SELECT FROM messages WHERE send_at <= now())"
_BROKEN = {"code": "error", "detail": "Bellhop could not send this."}


class _Due(NamedTuple):
    """A scheduled message whose time has come."""

    id: str
    workspace_id: str
    conversation_id: str
    contact_id: str

    @property
    def needs(self) -> list[Key]:
        return scheduled_messages.keys_of(self.workspace_id, self.id, self.conversation_id, self.contact_id)


def queue_some() -> int:
    """Queues due scheduled messages until none is left or the time slice is over; returns how many.

    Run it twice a second. Each workspace gets an equal part of a slice. Safe to run concurrently: each message is
    queued once.
    """
    owners = (owner for (owner,) in rows(sql.prepared("find_owners_of_due_messages", _OWNERS)))
    return equal_parts.serve(owners, _queue_due)


def _queue_due(workspace_ids: Sequence[str], each: int) -> Counter[str]:
    """Queues the first due messages of these workspaces; returns how many were queued per workspace."""
    found = rows(sql.prepared("find_due_messages", _DUE), {"owners": sql.array(workspace_ids), "each": each})
    batch = [_Due(*row) for row in found]
    if not batch:
        return Counter()
    with transaction():
        tasks = [partial(_queue, due, number) for number, due in enumerate(batch)]
        needed = [key for due in batch for key in due.needs]
        results = batches.run(tasks, needed, then=partial(_read_further, batch), in_order=False)
        # Such an error is Bellhop's own and would recur, so the message fails without another attempt.
        _give_up([due for due, result in zip(batch, results, strict=True) if _is_broken(due, result)])
    done = (due for due, result in zip(batch, results, strict=True) if result and not isinstance(result, Busy))
    return Counter(due.workspace_id for due in done)


def _read_further(batch: Sequence[_Due], unit: Unit) -> None:
    keys = {sets.key(Conversation, due.workspace_id, "id", due.conversation_id) for due in batch}
    outboxes.prefetch(unit, (key.value for key in keys if unit.is_free(key)))


def _queue(due: _Due, number: int, unit: Unit) -> bool:
    """Queues the message as if it were written now.

    Returns False if the message is gone, no longer scheduled, or not due yet. Raises NotFound, Busy.
    """
    change = Change(due.workspace_id, {}, due.id, "messages.queue", None, Cause(None, uuid4().hex), unit)
    message = unit.get(Message, due.workspace_id, "id", due.id)
    if message is None or message.send_at is None or message.send_at > unit.now:
        return False
    contact, conversation = conversations.hold(change, message.conversation_id)
    conversation = scheduled_messages.count(unit, conversation, -1)
    if channels.seen_by(unit, conversation.channel_id).deleted_at is None:
        conversation = conversations.reopen(change, contact, conversation)
    if message.author["type"] == "member":
        conversation = conversations.hold_runs(unit, conversation)
    # Messages that are queued together are sent in the order of their times.
    queued_at = unit.now + timedelta(microseconds=number)
    queued = message.altered(status="queued", send_at=None, created_at=queued_at)
    messages.queue_draft(change, contact, conversation, queued)
    return True


def _is_broken(due: _Due, result: object) -> bool:
    is_so = isinstance(result, Exception) and not isinstance(result, Busy)
    if is_so:
        log.error("message.not_queued", message=due.id, exc_info=result)
    return is_so


def _give_up(broken: Sequence[_Due]) -> None:
    if broken:
        ended = rows(_END, (json.dumps(_BROKEN).decode(), [due.id for due in broken]))
        rows(_COUNT_AGAIN, ([due.conversation_id for due in broken],))
        sending_outcomes.tell([message_id for (message_id,) in ended])


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
    SELECT due.id, due.workspace_id, due.conversation_id, talk.contact_id
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
