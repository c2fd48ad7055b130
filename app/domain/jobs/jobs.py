"""Jobs: accept writes durably and once, and wait for their outcomes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from structlog.contextvars import bind_contextvars

from app import bounds, mailbox, metrics, sql
from app.database import count, database, rows, transaction
from app.domain.jobs import idempotency_keys
from app.domain.jobs.idempotency_keys import RequestKey
from app.domain.people.tokens import UNRESTRICTED
from app.errors import BellhopError
from app.lib import ids, json
from app.logs import tracing
from app.mailbox import Mail
from app.models.jobs import Job

if TYPE_CHECKING:
    from app.logs.spans import Spans


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of write. `restriction`: what a token needs; UNRESTRICTED, or None if any token will do.

    `resource_type`: the type of the write's resource. `is_long`: the job is claimed alone, because it takes long or is
    done in parts. `is_audited`: the verb records the change in the audit log. `gives_way`: the next part of the job
    comes after waiting writes, and up to MOST_PASSING that are accepted later. `comes_first`: the write stops other
    work, so it precedes waiting writes, unless one of them is about the same resource.
    """

    restriction: str | None
    resource_type: str
    is_long: bool = False
    is_audited: bool = False
    gives_way: bool = False
    comes_first: bool = False


# `app/domain/verbs.py` has the verb of each kind.
KINDS: Mapping[str, Kind] = {
    "contacts.upsert": Kind("contacts", "contact"),
    "contacts.update": Kind("contacts", "contact"),
    "contacts.delete": Kind("contacts", "contact", is_long=True),
    "contacts.merge": Kind("contacts", "contact", is_long=True),
    "contacts.add_tag": Kind("contacts", "contact"),
    "contacts.remove_tag": Kind("contacts", "contact"),
    "sales.create": Kind("contacts", "sale"),
    "bookings.create": Kind("contacts", "booking"),
    "bookings.cancel": Kind("contacts", "booking"),
    "contacts.import": Kind("contacts", "import", is_long=True),
    "endpoints.create": Kind("webhooks", "endpoint", is_audited=True),
    "endpoints.rotate_secret": Kind("webhooks", "endpoint", is_audited=True),
    "endpoints.test": Kind("webhooks", "delivery", is_audited=True),
    "endpoints.update": Kind("webhooks", "endpoint", is_audited=True),
    "endpoints.delete": Kind("webhooks", "endpoint", is_audited=True),
    "endpoints.enable": Kind("webhooks", "endpoint", is_audited=True),
    "endpoints.resend": Kind("webhooks", "sweep", is_audited=True),
    "deliveries.resend": Kind("webhooks", "delivery", is_audited=True),
    "deliveries.create": Kind("webhooks", "delivery", is_audited=True),
    "deliveries.discard": Kind("webhooks", "job", is_long=True, is_audited=True, gives_way=True),
    "replays.create": Kind("webhooks", "replay", is_long=True, is_audited=True),
    "replays.pause": Kind("webhooks", "replay", is_audited=True, comes_first=True),
    "replays.continue": Kind("webhooks", "replay", is_audited=True),
    "replays.abort": Kind("webhooks", "replay", is_audited=True, comes_first=True),
    "automations.create": Kind("automations", "automation"),
    "automations.update": Kind("automations", "automation"),
    "automations.delete": Kind("automations", "automation", is_long=True),
    "automations.publish": Kind("automations", "automation"),
    "automations.unpublish": Kind("automations", "automation"),
    "automations.restore": Kind("automations", "automation"),
    "automations.pause": Kind("automations", "automation"),
    "automations.resume": Kind("automations", "automation"),
    "automations.start": Kind("automations", "run"),
    "automations.start_list": Kind("automations", "automation", is_long=True),
    "automations.cancel_runs": Kind("automations", "automation", is_long=True, gives_way=True),
    "automations.move_runs": Kind("automations", "automation", is_long=True),
    "segments.create": Kind("automations", "segment"),
    "segments.update": Kind("automations", "segment"),
    "segments.delete": Kind("automations", "segment"),
    "broadcasts.create": Kind("automations", "broadcast", is_audited=True),
    "broadcasts.update": Kind("automations", "broadcast", is_audited=True),
    "broadcasts.pause": Kind("automations", "broadcast", is_audited=True, comes_first=True),
    "broadcasts.continue": Kind("automations", "broadcast", is_audited=True),
    "broadcasts.abort": Kind("automations", "broadcast", is_audited=True, comes_first=True),
    "runs.cancel": Kind("automations", "run"),
    "runs.resume": Kind("automations", "run"),
    "runs.replay": Kind("automations", "run"),
    "conversations.update": Kind("inbox", "conversation"),
    "messages.create": Kind("inbox", "message"),
    "messages.resend": Kind("inbox", "message"),
    "scheduled_messages.create": Kind("inbox", "message"),
    "scheduled_messages.update": Kind("inbox", "message"),
    "scheduled_messages.delete": Kind("inbox", "message"),
    "notes.create": Kind("inbox", "note"),
    "notes.delete": Kind("inbox", "note"),
    "selections.apply": Kind("inbox", "workspace", is_long=True, gives_way=True),
    "saved_replies.create": Kind("inbox", "saved_reply", is_audited=True),
    "saved_replies.update": Kind("inbox", "saved_reply", is_audited=True),
    "saved_replies.delete": Kind("inbox", "saved_reply", is_audited=True),
    "macros.create": Kind("inbox", "macro", is_audited=True),
    "macros.update": Kind("inbox", "macro", is_audited=True),
    "macros.delete": Kind("inbox", "macro", is_audited=True),
    "macros.apply": Kind("inbox", "conversation"),
    "members.update": Kind("inbox", "member", is_long=True, is_audited=True),
    "members.give_back": Kind("inbox", "member", is_long=True),
    "channels.create": Kind("inbox", "channel", is_audited=True),
    "channels.update": Kind("inbox", "channel", is_audited=True),
    "channels.reauthorize": Kind("inbox", "channel", is_audited=True),
    "channels.delete": Kind("inbox", "channel", is_long=True, is_audited=True),
    "workspaces.update": Kind(UNRESTRICTED, "workspace", is_long=True),
    "jobs.discard": Kind(None, "job", is_audited=True, comes_first=True),
    "jobs.replay_many": Kind(UNRESTRICTED, "workspace", is_long=True, is_audited=True, gives_way=True),
    "jobs.discard_many": Kind(UNRESTRICTED, "workspace", is_long=True, is_audited=True, gives_way=True),
}

