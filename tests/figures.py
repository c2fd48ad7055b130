"""Figures for tests: attempts, writes and runs of the past, and all of them counted."""

from __future__ import annotations

from datetime import datetime, timedelta

from app.database import now, rows
from app.domain.insight import figures
from app.lib import ids
from tests.cast import one


def ago(**units: float) -> datetime:
    """That long ago, on the database's clock."""
    return now() - timedelta(**units)


def attempted(
    workspace_id: str,
    endpoint_id: str,
    at: datetime,
    error_code: str | None = None,
    status: int | None = 200,
    *,
    times: int = 1,
    state: str | None = None,
    duration_ms: int = 20,
) -> None:
    """So many deliveries of which each had one attempt, recorded then; they failed if there is an error.

    `state`: what the deliveries are now.
    """
    rows(
        """
        WITH new AS (SELECT unnest(%(ids)s::text[]) AS id), delivered AS (
            INSERT INTO deliveries (id, workspace_id, event_id, endpoint_id, kind, status, attempts, due_at,
                last_error_code, last_status)
            SELECT id, %(workspace_id)s, 'evt_1', %(endpoint_id)s, 'tag.added', %(state)s, 1, NULL, %(code)s, %(answer)s
            FROM new)
        INSERT INTO attempts (delivery_id, number, at, duration_ms, status, error, error_code, recorded_at)
        SELECT id, 1, %(at)s, %(duration_ms)s, %(answer)s, %(code)s, %(code)s, %(at)s FROM new
        """,
        {
            "ids": [ids.new("dlv") for _ in range(times)],
            "workspace_id": workspace_id,
            "endpoint_id": endpoint_id,
            "state": state or ("failed" if error_code else "delivered"),
            "code": error_code,
            "answer": status,
            "at": at,
            "duration_ms": duration_ms,
        },
    )


def failed_job(workspace_id: str, kind: str, at: datetime, slug: str = "not-found", status: int = 404) -> str:
    """A write that failed then; returns its identifier."""
    job_id = ids.new("job")
    problem = f'{{"type": "https://bellhop.test/problems/{slug}", "status": {status}}}'
    rows(
        "INSERT INTO jobs (id, workspace_id, kind, status, trace_id, due_at, problem, finished_at)"
        " VALUES (%s, %s, %s, 'failed', 'trace-1', NULL, %s, %s)",
        (job_id, workspace_id, kind, problem, at),
    )
    return job_id


def failed_run(workspace_id: str, automation_id: str, at: datetime, code: str = "template") -> str:
    """A run that failed then; returns its identifier."""
    run_id = ids.new("run")
    rows(
        "INSERT INTO runs (id, workspace_id, automation_id, version, contact_id, status, trace_id, due_at, failure,"
        " finished_at) VALUES (%s, %s, %s, 1, 'con_1', 'failed', 'trace-1', NULL, %s, %s)",
        (run_id, workspace_id, automation_id, f'{{"code": "{code}", "detail": null, "step": "greet"}}', at),
    )
    return run_id


def counted() -> None:
    """Counts all outcomes up to now; needs a test without a lag."""
    at = now()
    figures.count_outcomes()
    while one("SELECT counted_until < %s FROM figure_progress WHERE name = 'outcomes'", at):
        figures.count_outcomes()
