"""Failed jobs: each may be replayed as a new one, once, or discarded with a reason."""

from __future__ import annotations

from app.database import count
from app.domain.jobs import jobs
from app.domain.jobs.idempotency_keys import RequestKey
from app.domain.jobs.jobs import Write
from app.domain.work import audit
from app.domain.work.changes import Change, Effect
from app.errors import Conflict
from app.models.jobs import Job

_NOT_KEPT = (
    "What this job was asked to do is not kept, because it was refused for a reason of its own. Send the write again "
    "when that reason is gone."
)
_NO_LINES = "The lines of an import are not kept once it has ended. Send those that failed again."


def replay(failed: Job, trace_id: str, actor_id: str | None, key: RequestKey | None = None) -> tuple[Job, bool]:
    """Accepts a new job that asks for the same, about the same resource, and goes on where the failed one was.

    Returns it, and whether it was there before. Raises Conflict unless the job has failed with its payload kept and
    was neither replayed nor discarded, and IdempotencyKeyReused.
    """
    write = Write(failed.workspace_id, failed.kind, failed.payload or {}, trace_id, failed.resource_id, actor_id)

    def take_over(job_id: str) -> None:
        if failed.kind == "contacts.import" or not count(_TAKE_OVER, {"new": job_id, "old": failed.id}):
            present = Job.find(failed.workspace_id, failed.id)
            refuse(present)
            refuse_replay(present)
        detail = {"kind": failed.kind, "replayed_as": job_id}
        audit.note(failed.workspace_id, actor_id, "jobs.replay", "job", failed.id, detail, trace_id)

    job, was_there = jobs.accept(write, key, take_over)
    if not was_there:
        job.replayed_from = failed.id
    return job, was_there


def discard(change: Change) -> Effect:
    """Marks the failed job, so that it is no open failure any more, and forgets what it was asked to do.

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


def refuse(job: Job) -> None:
    """Raises Conflict if the job has not failed, or if it was replayed or discarded."""
    if job.status != "failed":
        raise Conflict(f"This job is {job.status}. Only one that has failed can be replayed or discarded.")
    if job.replayed_as is not None:
        raise Conflict(f"This job was replayed as {job.replayed_as}.")
    if job.discarded_at is not None:
        raise Conflict("This job was discarded.")


def refuse_replay(job: Job) -> None:
    """Raises Conflict if what the failed job was asked to do is not kept."""
    if job.kind == "contacts.import":
        raise Conflict(_NO_LINES)
    if job.payload is None:
        raise Conflict(_NOT_KEPT)


_OPEN = "status = 'failed' AND replayed_as IS NULL AND discarded_at IS NULL"

# The new job has the payload from here on, and the progress of a write that takes several transactions.
_TAKE_OVER = f"""
    WITH taken AS (
        UPDATE jobs SET replayed_as = %(new)s, payload = NULL
        WHERE id = %(old)s AND payload IS NOT NULL AND {_OPEN}
        RETURNING id, progress
    )
    UPDATE jobs SET replayed_from = taken.id, progress = taken.progress FROM taken WHERE jobs.id = %(new)s
"""

_DISCARD = f"""
    UPDATE jobs SET discarded_at = now(), discard_reason = %s, payload = NULL
    WHERE id = %s AND workspace_id = %s AND {_OPEN}
"""