MAIL = Mail(
    table="jobs",
    owner="workspace_id",
    queue="writes",
    order="position",
    exclusive=True,
    on_claim=", status = 'running', started_at = coalesce(mail.started_at, now())",
    alone=f"kind IN ({', '.join(repr(name) for name, kind in KINDS.items() if kind.is_long)})",
    is_overtaken=True,
    sequence="jobs_position",
)
# The most writes, of all workspaces together, that may be accepted after a part of bulk work and still be applied
# before its next part. Without a limit, the bulk work of a workspace that writes without pause would never end.
MOST_PASSING = 10_000


@dataclass(frozen=True, slots=True)
class Write:
    """A caller's request. `payload` has been checked. `resource_id`: None if it is not known yet."""

    workspace_id: str
    kind: str
    payload: Mapping[str, Any]
    trace_id: str
    resource_id: str | None = None
    actor_id: str | None = None


def accept(
    write: Write,
    key: RequestKey | None = None,
    store: Callable[[str], None] | None = None,
    check: Callable[[], object] | None = None,
) -> tuple[Job, bool]:
    """Stores the write durably and rings for it. Returns its job, and whether the job existed before.

    Atomic: among equal requests with one key, one makes the job and the others get it. `store` is called with the job's
    id in the same transaction, to store what the write needs besides its payload. `check` may raise an error to refuse
    the write at once, such as NotFound; an equal request that was accepted before still gets its job. Raises
    IdempotencyKeyReused.
    """
    if check is not None:
        try:
            check()
        except BellhopError:
            earlier = idempotency_keys.find(write.actor_id, key) if key else None
            if earlier is None:
                raise
            return earlier, True
    columns: dict[str, Any] = {
        "id": ids.new("job"),
        "workspace_id": write.workspace_id,
        "actor_id": write.actor_id,
        "kind": write.kind,
        "resource_type": KINDS[write.kind].resource_type,
        "resource_id": write.resource_id,
        "trace_id": write.trace_id,
    }
    job = Job(**columns, status="queued", payload=write.payload)
    columns["payload"] = json.dumps(write.payload).decode()
    if key:
        columns |= {"key": key.key, "fingerprint": key.fingerprint, "window": idempotency_keys.WINDOW}
    statement, comes_first = sql.prepared("accept_once" if key else "accept"), KINDS[write.kind].comes_first
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


