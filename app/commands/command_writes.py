"""Writes that commands request: accepted like writes of the API, and applied in this process."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from app.domain import writes
from app.domain.verbs import VERBS
from app.domain.work import audit
from app.domain.work.changes import Write
from app.errors import Conflict
from app.lib import ids
from app.models.jobs import Job

PAUSE_SECONDS = 0.02


def accept(workspace_id: str, kind: str, payload: Mapping[str, Any], resource_id: str | None) -> Job:
    """Accepts a write that the operator requests.

    If its verb writes no audit entry, this adds one that says that the write was requested.
    """
    write = Write(workspace_id, kind, payload, ids.new("cmd"), resource_id)

    def note(job_id: str) -> None:
        target = VERBS[kind].resource_type, str(resource_id)
        audit.note(workspace_id, None, kind, *target, trace_id=write.trace_id, job_id=job_id)

    return writes.accept(write, store=None if VERBS[kind].is_audited else note)[0]


def run(workspace_id: str, kind: str, payload: Mapping[str, Any], resource_id: str) -> Job:
    """Accepts a write and applies it. Returns the ended job. Raises Conflict if it failed."""
    [job] = apply([accept(workspace_id, kind, payload, resource_id)])
    if job.problem:
        raise Conflict(job.problem["detail"])
    return job


def apply(accepted: Sequence[Job]) -> list[Job]:
    """Applies the accepted jobs, and returns them once they have ended.

    Also applies all earlier writes of their workspaces. Workers may apply some of them at the same time.
    """
    ended = list(accepted)
    while waiting := [job for job in ended if not job.is_finished]:
        for workspace_id in {job.workspace_id for job in waiting}:
            writes.work(workspace_id)
        ended = Job.batch([job.id for job in ended])
        if not all(job.is_finished for job in ended):
            time.sleep(PAUSE_SECONDS)
    return ended
