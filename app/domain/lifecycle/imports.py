"""Imports: many contacts in one job, upserted in small transactions, each line exactly once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import structlog
from marshmallow import fields, validate

from app.config import settings
from app.database import count, rows
from app.domain.contacts import contacts
from app.domain.people import notifications
from app.domain.triggers import batches
from app.domain.work.changes import Change, Effect
from app.domain.work.units import Busy, Unit
from app.errors import BellhopError
from app.lib import json
from app.lib.schemas import ResponseBody, about, time
from app.models.imports import Import, LineError
from app.problems import problem_of_error

log = structlog.get_logger(__name__)

# The lines that one transaction applies, like writes.BATCH.
BATCH = 50


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the body, numbered from 1. `content`: JSON of the checked contact, or of the problem."""

    number: int
    content: str

    @classmethod
    def of(cls, number: int, content: object) -> Line:
        """Returns the line with `content` written as JSON."""
        return cls(number, json.dumps(content).decode())


class Lines(NamedTuple):
    """Good and bad lines of an import. `left_out`: errors of lines imported without their bad cells."""

    good: list[Line]
    bad: list[Line]
    left_out: list[Line]


def store(workspace_id: str, import_id: str, job_id: str, lines: Lines) -> None:
    """Stores the lines of a new import, in the transaction that stores its job."""
    good, bad, left_out = lines
    Import.insert(
        id=import_id, workspace_id=workspace_id, job_id=job_id, total=len(good) + len(bad), failed=len(bad)
    ).execute()
    _keep("import_lines", "body", workspace_id, import_id, good)
    _keep("import_errors", "problem", workspace_id, import_id, bad)
    _keep("import_errors", "problem", workspace_id, import_id, left_out, is_true="is_imported")


def go_on(change: Change) -> Effect | None:
    """Upserts the next lines, and records an error for each bad one. None while there are more.

    If the worker dies midway, none of these lines has taken effect and none is lost. Raises Busy if another transaction
    has locked the contact of the next line.
    """
    lines = rows(
        "SELECT number, body FROM import_lines WHERE import_id = %s ORDER BY number LIMIT %s", (change.target, BATCH)
    )
    needs = [key for _, body in lines for key in contacts.needs(change.workspace_id, body, None)]
    tasks = [partial(_upsert, change, body) for _, body in lines]
    results = batches.run(tasks, needs, "lines")
    if lines and not results:
        raise Busy
    numbers = [number for number, _ in lines[: len(results)]]
    failed = [
        _failed(change, number, result)
        for number, result in zip(numbers, results, strict=True)
        if isinstance(result, Exception)
    ]
    if failed:  # a failed line has no use for errors about its cells
        forget = "DELETE FROM import_errors WHERE import_id = %s AND number = ANY(%s)"
        count(forget, (change.target, [line.number for line in failed]))
    _keep("import_errors", "problem", change.workspace_id, change.target, failed)
    count("DELETE FROM import_lines WHERE import_id = %s AND number = ANY(%s)", (change.target, numbers))
    [(is_last,)] = rows(
        """
        UPDATE imports SET done = done + %s, failed = failed + %s WHERE id = %s
        RETURNING NOT EXISTS (SELECT FROM import_lines WHERE import_id = imports.id)
        """,
        (len(numbers) - len(failed), len(failed), change.target),
    )
    return Effect("made", "import", change.target) if is_last else None


def end(import_id: str) -> None:
    """Marks the import finished, notifies its workspace and deletes the lines that are left."""
    count("DELETE FROM import_lines WHERE import_id = %s", (import_id,))
    for workspace_id, total, done, failed in rows(
        """
        UPDATE imports SET finished_at = clock_timestamp() WHERE id = %s RETURNING workspace_id, total, done, failed
        """,
        (import_id,),
    ):
        detail = {"import_id": import_id, "total": total, "done": done, "failed": failed}
        notifications.note(workspace_id, "import_ended", import_id, detail)


def progress(import_id: str) -> dict[str, int] | None:
    """Returns the number of lines in total, done and failed; None if the import is no longer stored."""
    found = Import.get_or_none(Import.id == import_id)
    return ProgressSchema.of(found) if found else None


class ProgressSchema(ResponseBody):
    total = fields.Integer(metadata=about("How many lines the import has, or how many deliveries it is about."))
    done = fields.Integer(metadata=about("How many of them have taken effect so far."))
    failed = fields.Integer(metadata=about("How many of them have failed so far."))


class ImportSchema(ProgressSchema):
    id = fields.String()
    job_id = fields.String()
    status = fields.String(validate=validate.OneOf(["running", "finished"]))
    created_at = time("When the import was accepted.")
    finished_at = time("When the import ended.", allow_none=True)


class LineErrorSchema(ResponseBody):
    line = fields.Integer(metadata=about("The line's number in the body; the first is 1."))
    problem = fields.Dict(metadata=about("The problem document that the line would get as a request of its own."))


def represent(found: Import) -> dict[str, Any]:
    """Returns the import as the API shows it."""
    return ImportSchema.of(found, status="running" if found.finished_at is None else "finished")


def represent_error(error: LineError) -> dict[str, Any]:
    """Returns the error of a line as the API shows it."""
    return LineErrorSchema.of(error, line=error.number)


def _upsert(change: Change, body: Mapping[str, Any], unit: Unit) -> Effect:
    return contacts.upsert(replace(change, payload=body, unit=unit))


def _failed(change: Change, number: int, error: Exception) -> Line:
    if not isinstance(error, BellhopError):
        log.error("import.line_broke", request_id=change.cause.trace_id, line=number, exc_info=error)
    return Line.of(number, problem_of_error(error, base_url=settings().base_url))


def _keep(
    table: str, content: str, workspace_id: str, import_id: str, lines: Sequence[Line], is_true: str | None = None
) -> None:
    if lines:
        columns, true = (f", {is_true}", ", true") if is_true else ("", "")
        count(
            f"INSERT INTO {table} (workspace_id, import_id, number, {content}{columns})"
            f" SELECT %s, %s, *{true} FROM unnest(%s::int[], %s::text[]::json[])",
            (workspace_id, import_id, [line.number for line in lines], [line.content for line in lines]),
        )