def follow(write: Write) -> None:
    """Stores a write that follows from the current transaction, and rings for it after the commit."""
    columns = {name: getattr(write, name) for name in ("workspace_id", "actor_id", "kind", "resource_id", "trace_id")}
    columns |= {"id": ids.new("job"), "resource_type": KINDS[write.kind].resource_type}
    rows(sql.prepared("accept"), {**columns, "payload": json.dumps(write.payload).decode()})
    metrics.JOBS_ACCEPTED.labels(write.kind).inc()
    database.after_commit(partial(mailbox.ring, MAIL, write.workspace_id))
    if tracing.spans is not None:
        database.after_commit(partial(_trace, tracing.spans, write, columns["id"]))


def _trace(spans: Spans, write: Write, job_id: str) -> None:
    """Adds the span for accepting a write that no request made."""
    now = time.time()
    attributes = {"messaging.system": "bellhop", "messaging.operation.type": "send", "messaging.message.id": job_id}
    trace_id, accepting = tracing.trace_of(write.trace_id), tracing.accepting(job_id)
    spans.add(f"follow {write.kind}", "PRODUCER", trace_id, accepting, None, (now, now), attributes)


def give_way(job_id: str) -> None:
    """Moves the job behind the waiting writes, and up to MOST_PASSING that are accepted later."""
    count(
        "UPDATE jobs SET position = nextval('jobs_position') + %s, due_at = now() WHERE id = %s", (MOST_PASSING, job_id)
    )


def wait(job: Job, seconds: float) -> Job:
    """Returns the job once it has ended, or after `seconds`.

    Returns at once if the workspace or the process has no thread left for waiting: other requests need the threads of
    `web`.
    """
    if job.is_finished:
        return job
    with bounds.waiting(job.workspace_id) as has_place:
        return _wait(job, seconds) if has_place else job


def _wait(job: Job, seconds: float) -> Job:
    """Polls often at first, then five times a second."""
    ends, pause = time.monotonic() + seconds, 0.004
    while True:
        job = Job.get_by_id(job.id)
        left = ends - time.monotonic()
        if job.is_finished or left <= 0:
            return job
        time.sleep(min(pause, left))
        pause = min(pause * 1.5, 0.2)


def unknown(limit: int = 10_000) -> dict[str, int]:
    """Returns how many waiting jobs have a kind that no worker knows, by kind. Counts up to `limit`."""
    counted = """
        SELECT kind, count(*) FROM (SELECT kind FROM jobs WHERE unknown_since IS NOT NULL LIMIT %s) AS set_aside
        GROUP BY kind ORDER BY kind
    """
    return dict(rows(counted, (limit,)))


# Moves a write before all waiting ones. Negative positions keep the order among the writes that come first. A write
# keeps its place if another unfinished write is about the same resource: a pause must not pass the write that creates
# the broadcast.
_COME_FIRST = f"""
    UPDATE jobs SET position = {MAIL.first}
    WHERE id = %s AND NOT EXISTS (
        SELECT FROM jobs other
        WHERE other.workspace_id = %s AND other.resource_id = %s AND other.due_at IS NOT NULL AND other.id <> %s)
"""
