"""Writes: accepts them durably as jobs, and applies the jobs in order, each once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any

import structlog
from structlog.contextvars import bind_contextvars

from app import mailbox, metrics, sql
from app.config import settings
from app.database import count, rows, transaction
from app.domain.jobs import failed_jobs, idempotency_keys, jobs
from app.domain.jobs.idempotency_keys import RequestKey
from app.domain.jobs.jobs import LONG, MAIL
from app.domain.triggers import batches
from app.domain.verbs import VERBS
from app.domain.work import audit
from app.domain.work.changes import Change, Effect, Write
from app.domain.work.events import Cause
from app.domain.work.units import Unit
from app.errors import BellhopError, Conflict
from app.lib import breakages, ids, json
from app.logs import tracing
from app.mailbox import Claimed
from app.models.jobs import Job
from app.models.sets import Key
from app.problems import problem_of_error

if TYPE_CHECKING:
    from app.logs.spans import Spans

log = structlog.get_logger(__name__)

# A transaction with more than 64 savepoints makes everyone's snapshots slower: PostgreSQL caches only that many.
BATCH = 50
# The pause before retrying a job that needs a row that another transaction holds.
BUSY_SECONDS = 0.005
# A job fails after this many workers have died while working on this job alone.
MOST_DEATHS = 3


def submit(
    write: Write,
    key: RequestKey | None = None,
    check: Callable[[], object] | None = None,
    store: Callable[[str], None] | None = None,
) -> tuple[Job, bool]:
    """Accepts the write like `accept`, after `check`, and the check and quota of its verb.

    If they raise an error, such as NotFound, an equal request that was accepted before still gets its job.
    """
    verb = VERBS[write.kind]
    try:
        if check is not None:
            check()
        if verb.check is not None:
            verb.check(write.workspace_id, write.payload, write.resource_id, write.actor_id)
        if verb.quota is not None:
            verb.quota.check(write.workspace_id)
    except BellhopError:
        earlier = idempotency_keys.find(write.actor_id, key) if key else None
        if earlier is None:
            raise
        return earlier, True
    return accept(write, key, store)


def accept(write: Write, key: RequestKey | None = None, store: Callable[[str], None] | None = None) -> tuple[Job, bool]:
    """Stores the write durably and rings for it. Returns its job, and whether the job existed before.

    Atomic: among equal requests with one key, one makes the job and the others get it. `store` is called with the job's
    id in the same transaction, to store what the write needs besides its payload. Raises IdempotencyKeyReused.
    """
    columns: dict[str, Any] = {
        "id": ids.new("job"),
        "workspace_id": write.workspace_id,
        "actor_id": write.actor_id,
        "kind": write.kind,
        "resource_type": VERBS[write.kind].resource_type,
        "resource_id": write.resource_id,
        "trace_id": write.trace_id,
    }
    job = Job(**columns, status="queued", payload=write.payload)
    columns["payload"] = json.dumps(write.payload).decode()
    if key:
        columns |= {"key": key.key, "fingerprint": key.fingerprint, "window": idempotency_keys.WINDOW}
    statement, comes_first = sql.prepared("accept_once" if key else "accept"), VERBS[write.kind].comes_first
    if store is None and not comes_first:
        stored = rows(statement, columns)
    else:
        with transaction():
            stored = rows(statement, columns)
            if stored and comes_first:
                count(_COME_FIRST, (job.id, write.workspace_id, write.resource_id, job.id))
            if stored and store is not None:
                store(job.id)
    if not stored:
        assert key is not None
        return idempotency_keys.find_taken(write.actor_id, key), True
    job.created_at = stored[0][0]
    mailbox.ring(MAIL, write.workspace_id)
    metrics.JOBS_ACCEPTED.labels(job.kind).inc()
    bind_contextvars(job=job.id)  # so that the request's log line names the job
    return job, False


def replay(failed: Job, trace_id: str, actor_id: str | None, key: RequestKey | None = None) -> tuple[Job, bool]:
    """Accepts a new job with the payload, resource and progress of the failed one.

    Returns the job, and whether it existed before. Raises Conflict unless the failed job's payload is kept and it was
    neither replayed nor discarded. Raises IdempotencyKeyReused.
    """
    if failed.kind not in VERBS:
        raise Conflict("This version does not know this kind of write.")
    write = Write(failed.workspace_id, failed.kind, failed.payload or {}, trace_id, failed.resource_id, actor_id)

    def take_over(job_id: str) -> None:
        if failed.kind == "contacts.import" or not count(_TAKE_OVER, {"new": job_id, "old": failed.id}):
            present = Job.find(failed.workspace_id, failed.id)
            failed_jobs.refuse(present)
            failed_jobs.refuse_replay(present)
        detail = {"kind": failed.kind, "replayed_as": job_id}
        audit.note(failed.workspace_id, actor_id, "jobs.replay", "job", failed.id, detail, trace_id)

    job, was_there = accept(write, key, take_over)
    if not was_there:
        job.replayed_from = failed.id
    return job, was_there


def work(workspace_id: str) -> None:
    """Applies the workspace's waiting writes in order, until none is left or the slice is over."""
    mailbox.serve(MAIL, workspace_id, BATCH, _work_on)


