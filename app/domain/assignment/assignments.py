"""Assignments by rule: unassigned conversations go to the member with the fewest open ones.

Only available members with room get any. The rule applies to channels whose setting `assignment` is `balanced`. Their
open conversations that are unassigned and not snoozed form a queue: first the ones whose contact waits for an answer,
the longest waiting first. Assigning locks the member's row, so that no capacity is exceeded, however many processes
assign.
"""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Literal
from uuid import uuid4

import structlog

from app import sql
from app.database import rows, transaction
from app.domain.channels import channels
from app.domain.conversations import conversation_counts, conversations
from app.domain.people.members import MOST_MEMBERS
from app.domain.triggers import batches
from app.domain.work.changes import Change
from app.domain.work.events import Cause
from app.domain.work.units import Unit
from app.errors import NotFound
from app.models import sets
from app.models.channels import Channel
from app.models.contacts import Contact
from app.models.conversations import Conversation
from app.models.members import Member

log = structlog.get_logger(__name__)

# The most conversations that one transaction assigns. All are of one workspace.
PART = 50
# The most channels that one call examines.
MOST_CHANNELS = 2_000
# How long one call continues if more conversations are queued.
SLICE_SECONDS = 0.25
_IS_BALANCED = "settings->>'assignment' = 'balanced' AND deleted_at IS NULL"
IS_ANY_BALANCED = f"EXISTS (SELECT FROM channels WHERE {_IS_BALANCED})"
_NEVER = datetime.min.replace(tzinfo=UTC)
# Counting stops here: a longer queue is "more than this".
MOST_QUEUED = 1_000


def assign_some(after: str) -> tuple[str, int]:
    """Assigns from the queues of the next channels, until nothing is left or the slice is over.

    Workspaces take turns. Returns the channel to continue after ("" to start over), and how many conversations were
    assigned. Call it twice a second, first with "". Safe to run concurrently.
    """
    ends, assigned = time.monotonic() + SLICE_SECONDS, 0
    found = rows(sql.prepared("find_queues", _READY), {"after": after, "most": MOST_CHANNELS})
    ready = [(workspace_id, channel_ids) for _, workspace_id, channel_ids in found if workspace_id is not None]
    random.shuffle(ready)
    left = deque(ready)
    while left:
        owner = left.popleft()
        number = _assign_of(*owner)
        assigned += number
        if number == PART:
            left.append(owner)
        if time.monotonic() > ends:
            break
    return found[0][0], assigned


def balanced_channels(workspace_id: str) -> list[str]:
    """Returns the workspace's channels to which the rule applies."""
    found = rows(f"SELECT id FROM channels WHERE workspace_id = %s AND {_IS_BALANCED}", (workspace_id,))
    return [channel_id for (channel_id,) in found]


def choose(settings: Mapping[str, Any], members: Sequence[Member], loads: Mapping[str, int]) -> Member | None:
    """Returns the member who gets the next conversation of a channel with these settings.

    None if nobody has room. `loads`: the number of open conversations of each member.
    """
    suitable = [
        member
        for member in members
        if member.availability == "available"
        and is_chosen(settings, member.id)
        and (member.capacity is None or loads[member.id] < member.capacity)
    ]
    return min(suitable, key=lambda each: (loads[each.id], each.assigned_at or _NEVER, each.id), default=None)


def is_chosen(settings: Mapping[str, Any], member_id: str) -> bool:
    """Returns whether the channel's settings let the rule choose that member."""
    return settings.get("member_ids") is None or member_id in settings["member_ids"]


@dataclass(frozen=True, slots=True)
class NextAssignee:
    """The next member and their `load` of open conversations, or the `reason` why there is none.

    `gone`: all chosen members have left the workspace. `queued`: how many conversations wait, up to MOST_QUEUED + 1.
    """

    reason: Literal["gone", "away", "full"] | None
    member_id: str | None
    load: int
    queued: int


def next_assignee(channel: Channel) -> NextAssignee | None:
    """Returns who would get the channel's next conversation now; None for a channel without the rule."""
    if channel.settings.get("assignment") != "balanced":
        return None
    [(queued,)] = rows(_QUEUED, (channel.id, MOST_QUEUED + 1))
    members = list(Member.in_workspace(channel.workspace_id).order_by(Member.id).limit(MOST_MEMBERS))
    chosen = [member for member in members if is_chosen(channel.settings, member.id)]
    available = [member for member in chosen if member.availability == "available"]
    loads = conversation_counts.of_members(channel.workspace_id, [member.id for member in available])
    if (following := choose(channel.settings, available, loads)) is not None:
        return NextAssignee(None, following.id, loads[following.id], queued)
    return NextAssignee("full" if available else "away" if chosen else "gone", None, 0, queued)


