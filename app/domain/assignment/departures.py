"""Departures: remove members, and return their waiting conversations to the queue."""

from __future__ import annotations

from app.database import transaction
from app.domain.assignment import assignments
from app.domain.jobs import jobs
from app.domain.people import members
from app.domain.work.changes import Write
from app.lib import request_ids


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
