"""Jobs: every write, accepted first and applied later, in order, once."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import structlog
from peewee import SQL
from structlog.contextvars import bind_contextvars

from app import mailbox, metrics, sql
from app.config import settings
from app.database import DatabaseAway, is_out_of_room, rows, savepoint, transaction
from app.domain import bookings, contacts, deliveries, endpoints, imports, sales
from app.domain.changes import Change, Effect
from app.domain.events import Cause, Recorder
from app.errors import BellhopError, IdempotencyKeyReused, NotFound
from app.lib import ids, json
from app.lib.problems import problem_of_error
from app.mailbox import Claimed, Mail
from app.models.jobs import IdempotencyKey, Job

log = structlog.get_logger(__name__)

MAIL = Mail(
    table="jobs",
    owner="workspace_id",
    queue="writes",
    order="position",
    in_order=True,
    on_claim=", status = 'running', started_at = coalesce(mail.started_at, now())",
    alone="kind = 'contacts.import'",
)
# A transaction with more than 64 savepoints makes everyone's snapshots slower (PostgreSQL keeps that many at hand).
BATCH = 50
# A batch under way is kept by its lock as well, so this only bounds how long that of a dead worker waits.
LEASE_SECONDS = 5
# After so long a worker lets others' workspaces have their turn.
TURN_SECONDS = 0.25
# A job whose worker died is tried alone, and given up when this many have died of it.
MOST_CLAIMS = 5

IDEMPOTENCY_WINDOW = "24 hours"
# Later than a key is free, by longer than a statement may take: who finds it taken can still read its job.
KEY_FORGOTTEN_AFTER = "24 hours 1 minute"


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of write: its verb, the restriction it needs, the resource it is about.

    `after_events`: events recorded before it in the same transaction are written first, because it changes what
    they say or where they go. A verb that returns None has done a part, which takes effect, and is called again for
    the rest; `end` is called with the resource when the job has ended either way. Such jobs are mail that is taken
    `alone`.
    """

    verb: Callable[[Change], Effect | None]
    restriction: str
    resource_type: str
    after_events: bool = False
    end: Callable[[str], None] | None = None


KINDS: Mapping[str, Kind] = {
    "contacts.upsert": Kind(contacts.upsert, "contacts", "contact"),
    "contacts.update": Kind(contacts.update, "contacts", "contact"),
    "contacts.delete": Kind(contacts.delete, "contacts", "contact", after_events=True),
    "contacts.add_tag": Kind(contacts.add_tag, "contacts", "contact"),
    "contacts.remove_tag": Kind(contacts.remove_tag, "contacts", "contact"),
    "sales.create": Kind(sales.create, "contacts", "sale"),
    "bookings.create": Kind(bookings.create, "contacts", "booking"),
    "bookings.cancel": Kind(bookings.cancel, "contacts", "booking"),
    "contacts.import": Kind(imports.go_on, "contacts", "import", end=imports.end),
    "endpoints.create": Kind(endpoints.create, "webhooks", "endpoint", after_events=True),
    "endpoints.rotate_secret": Kind(endpoints.rotate_secret, "webhooks", "endpoint"),
    "endpoints.test": Kind(endpoints.test, "webhooks", "delivery"),
    "endpoints.update": Kind(endpoints.update, "webhooks", "endpoint", after_events=True),
    "endpoints.delete": Kind(endpoints.delete, "webhooks", "endpoint", after_events=True),
    "endpoints.enable": Kind(endpoints.enable, "webhooks", "endpoint", after_events=True),
    "endpoints.resend": Kind(endpoints.resend, "webhooks", "sweep"),
    "deliveries.resend": Kind(deliveries.resend, "webhooks", "delivery"),
}


@dataclass(frozen=True, slots=True)
class Write:
    """What a caller asks for: a kind with its checked payload, and the identifier of the resource where it is known."""

    workspace_id: str
    kind: str
    payload: Mapping[str, Any]
    trace_id: str
    resource_id: str | None = None
    token_id: str | None = None