def _assign_of(workspace_id: str, channel_ids: Sequence[str]) -> int:
    """Assigns the first conversations in the channels' queue, in order; returns how many.

    Stops at the first whose contact another transaction has locked, to keep the order of the queue.
    """
    members = [sets.key(Member, workspace_id, "id", member_id) for (member_id,) in rows(_AVAILABLE, (workspace_id,))]
    queue = rows(_QUEUE, {"channels": sql.array(channel_ids), "part": PART})
    tasks = [partial(_assign, workspace_id, conversation_id, members) for conversation_id, _ in queue]
    needs = [
        *members,
        *(sets.key(Contact, workspace_id, "id", contact_id) for _, contact_id in queue),
        *(sets.key(Conversation, workspace_id, "id", conversation_id) for conversation_id, _ in queue),
    ]
    with transaction():
        results = batches.run(tasks, needs)
    for result in results:
        if isinstance(result, Exception) and not isinstance(result, NotFound):
            log.error("assignment.failed", exc_info=result)
    return results.count(True)


def _assign(workspace_id: str, conversation_id: str, members: Sequence[sets.Key], unit: Unit) -> bool:
    """Assigns the conversation, if it is still queued and a member has room; returns whether it did."""
    change = Change(workspace_id, {}, conversation_id, "conversations.assign", None, Cause(None, uuid4().hex), unit)
    contact, conversation = conversations.hold(change, conversation_id)
    channel = channels.seen_by(unit, conversation.channel_id)
    if conversation.status != "open" or conversation.assignee_id or conversation.snoozed_until or channel.deleted_at:
        return False
    member = _next(unit, channel, members)
    if member is None:
        return False
    conversations.assign(change, contact, conversation, member.id, by={"type": "rule", "id": channel.id})
    return True


def _next(unit: Unit, channel: Channel, members: Sequence[sets.Key]) -> Member | None:
    """Returns the member whom the channel's rule chooses, and counts the load; None if it has none."""
    if channel.settings.get("assignment") != "balanced":
        return None
    held = _locked(unit, members)
    # Read after the members were locked, in a statement of its own, which sees what was committed before.
    noted = ("open conversations of members", channel.workspace_id)
    loads = unit.noted(
        noted, lambda: conversation_counts.of_members(channel.workspace_id, [member.id for member in held])
    )
    chosen = choose(channel.settings, held, loads)
    if chosen is None:
        return None
    unit.notes[noted] = {**loads, chosen.id: loads[chosen.id] + 1}
    latest = max(member.assigned_at or _NEVER for member in held)
    return unit.put(chosen.altered(assigned_at=max(unit.now, latest + timedelta(microseconds=1))))


def _locked(unit: Unit, members: Sequence[sets.Key]) -> list[Member]:
    """Returns the members, locked, but for those whom another transaction may be assigning to."""
    unit.read(members)
    found = [unit.get(Member, *key[1:]) for key in members if unit.is_free(key)]
    return [member for member in found if member is not None]


IS_QUEUED = "status = 'open' AND assignee_id IS NULL AND snoozed_until IS NULL"
_AVAILABLE = "SELECT id FROM members WHERE workspace_id = %s AND availability = 'available' ORDER BY id"
_LOAD = conversation_counts.OPEN_OF.format("members.workspace_id", "members.id")
# Examines the next channels with the rule. Selects, by workspace, the channels with a queue and a member with room.
_READY = f"""
    WITH looked_at AS MATERIALIZED (
        SELECT id, workspace_id, settings FROM channels
        WHERE {_IS_BALANCED} AND id > %(after)s ORDER BY id LIMIT %(most)s
    ), queued AS MATERIALIZED (
        SELECT * FROM looked_at WHERE EXISTS (
            SELECT FROM conversations WHERE channel_id = looked_at.id AND {IS_QUEUED})
    ), free AS MATERIALIZED (
        SELECT members.id, workspace_id FROM (SELECT DISTINCT workspace_id FROM queued) AS owners
        JOIN members USING (workspace_id)
        WHERE availability = 'available'
            AND (capacity IS NULL OR capacity > {_LOAD})
    ), ready AS (
        SELECT workspace_id, array_agg(id) AS channel_ids FROM queued WHERE EXISTS (
            SELECT FROM free WHERE free.workspace_id = queued.workspace_id
                AND (settings->>'member_ids' IS NULL OR (settings->'member_ids')::jsonb ? free.id))
        GROUP BY workspace_id
    )
    SELECT last.id, ready.workspace_id, ready.channel_ids
    FROM (SELECT CASE WHEN count(*) = %(most)s THEN max(id) ELSE '' END AS id FROM looked_at) AS last
    LEFT JOIN ready ON true
"""
_QUEUE = f"""
    SELECT queued.id, queued.contact_id FROM unnest(%(channels)s::text[]) AS channel(id) CROSS JOIN LATERAL (
        SELECT id, contact_id, waiting_since FROM conversations
        WHERE channel_id = channel.id AND {IS_QUEUED} ORDER BY waiting_since, id LIMIT %(part)s) AS queued
    ORDER BY queued.waiting_since, queued.id LIMIT %(part)s
"""
_QUEUED = f"""
    SELECT count(*) FROM (
        SELECT FROM conversations WHERE channel_id = %s AND {IS_QUEUED} LIMIT %s) AS queued
"""