def take_up_known(limit: int = 1_000) -> int:
    """Queues up to `limit` jobs of known kinds that were set aside; returns how many.

    Puts them before the waiting writes, which are younger, and rings for their workspaces. Also updates JOBS_UNKNOWN.
    """
    known = rows(
        f"""
        UPDATE jobs SET due_at = now(), unknown_since = NULL, position = {MAIL.first} WHERE id = ANY(ARRAY(
            SELECT id FROM jobs WHERE unknown_since IS NOT NULL AND kind = ANY(%s)
            ORDER BY unknown_since LIMIT %s FOR UPDATE SKIP LOCKED))
        RETURNING workspace_id
        """,
        (list(VERBS), limit),
    )
    for workspace_id in {workspace_id for (workspace_id,) in known}:
        mailbox.ring(MAIL, workspace_id)
    metrics.JOBS_UNKNOWN.set(sum(jobs.unknown().values()))
    return len(known)


def _work_on(batch: Sequence[Claimed]) -> None:
    apply = _apply_singly if any(claimed.is_suspect for claimed in batch) else _apply
    if not apply(batch):
        mailbox.release(MAIL, batch)
        time.sleep(BUSY_SECONDS)


def _apply_singly(batch: Sequence[Claimed]) -> bool:
    """Like `_apply`, but one job at a time, which shows which job kills its worker."""
    for claimed in batch:
        with mailbox.in_progress(MAIL, claimed, batch):
            is_through = _apply([claimed])
        if not is_through:
            return False
    return True


def _apply(batch: Sequence[Claimed]) -> bool:
    """Applies the batch in one transaction; returns False if it stops at a job whose rows are locked."""
    began = time.time()
    with transaction():
        if not mailbox.holding(MAIL, batch):
            log.warning("jobs.not_held", workspace=batch[0].owner, jobs=len(batch))
            return True
        claimed = Job.batch([each.id for each in batch])
        if unknown := [job for job in claimed if job.kind not in VERBS]:
            _set_aside(unknown)
        known = [job for job in claimed if job.kind in VERBS]
        ended, results = [], _run(known)
        for job, result in zip(known, results, strict=False):
            if result is None:
                _put_back(job)
            else:
                _end(job, result)
                _record(job)
                ended.append(job)
        rows(sql.load("finish_jobs"), _outcomes(ended))
    for job in ended:
        metrics.JOBS_FINISHED.labels(job.kind, job.status).inc()
        log.info("job.finished", request_id=job.trace_id, job=job.id, kind=job.kind, status=job.status)
    if tracing.spans is not None:
        _trace(tracing.spans, ended, began)
    return len(results) == len(known)


def _trace(spans: Spans, ended: Sequence[Job], began: float) -> None:
    """Adds a span for each ended job: from the start of the batch's transaction until now.

    The span of a long job, which is applied in parts, begins when its first part began.
    """
    now = time.time()
    for job in ended:
        start = min(began, job.started_at.timestamp()) if job.kind in LONG and job.started_at else began
        spans.add(
            job.kind,
            "CONSUMER",
            tracing.trace_of(job.trace_id),
            tracing.span_of(job.id),
            tracing.accepting(job.id) if job.actor_id else None,  # commands have no actor and send no span
            (start, now),
            {
                "messaging.system": "bellhop",
                "messaging.operation.type": "process",
                "messaging.destination.name": MAIL.queue,
                "messaging.message.id": job.id,
                "messaging.batch.message_count": len(ended),
                "bellhop.workspace.id": job.workspace_id,
                "bellhop.waited_ms": max(0, round((start - job.created_at.timestamp()) * 1000)),
            },
            job.problem["type"].rpartition("/")[2] if job.problem else None,
        )


def _run(jobs: Sequence[Job]) -> list[Effect | Exception | None]:
    """Returns each job's result or error, up to a job that needs a row another transaction holds."""
    results: list[Effect | Exception | None] = []
    for works_in_unit, group in groupby(jobs, lambda job: VERBS[job.kind].needs is not None):
        some = list(group)
        tasks = [partial(_call, job) for job in some]
        done = batches.run(tasks, _needs(some)) if works_in_unit else batches.run_each(tasks)
        results += done
        if len(done) < len(some):
            break
    return results