@dataclass(frozen=True, slots=True)
class OnceKey:
    """An idempotency key (a UUID in small letters), and a digest of the request that it stands for."""

    key: str
    fingerprint: bytes


def fingerprint(*parts: bytes) -> bytes:
    """A digest of a request's method, path, query and body."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.digest()


def accept(write: Write, once: OnceKey | None = None, store: Callable[[str], None] | None = None) -> tuple[Job, bool]:
    """Stores the write, durably, and rings for it. Returns its job, and whether that was there before.

    One statement, atomic: of any number of equal requests with one key, one makes the job and the others get it.
    `store` is given the job's identifier, and keeps what the write needs besides its payload in the same transaction.
    Raises IdempotencyKeyReused.
    """
    columns: dict[str, Any] = {
        "id": ids.new("job"),
        "workspace_id": write.workspace_id,
        "token_id": write.token_id,
        "kind": write.kind,
        "resource_type": KINDS[write.kind].resource_type,
        "resource_id": write.resource_id,
        "trace_id": write.trace_id,
    }
    job = Job(**columns, status="queued", payload=write.payload)
    columns["payload"] = json.dumps(write.payload).decode()
    if once:
        columns |= {"key": once.key, "fingerprint": once.fingerprint, "window": IDEMPOTENCY_WINDOW}
    statement = sql.prepared("accept_once" if once else "accept")
    if store is None:
        stored = rows(statement, columns)
    else:
        with transaction():
            if stored := rows(statement, columns):
                store(job.id)
    if not stored:
        assert once is not None
        return _earlier(write.token_id, once), True
    job.created_at = stored[0][0]
    mailbox.ring(MAIL, write.workspace_id)
    metrics.JOBS_ACCEPTED.labels(job.kind).inc()
    bind_contextvars(job=job.id)  # so that the line that ends the request names it
    return job, False


def replayed(token_id: str, once: OnceKey) -> Job | None:
    """The job that this key made before, if it still counts. Raises IdempotencyKeyReused."""
    try:
        counts = IdempotencyKey.created_at > SQL("now() - %s::interval", (IDEMPOTENCY_WINDOW,))
        return _earlier(token_id, once, counts)
    except NotFound:
        return None


def work(workspace_id: str) -> None:
    """Applies the workspace's waiting writes, in order of acceptance, until none is left or its turn is over."""
    turn_ends = time.monotonic() + TURN_SECONDS
    while batch := mailbox.take_head(MAIL, workspace_id, BATCH, LEASE_SECONDS):
        try:
            if any(claimed.claim > 1 for claimed in batch):
                # A worker died of this batch, or lost its database: one at a time, to find out by which.
                for claimed in batch:
                    _apply([claimed])
            else:
                _apply(batch)
        except DatabaseAway as error:
            if is_out_of_room(error):
                _uncount(batch)
            raise
        if time.monotonic() > turn_ends:
            mailbox.give_way(MAIL, workspace_id)
            return


def wait(job: Job, seconds: float) -> Job:
    """The job as it is when it has ended, or after so many seconds. Looks often at first, then five times a second."""
    ends, pause = time.monotonic() + seconds, 0.004
    while True:
        job = Job.get_by_id(job.id)
        left = ends - time.monotonic()
        if job.is_finished or left <= 0:
            return job
        time.sleep(min(pause, left))
        pause = min(pause * 1.5, 0.2)


def find(workspace_id: str, job_id: str) -> Job:
    """Raises NotFound."""
    return Job.get_in(workspace_id, job_id, "job")


def forget_old_keys(limit: int = 10_000) -> int:
    """Deletes up to `limit` idempotency keys whose window is over; returns how many."""
    return len(rows(sql.load("forget_old_keys"), {"window": KEY_FORGOTTEN_AFTER, "limit": limit}))


