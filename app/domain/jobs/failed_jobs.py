"""Failed jobs: each may be replayed as a new job, once, or discarded with a reason.

Open failures, neither replayed nor discarded, are also counted by cause. A bulk job replays or discards many of them,
in parts between the workspace's other writes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app import metrics
from app.config import settings
from app.database import count, rows, transaction
from app.domain.jobs import parts
from app.domain.jobs.parts import LONGEST_SECONDS, be_alone, in_time
from app.domain.work import audit
from app.domain.work.changes import Change, Effect
from app.errors import Conflict
from app.lib import ids, json
from app.models.jobs import Job
from app.problems import problem_document

_NOT_KEPT = (
    "What this job was asked to do is not kept, because it was refused for a reason of its own. Send the write again "
    "when that reason is gone."
)
_UNKNOWN = "No worker knew this kind of write, so the operator gave it up. Nothing was changed."
_NO_LINES = "The lines of an import are not kept once it has ended. Send those that failed again."
# Why a job can be discarded but not replayed.
REASONS: Mapping[str, str] = {
    "not_kept": "It was refused for a reason of its own, and what it was asked to do is not kept.",
    "import": "The lines of an import are not kept once it has ended.",
    "unknown_kind": "This version does not know this kind of write.",
}
_TOO_MANY = (
    f"So many jobs have failed that they cannot be counted in {LONGEST_SECONDS} seconds. Choose a kind or cause."
)


@dataclass(frozen=True, slots=True)
class Cause:
    """Open failures of one kind with the same `problem` (its slug) and `exception`.

    `exception`: the type of the exception that broke them; "" if none did. `replayable`: how many can be replayed.
    """

    kind: str
    problem: str
    exception: str
    count: int
    replayable: int


@dataclass(frozen=True, slots=True)
class Preview:
    """The open failures that a filter selects now, largest cause first. All numbers are exact.

    `until`: the id of the last one, None if there are none. `left_out`: how many cannot be replayed, by reason.
    """

    causes: Sequence[Cause]
    left_out: Mapping[str, int]
    until: str | None

    @property
    def count(self) -> int:
        """How many can be discarded."""
        return sum(cause.count for cause in self.causes)

    @property
    def replayable(self) -> int:
        """How many can be replayed."""
        return sum(cause.replayable for cause in self.causes)


def discard(change: Change) -> Effect:
    """Discards the failed job: it is no longer an open failure, and its payload is deleted.

    Does nothing if it is discarded already. Raises NotFound, and Conflict if it has not failed or was replayed.
    """
    reason = change.payload["reason"]
    if count(f"{_DISCARD} AND workspace_id = %s", (reason, [change.target], change.workspace_id)):
        audit.record(change, "job", change.target, {"reason": reason})
    else:
        job = Job.find(change.workspace_id, change.target)
        if job.discarded_at is None:
            refuse(job)
    return Effect("changed", "job", change.target)


def give_up(job_ids: Sequence[str]) -> set[str]:
    """Fails the jobs whose kind no worker knows, which may then be replayed; returns their ids."""
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


def preview(workspace_id: str, chosen: Mapping[str, str], known: Sequence[str]) -> Preview:
    """Counts the open failures by cause. `chosen`: any of `kind`, `problem` and `exception`.

    `known`: the kinds of write that this version knows; others cannot be replayed. Raises Conflict if counting takes
    too long, or while another preview of the workspace is counted.
    """
    with transaction(), in_time(_TOO_MANY):
        be_alone(workspace_id)
        values = {**_parameters(workspace_id, chosen), "known": list(known)}
        found = rows(_COUNT.format(matches=_matches(chosen)), values)
    causes: dict[tuple[str, str, str], list[int]] = {}
    left_out: dict[str, int] = {}
    for kind, problem, exception, reason, number, _ in found:
        numbers = causes.setdefault((kind, problem, exception), [0, 0])
        numbers[0] += number
        if reason is None:
            numbers[1] += number
        else:
            left_out[reason] = left_out.get(reason, 0) + number
    made = [Cause(*cause, *numbers) for cause, numbers in causes.items()]
    made.sort(key=lambda cause: (-cause.count, cause.kind, cause.problem, cause.exception))
    return Preview(made, left_out, max((row[-1] for row in found), default=None))


def replay_many(change: Change, known: Sequence[str]) -> Effect | None:
    """Replays the next part of the failures that `filter` selects, up to the job `until`.

    Leaves out jobs whose kind is not `known`. Returns None while there are more. Each new job belongs to the actor of
    the failed one. Raises Busy if another transaction has locked the next one.
    """
    chosen = _rows(change, "AND " + _IS_REPLAYABLE, known)
    is_last = parts.go_on(change, chosen, lambda found: _replay(change, found, known))
    return Effect("changed", "workspace", change.workspace_id) if is_last else None


def discard_many(change: Change) -> Effect | None:
    """Like `replay_many`, but discards the failures, with a `reason`."""

    def discard(job_ids: list[str]) -> int:
        return count(_DISCARD, (change.payload["reason"], job_ids))

    is_last = parts.go_on(change, _rows(change, ""), discard)
    return Effect("changed", "workspace", change.workspace_id) if is_last else None


def _rows(change: Change, able: str, known: Sequence[str] = ()) -> parts.Rows:
    matches = _matches(change.payload["filter"])
    values = _parameters(change.workspace_id, change.payload["filter"])
    values |= {"until": change.payload["until"], "known": list(known)}
    return parts.Rows(
        "jobs",
        _TOTAL.format(matches=matches, able=able),
        _NEXT.format(matches=matches, able=able),
        values,
        _TOO_MANY,
    )


def _replay(change: Change, job_ids: list[str], known: Sequence[str]) -> int:
    values = {"old": job_ids, "new": [ids.new("job") for _ in job_ids], "known": list(known)}
    made = rows(_REPLAY, {**values, "trace": change.cause.trace_id})
    for (kind,) in made:
        metrics.JOBS_ACCEPTED.labels(kind).inc()
    return len(made)


def _matches(chosen: Mapping[str, str]) -> str:
    return " AND ".join(["true", *(sql for name, sql in _CONDITIONS.items() if chosen.get(name) is not None)])


def _parameters(workspace_id: str, chosen: Mapping[str, str]) -> dict[str, Any]:
    return {**{name: chosen.get(name) for name in _CONDITIONS}, "workspace_id": workspace_id}


# The condition for open failures. It must stay equal to the condition of their index.
OPEN = "status = 'failed' AND replayed_as IS NULL AND discarded_at IS NULL"

_GIVE_UP = """
    UPDATE jobs
    SET status = 'failed', unknown_since = NULL, finished_at = clock_timestamp(),
        problem = (%s::jsonb || jsonb_build_object('traceId', trace_id))::json
    WHERE id = ANY(%s) AND unknown_since IS NOT NULL
    RETURNING id, workspace_id, kind