def _needs(jobs: Sequence[Job]) -> Iterator[Key]:
    for job in jobs:
        needs = VERBS[job.kind].needs
        assert needs is not None
        yield from needs(job.workspace_id, job.payload or {}, job.resource_id)


def _call(job: Job, unit: Unit) -> Effect | None:
    if job.deaths > MOST_DEATHS:
        raise RuntimeError(f"{MOST_DEATHS} workers died of job {job.id}")
    cause = Cause(job.id, job.trace_id)
    payload = job.payload or {}
    change = Change(job.workspace_id, payload, job.resource_id, job.kind, job.actor_id, cause, unit, job.progress)
    return VERBS[job.kind].call(change)


def _record(job: Job) -> None:
    """Records a change by staff in the audit log, unless the verb has recorded it already."""
    is_of_staff = job.actor_id is not None and job.actor_id.startswith("vis_")
    if is_of_staff and job.status == "succeeded" and not VERBS[job.kind].is_audited:
        assert job.resource_type is not None
        assert job.resource_id is not None
        target = job.resource_type, job.resource_id
        audit.note(job.workspace_id, job.actor_id, job.kind, *target, trace_id=job.trace_id, job_id=job.id)


def _end(job: Job, result: Effect | Exception) -> None:
    """Sets the job's outcome and calls its verb's `end`. Keeps the payload only if the job broke."""
    error = result.refusal if isinstance(result, Effect) else result
    job.status = "succeeded" if error is None else "failed"
    if isinstance(result, Effect):
        job.effect, job.resource_type, job.resource_id = result.kind, result.resource_type, result.resource_id
    if error is not None:
        job.problem = problem_of_error(error, job.trace_id, base_url=settings().base_url)
    if error is None or isinstance(error, BellhopError):
        job.payload = None
    else:  # the payload is kept for a replay
        job.broke = breakages.described(error)
        log.error("job.broke", request_id=job.trace_id, job=job.id, kind=job.kind, exc_info=error)
    if (end := VERBS[job.kind].end) is not None:
        end(str(job.resource_id))


def _put_back(job: Job) -> None:
    """Releases a long job for its next part, behind other writes if its verb `gives_way`."""
    # Deaths are counted for each part.
    rows("UPDATE jobs SET leased_until = NULL, deaths = 0 WHERE id = %s", (job.id,))
    if VERBS[job.kind].gives_way:
        jobs.give_way(job.id)


def _set_aside(unknown: Sequence[Job]) -> None:
    """Sets the jobs aside for a worker that knows their kinds, so that they block no other jobs."""
    aside = "status = 'queued', due_at = NULL, leased_until = NULL, unknown_since = now()"
    rows(f"UPDATE jobs SET {aside} WHERE id = ANY(%s)", ([job.id for job in unknown],))
    log.warning("jobs.unknown", kinds=sorted({job.kind for job in unknown}), jobs=len(unknown))


def _outcomes(jobs: Sequence[Job]) -> dict[str, list[Any]]:
    return {
        "ids": [job.id for job in jobs],
        "statuses": [job.status for job in jobs],
        "effects": [job.effect for job in jobs],
        "types": [job.resource_type for job in jobs],
        "resources": [job.resource_id for job in jobs],
        "problems": [json.dumps(job.problem).decode() if job.problem else None for job in jobs],
        "breakages": [json.dumps(job.broke).decode() if job.broke else None for job in jobs],
        "keeps": [job.payload is not None for job in jobs],
    }


# Moves a write before all waiting ones. Negative positions keep the order among the writes that come first. A write
# keeps its place if another unfinished write is about the same resource: a pause must not pass the write that creates
# the broadcast.
_COME_FIRST = f"""
    UPDATE jobs SET position = {MAIL.first}
    WHERE id = %s AND NOT EXISTS (
        SELECT FROM jobs other
        WHERE other.workspace_id = %s AND other.resource_id = %s AND other.due_at IS NOT NULL AND other.id <> %s)
"""

# From here on, only the new job has the payload. It also gets the progress of a write that runs in parts.
_TAKE_OVER = f"""
    WITH taken AS (
        UPDATE jobs SET replayed_as = %(new)s, payload = NULL, broke = NULL
        WHERE id = %(old)s AND payload IS NOT NULL AND {failed_jobs.OPEN}
        RETURNING id, progress
    )
    UPDATE jobs SET replayed_from = taken.id, progress = taken.progress FROM taken WHERE jobs.id = %(new)s
"""
