"""Jobs: the mail of accepted writes. Makes jobs that follow from others, and waits for outcomes."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

from app import bounds, mailbox, metrics, sql
from app.database import count, database, rows
from app.domain.work.changes import Write
from app.lib import ids, json
from app.logs import tracing
from app.mailbox import Mail
from app.models.jobs import Job

if TYPE_CHECKING:
    from app.logs.spans import Spans


# The kinds of write that are claimed alone, because they take long or are done in parts.
LONG = (
    *("contacts.delete", "contacts.merge", "contacts.import", "deliveries.discard", "replays.create"),
    *("automations.delete", "automations.start_list", "automations.cancel_runs", "automations.move_runs"),
    *("selections.apply", "members.update", "members.give_back", "channels.delete", "workspaces.update"),
    *("jobs.replay_many", "jobs.discard_many"),
)
MAIL = Mail(
    table="jobs",
    owner="workspace_id",
    queue="writes",
    order="position",
    exclusive=True,
    on_claim=", status = 'running', started_at = coalesce(mail.started_at, now())",
    alone=f"kind IN {LONG}",
    is_overtaken=True,
    sequence="jobs_position",
)
# The most writes, of all workspaces together, that may be accepted after a part of bulk work and still be applied
# before its next part. Without a limit, the bulk work of a workspace that writes without pause would never end.
MOST_PASSING = 10_000


def follow(write: Write, resource_type: str) -> None:
    """Stores a write that follows from the current transaction, and rings for it after the commit."""
    columns = {name: getattr(write, name) for name in ("workspace_id", "actor_id", "kind", "resource_id", "trace_id")}
    columns |= {"id": ids.new("job"), "resource_type": resource_type}
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

    Returns at once if the workspace or process has no thread left for waiting: `web` needs threads for others.
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
