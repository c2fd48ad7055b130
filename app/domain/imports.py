"""Imports: many contacts by one job, applied line by line in small transactions, each line once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import structlog

from app.config import settings
from app.database import DatabaseAway, count, rows, savepoint
from app.domain import contacts
from app.domain.changes import Change, Effect
from app.errors import BellhopError
from app.lib import json
from app.lib.problems import problem_of_error
from app.models.imports import Import, LineError

log = structlog.get_logger(__name__)

# Lines that one transaction applies, each in its savepoint; see jobs.BATCH.
BATCH = 50


@dataclass(frozen=True, slots=True)
class Line:
    """A line by its number in the body, the first is 1: a checked contact, or the problem that it is, as JSON."""

    number: int
    content: str

    @classmethod
    def of(cls, number: int, content: object) -> Line:
        return cls(number, json.dumps(content).decode())


def store(workspace_id: str, import_id: str, job_id: str, good: Sequence[Line], bad: Sequence[Line]) -> None:
    """Keeps the lines of an import that is being accepted, in the transaction that stores its job."""
    Import.insert(
        id=import_id, workspace_id=workspace_id, job_id=job_id, total=len(good) + len(bad), failed=len(bad)
    ).execute()
    _keep("import_lines (import_id, number, body)", import_id, good)
    _keep("import_errors (import_id, number, problem)", import_id, bad)


def go_on(change: Change) -> Effect | None:
    """Applies the next lines, as upserts of their own; None while there are more. A line that is refused fails alone.

    Whatever ends the worker in between undoes all of these lines, and they are still there.
    """
    lines = rows(
        """
        DELETE FROM import_lines WHERE import_id = %s AND number IN (
            SELECT number FROM import_lines WHERE import_id = %s ORDER BY number LIMIT %s)
        RETURNING number, body
        """,
        (change.target, change.target, BATCH),
    )
    failed = [line for number, body in sorted(lines) if (line := _apply(change, number, body))]
    _keep("import_errors (import_id, number, problem)", change.target, failed)
    [(is_last,)] = rows(
        """
        UPDATE imports SET done = done + %s, failed = failed + %s WHERE id = %s
        RETURNING NOT EXISTS (SELECT FROM import_lines WHERE import_id = imports.id)
        """,
        (len(lines) - len(failed), len(failed), change.target),
    )
    return Effect("made", "import", change.target) if is_last else None


def end(import_id: str) -> None:
    """The import's job has ended: nothing of its lines is kept."""
    count("DELETE FROM import_lines WHERE import_id = %s", (import_id,))
    count("UPDATE imports SET finished_at = clock_timestamp() WHERE id = %s", (import_id,))


def forget_old(limit: int = 100) -> int:
    """Deletes up to so many imports, with their errors, that have been kept as long as history is; how many."""
    return count(
        """
        DELETE FROM imports WHERE id IN (
            SELECT id FROM imports WHERE created_at < now() - %s * interval '1 day' AND finished_at IS NOT NULL
            ORDER BY created_at LIMIT %s)
        """,
        (settings().history_retention_days, limit),
    )


def find(workspace_id: str, import_id: str) -> Import:
    """Raises NotFound."""
    return Import.get_in(workspace_id, import_id, "imp")


def progress(import_id: str) -> dict[str, int] | None:
    """How far an import is; None where it is kept no longer."""
    found = Import.get_or_none(Import.id == import_id)
    return _progress(found) if found else None


def represent(found: Import) -> dict[str, Any]:
    return {
        "id": found.id,
        "job_id": found.job_id,
        "status": "running" if found.finished_at is None else "finished",
        **_progress(found),
        "created_at": found.created_at,
        "finished_at": found.finished_at,
    }


def represent_error(error: LineError) -> dict[str, Any]:
    return {"line": error.number, "problem": error.problem}


def _apply(change: Change, number: int, body: Any) -> Line | None:
    """What failed, if anything did."""
    mark = change.events.mark()
    try:
        with savepoint("line"):
            contacts.upsert(replace(change, payload=body))
    except DatabaseAway:
        raise
    except Exception as error:
        change.events.forget_after(mark)
        if not isinstance(error, BellhopError):
            log.exception("import.line_broke", request_id=change.events.cause.trace_id, line=number)
        return Line.of(number, problem_of_error(error, base_url=settings().base_url))
    return None


def _keep(columns: str, import_id: str, lines: Sequence[Line]) -> None:
    if lines:
        count(
            f"INSERT INTO {columns} SELECT %s, * FROM unnest(%s::int[], %s::text[]::json[])",
            (import_id, [line.number for line in lines], [line.content for line in lines]),
        )


def _progress(found: Import) -> dict[str, int]:
    return {"total": found.total, "done": found.done, "failed": found.failed}
