"""Failed jobs: each may be replayed as a new job, once, or discarded with a reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from app.config import settings
from app.database import count, rows, transaction
from app.domain.work import audit
from app.domain.work.changes import Change, Effect
from app.errors import Conflict
from app.lib import json
from app.models.jobs import Job
from app.problems import problem_document

_NOT_KEPT = (
    "What this job was asked to do is not kept, because it was refused for a reason of its own. Send the write again "
    "when that reason is gone."
)
_UNKNOWN = "No worker knew this kind of write, so the operator gave it up. Nothing was changed."
_NO_LINES = "The lines of an import are not kept once it has ended. Send those that failed again."


def discard(change: Change) -> Effect:
    """Discards the failed job: it is no longer an open failure, and its payload is deleted.

    Does nothing if it is discarded already. Raises NotFound, and Conflict if it has not failed or was replayed.
    """
    reason = change.payload["reason"]
    if count(_DISCARD, (reason, change.target, change.workspace_id)):
        audit.record(change, "job", change.target, {"reason": reason})
    else:
        job = Job.find(change.workspace_id, change.target)
        if job.discarded_at is None:
            refuse(job)
    return Effect("changed", "job", change.target)


def give_up(job_ids: Sequence[str]) -> set[str]:
    """Fails the jobs among `job_ids` whose kind no worker knows; returns their ids.

    Such a job may be replayed.
    """
    with transaction():
        problem = problem_document("unavailable", _UNKNOWN, base_url=settings().base_url)
        given_up = rows(_GIVE_UP, (json.dumps(problem).decode(), list(job_ids)))
        for job_id, workspace_id, kind in given_up:
            audit.note(workspace_id, None, "jobs.cancel", "job", job_id, {"kind": kind})
    return {job_id for job_id, *_ in given_up}


def check(workspace_id: str, _: Mapping[str, Any], job_id: str, *__: object) -> None:
    """Raises NotFound, and Conflict for a job that cannot be discarded even once it has ended."""
    job = Job.find(workspace_id, job_id)
    if job.is_finished and job.discarded_at is None:
        refuse(job)


def refuse(job: Job) -> None:
    """Raises Conflict if the job has not failed, or was replayed or discarded."""
    if job.status != "failed":
        raise Conflict(f"This job is {job.status}. Only one that has failed can be replayed or discarded.")
    if job.replayed_as is not None:
        raise Conflict(f"This job was replayed as {job.replayed_as}.")
    if job.discarded_at is not None:
        raise Conflict("This job was discarded.")


def refuse_replay(job: Job) -> None:
    """Raises Conflict if the failed job's payload is not kept."""
    if job.kind == "contacts.import":
        raise Conflict(_NO_LINES)
    if job.payload is None:
        raise Conflict(_NOT_KEPT)


# The condition for open failures. It must stay equal to the condition of their index.
OPEN = "status = 'failed' AND replayed_as IS NULL AND discarded_at IS NULL"

_DISCARD = f"""
    UPDATE jobs SET discarded_at = now(), discard_reason = %s, payload = NULL, broke = NULL
    WHERE id = %s AND workspace_id = %s AND {OPEN}
"""

_GIVE_UP = """
    UPDATE jobs
    SET status = 'failed', unknown_since = NULL, finished_at = clock_timestamp(),
        problem = (%s::jsonb || jsonb_build_object('traceId', trace_id))::json
    WHERE id = ANY(%s) AND unknown_since IS NOT NULL
    RETURNING id, workspace_id, kind
"""