def _apply(batch: Sequence[Claimed]) -> None:
    with transaction():
        if not mailbox.holding(MAIL, batch):
            log.warning("jobs.not_held", workspace=batch[0].owner, jobs=len(batch))
            return
        jobs = Job.batch([claimed.id for claimed in batch])
        recorder = Recorder(batch[0].owner)
        for job in jobs:
            _run(job, recorder)
        recorder.write()
        ended = [job for job in jobs if job.is_finished]
        rows(sql.load("finish_jobs"), _outcomes(ended))
        if len(ended) < len(jobs):
            _put_back(jobs[-1])
    for job in ended:
        metrics.JOBS_FINISHED.labels(job.kind, job.status).inc()
        log.info("job.finished", request_id=job.trace_id, job=job.id, kind=job.kind, status=job.status)


def _run(job: Job, recorder: Recorder) -> None:
    """Runs one job in a savepoint and sets its outcome on it; whatever it raises undoes and fails it alone."""
    kind = KINDS[job.kind]
    if kind.after_events:
        recorder.write()
    mark, recorder.cause = recorder.mark(), Cause(job.id, job.trace_id)
    try:
        if job.claim > MOST_CLAIMS:
            raise RuntimeError(f"job {job.id} has ended {MOST_CLAIMS} workers")
        with savepoint():
            effect = kind.verb(
                Change(job.workspace_id, job.payload or {}, job.resource_id, recorder, job.kind, job.token_id)
            )
    except DatabaseAway:
        raise
    except Exception as error:
        recorder.forget_after(mark)
        job.status, job.problem = "failed", problem_of_error(error, job.trace_id, base_url=settings().base_url)
        if isinstance(error, BellhopError):
            job.payload = None
        else:  # kept for replay
            log.exception("job.broke", request_id=job.trace_id, job=job.id, kind=job.kind)
    else:
        if effect is None:
            return
        job.status, job.payload = "succeeded", None
        job.effect, job.resource_type, job.resource_id = effect.kind, effect.resource_type, effect.resource_id
    if kind.end is not None:
        kind.end(str(job.resource_id))


def _put_back(job: Job) -> None:
    """Leaves the head of the mailbox to whoever comes next. The deaths of its workers are counted for each part.

    So the claim begins anew, against its rule: what a late worker would then do is the next part, in its turn.
    """
    rows("UPDATE jobs SET due_at = now(), claim = 0 WHERE id = %s", (job.id,))


def _uncount(batch: Sequence[Claimed]) -> None:
    """It is no death of a worker that these were taken for nothing, however often. Their leases stay, as a pause.

    Who took them does nothing more under these claims, so the next may have the same.
    """
    rows(
        """
        UPDATE jobs SET claim = jobs.claim - 1 FROM unnest(%s::text[], %s::int[]) AS held(id, claim)
        WHERE jobs.id = held.id AND jobs.claim = held.claim AND jobs.due_at IS NOT NULL
        """,
        ([claimed.id for claimed in batch], [claimed.claim for claimed in batch]),
    )


def _earlier(token_id: str | None, once: OnceKey, *conditions: Any) -> Job:
    found = (
        Job.select(Job, IdempotencyKey.fingerprint)
        .join(IdempotencyKey, on=(IdempotencyKey.job_id == Job.id), attr="once")
        .where(IdempotencyKey.token_id == token_id, IdempotencyKey.key == once.key, *conditions)
        .first()
    )
    if found is None:
        raise NotFound()
    if bytes(found.once.fingerprint) != once.fingerprint:
        raise IdempotencyKeyReused()
    return found  # type: ignore[no-any-return]


def _outcomes(jobs: Sequence[Job]) -> dict[str, list[Any]]:
    return {
        "ids": [job.id for job in jobs],
        "statuses": [job.status for job in jobs],
        "effects": [job.effect for job in jobs],
        "types": [job.resource_type for job in jobs],
        "resources": [job.resource_id for job in jobs],
        "problems": [json.dumps(job.problem).decode() if job.problem else None for job in jobs],
        "keeps": [job.payload is not None for job in jobs],
    }
