"""Snoozes: set an open conversation aside until a time, or until the contact writes.

Callers of `snooze` and `wake` have locked the contact.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial
from uuid import uuid4

import structlog

from app.database import rows, transaction
from app.domain.conversations import conversations
from app.domain.people import conversation_notifications
from app.domain.triggers import batches
from app.domain.work.changes import Change
from app.domain.work.events import Cause
from app.domain.work.units import Busy, Unit
from app.errors import Conflict, Fault, Invalid, NotFound
from app.lib import clock
from app.models import sets
from app.models.contacts import Contact
from app.models.conversations import Conversation

log = structlog.get_logger(__name__)

MOST_DAYS = 365
# The most conversations of a workspace that a pass wakes, and the most that one transaction wakes.
EACH, PART = 50, 200
IS_ANY_OVER = "EXISTS (SELECT FROM conversations WHERE snoozed_until <= now())"


def snooze(change: Change, contact: Contact, conversation: Conversation, until: datetime) -> Conversation:
    """Snoozes an open conversation until the time, and records the event. Raises Conflict."""
    if conversation.status != "open":
        raise Conflict("Only an open conversation can be snoozed. This one is closed.")
    if conversation.snoozed_until == until:
        return conversation
    snoozed = conversations.alter(change.unit, conversation, snoozed_until=until)
    conversations.record(change, "conversation.snoozed", contact, snoozed)
    return snoozed


def wake(change: Change, contact: Contact, conversation: Conversation) -> Conversation:
    """Ends the snooze, if there is one, and records the event."""
    if conversation.snoozed_until is None:
        return conversation
    woken = conversations.alter(change.unit, conversation, snoozed_until=None)
    conversations.record(change, "conversation.woken", contact, woken)
    return woken


def check(until: datetime | None) -> None:
    """Raises Invalid for a time that is past or too far ahead; None is always valid."""
    if until is not None and not is_possible(until, clock.now()):
        raise Invalid(Fault("/snoozed_until", f"Give a time that is to come, within {MOST_DAYS} days, or null."))


def is_possible(until: datetime, now: datetime) -> bool:
    """Whether a conversation can be snoozed until that time."""
    return now < until <= now + timedelta(days=MOST_DAYS)


def wake_some() -> int:
    """Wakes due conversations, up to EACH per workspace; returns how many. Run it each second."""
    due, woken = rows(_DUE, {"each": EACH}), 0
    for first in range(0, len(due), PART):
        part = due[first : first + PART]
        tasks = [partial(_wake, workspace_id, conversation_id) for workspace_id, _, conversation_id in part]
        needs = [
            sets.key(model, workspace_id, "id", row_id)
            for workspace_id, contact_id, conversation_id in part
            for model, row_id in ((Contact, contact_id), (Conversation, conversation_id))
        ]
        with transaction():
            results = batches.run(tasks, needs, in_order=False)
        for result in results:
            if isinstance(result, Exception) and not isinstance(result, Busy | NotFound):
                log.error("snooze.not_ended", exc_info=result)
        woken += results.count(True)
    return woken


def _wake(workspace_id: str, conversation_id: str, unit: Unit) -> bool:
    """Wakes the conversation if its time has come; returns whether it did. Raises NotFound, Busy."""
    change = Change(workspace_id, {}, conversation_id, "conversations.wake", None, Cause(None, uuid4().hex), unit)
    contact, conversation = conversations.hold(change, conversation_id)
    if conversation.snoozed_until is None or conversation.snoozed_until > unit.now:
        return False
    conversation_notifications.woken(unit, wake(change, contact, conversation))
    return True


# Steps through the index from one workspace with snoozed conversations to the next; returns the first due ones of each.
_DUE = """
    WITH RECURSIVE owner(id, earliest) AS (
        (SELECT workspace_id, snoozed_until FROM conversations WHERE snoozed_until IS NOT NULL
            ORDER BY workspace_id, snoozed_until LIMIT 1)
        UNION ALL
        SELECT next.workspace_id, next.snoozed_until FROM owner CROSS JOIN LATERAL (
            SELECT workspace_id, snoozed_until FROM conversations
            WHERE snoozed_until IS NOT NULL AND workspace_id > owner.id
            ORDER BY workspace_id, snoozed_until LIMIT 1) AS next
    )
    SELECT owner.id, due.contact_id, due.id FROM owner CROSS JOIN LATERAL (
        SELECT contact_id, id FROM conversations
        WHERE workspace_id = owner.id AND snoozed_until <= now() ORDER BY snoozed_until LIMIT %(each)s) AS due
    WHERE owner.earliest <= now()
"""
