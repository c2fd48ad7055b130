"""Changes of members: their availability and capacity, and the conversations they give back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.database import rows, transaction
from app.domain.assignment import assignments
from app.domain.conversations import conversation_changes, conversations
from app.domain.jobs import jobs
from app.domain.people import members, roles
from app.domain.work import audit
from app.domain.work.changes import Change, Effect, Write
from app.errors import InsufficientScope, NotFound
from app.lib import request_ids
from app.models.contacts import Contact
from app.models.conversations import Conversation
from app.models.members import Member

MOST_CAPACITY = 10_000
# The most conversations that one transaction gives back.
PART = 200
_NOT_YOURS = "Your role in this workspace lets you change your own availability, and nothing of other members."


def check(workspace_id: str, payload: Mapping[str, Any], member_id: str, actor_id: str | None) -> None:
    """Raises NotFound, and InsufficientScope if the actor may not make the change.

    Agents may change their own availability. Tokens, and roles with `availability.manage`, may change everything.
    """
    if not members.exists(workspace_id, member_id):
        raise NotFound
    if actor_id is None or not actor_id.startswith("mem_") or (actor_id == member_id and "capacity" not in payload):
        return
    if not roles.may(members.find(workspace_id, actor_id).role, "availability.manage"):
        raise InsufficientScope(_NOT_YOURS)


def update(change: Change) -> Effect | None:
    """Changes availability and capacity. Raises NotFound, InsufficientScope, Busy.

    A member who goes away gives back waiting conversations, unless `reassign` is false. This runs in parts: returns
    None if more are left.
    """
    if change.progress is not None:
        return give_back(change)
    check(change.workspace_id, change.payload, change.target, change.actor_id)
    columns = {name: change.payload[name] for name in ("availability", "capacity") if name in change.payload}
    if columns:
        Member.update(**columns).where(Member.id == change.target).execute()
        audit.record(change, "member", change.target, change.payload)
    if columns.get("availability") != "away" or not change.payload.get("reassign", True):
        return Effect("changed", "member", change.target)
    change.keep(after="")
    return None


def remove(workspace_id: str, member_id: str, actor_id: str | None) -> None:
    """Removes a member, who loses access at once. If the workspace uses the rule, queues a job.

    The job gives back the member's conversations that wait for an answer. Raises NotFound, and Conflict for the last
    owner.
    """
    trace_id = request_ids.kept_or_new(None)
    with transaction():
        members.remove(workspace_id, member_id, actor_id)
        if assignments.balanced_channels(workspace_id):
            jobs.follow(Write(workspace_id, "members.give_back", {}, trace_id, member_id, actor_id), "member")


def give_back(change: Change) -> Effect | None:
    """Unassigns the member's conversations with waiting contacts; they keep their place in the queue.

    Leaves out channels without the rule. Runs in parts: returns None if more are left. Raises Busy.
    """
    last = None
    if channel_ids := assignments.balanced_channels(change.workspace_id):
        after = (change.progress or {}).get("after", "")
        found = rows(_WAITING, (change.workspace_id, change.target, after, channel_ids, PART))
        last = conversation_changes.change_some(change, found, _unassign)
    if last is None:
        return Effect("changed", "member", change.target)
    change.keep(after=last)
    return None


def _unassign(change: Change, contact: Contact, conversation: Conversation) -> None:
    if conversation.assignee_id == change.target:
        conversations.assign(change, contact, conversation, None)


_WAITING = """
    SELECT id, contact_id FROM conversations
    WHERE workspace_id = %s AND assignee_id = %s AND status = 'open' AND id > %s
        AND waiting_since IS NOT NULL AND channel_id = ANY(%s)
    ORDER BY id LIMIT %s
"""