"""

_PROBLEM = "coalesce(substring(problem->>'type' from '[^/]+$'), '')"
_EXCEPTION = "coalesce(broke->>'type', '')"
_CONDITIONS = {
    "kind": "kind = %(kind)s",
    "problem": f"{_PROBLEM} = %(problem)s",
    "exception": f"{_EXCEPTION} = %(exception)s",
}
_IS_REPLAYABLE = "payload IS NOT NULL AND kind <> 'contacts.import' AND kind = ANY(%(known)s)"

_COUNT = f"""
    SELECT kind, {_PROBLEM}, {_EXCEPTION},
        CASE WHEN kind <> ALL(%(known)s) THEN 'unknown_kind' WHEN kind = 'contacts.import' THEN 'import'
            WHEN payload IS NULL THEN 'not_kept' END,
        count(*), max(id)
    FROM jobs WHERE workspace_id = %(workspace_id)s AND {OPEN} AND {{matches}}
    GROUP BY 1, 2, 3, 4
"""

_TOTAL = f"""
    SELECT count(*) FROM jobs
    WHERE workspace_id = %(workspace_id)s AND {OPEN} AND id <= %(until)s AND {{matches}} {{able}}
"""

# Examines a bounded number of rows, so that a part takes no longer if only a few of a million jobs match.
_NEXT = f"""
    WITH looked_at AS MATERIALIZED (
        SELECT id, {{matches}} {{able}} AS is_chosen FROM jobs
        WHERE workspace_id = %(workspace_id)s AND {OPEN} AND id > %(after)s AND id <= %(until)s
        ORDER BY id LIMIT %(looked_at)s
    )
    SELECT (SELECT max(id) FROM looked_at), (SELECT count(*) FROM looked_at),
        ARRAY(SELECT id FROM looked_at WHERE is_chosen ORDER BY id LIMIT %(most)s)
"""

# In the order in which the jobs were first accepted. The new job takes over the payload of the old one.
_REPLAY = f"""
    WITH made AS (
        INSERT INTO jobs (id, workspace_id, token_id, kind, payload, progress, resource_type, resource_id, trace_id,
            replayed_from)
        SELECT new, workspace_id, token_id, kind, payload, progress, resource_type, resource_id, %(trace)s, jobs.id
        FROM unnest(%(old)s::text[], %(new)s::text[]) AS pair(old, new) JOIN jobs ON jobs.id = pair.old
        WHERE jobs.id = ANY(%(old)s) AND {OPEN} AND {_IS_REPLAYABLE}
        ORDER BY jobs.position
        RETURNING id, replayed_from, kind
    )
    UPDATE jobs SET replayed_as = made.id, payload = NULL, broke = NULL FROM made
    WHERE jobs.id = made.replayed_from AND jobs.id = ANY(%(old)s)
    RETURNING made.kind
"""

_DISCARD = f"""
    UPDATE jobs SET discarded_at = now(), discard_reason = %s, payload = NULL, broke = NULL
    WHERE {OPEN} AND id = ANY(%s)
"""
