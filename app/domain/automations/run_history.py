"""The history of runs: exports and erases a contact's data in runs, and deletes old runs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

from app import partitions
from app.config import settings
from app.database import batches, count, delete_some, now, rows
from app.domain.automations import runs
from app.domain.triggers import run_endings, run_states
from app.domain.work.units import Busy, Unit
from app.lib import ids
from app.models.runs import Run, RunStep


def of_contact(contact_id: str) -> Iterator[dict[str, Any]]:
    """Yields everything stored about a contact's runs, with logs, oldest first, read in batches."""
    for batch in batches("SELECT id FROM runs WHERE contact_id = %s ORDER BY id", (contact_id,)):
        logs = defaultdict(list)
        for entry in RunStep.select().where(RunStep.run_id.in_(batch)).order_by(RunStep.run_id, RunStep.number):
            logs[entry.run_id].append(runs.represent_step(entry))
        for run in Run.select().where(Run.id.in_(batch)).order_by(Run.id):
            further = {"event": run.event, "saved": run.saved, "own_variables": run.own_variables, "answer": run.answer}
            yield run_states.represent(run) | further | {"steps": logs[run.id]}


def erase(unit: Unit, workspace_id: str, run_ids: Sequence[str]) -> None:
    """Erases the data of a deleted contact from these runs, and cancels unfinished runs.

    The caller has locked the runs. `erase_log` erases their logs. Raises Busy if one of their requests is in progress.
    """
    rows(_ERASE, (list(run_ids),))
    requests = "SELECT id FROM run_requests WHERE run_id = ANY(%s) FOR UPDATE SKIP LOCKED"
    count(f"DELETE FROM run_requests WHERE id IN ({requests})", (list(run_ids),))
    if rows("SELECT 1 FROM run_requests WHERE run_id = ANY(%s) LIMIT 1", (list(run_ids),)):
        raise Busy
    run_endings.cancel_erased(unit, workspace_id, run_ids)


def erase_log(run_ids: Sequence[str], limit: int) -> int:
    """Deletes up to `limit` log entries of these runs; returns how many."""
    return count(_ERASE_LOG, (list(run_ids), limit))


def forget_old(limit: int = 5_000) -> int:
    """Deletes up to `limit` runs that finished before HISTORY_RETENTION_DAYS; returns how many.

    Safe to run concurrently. Keeps runs whose log partition may exist, and runs that have not been billed.
    """
    ended_before = now() - timedelta(days=settings().history_retention_days)
    if pieces := partitions.existing(partitions.RUN_STEPS):
        ended_before = min(ended_before, ids.time_of(pieces[0].low))
    bounds = (ended_before - ids.MOST_SKEW, _billed_below())
    return delete_some("runs", "finished_at < %s AND id < %s", "finished_at", bounds, limit)


def _billed_below() -> str:
    """Returns the identifier below which every run has been billed; "" if none has."""
    counted = rows("SELECT counted_until FROM usage_progress WHERE meter = 'runs'")
    return ids.bound("run", counted[0][0]) if counted else ""


_ERASE = """
    UPDATE runs SET variables = '{}', own_variables = '{}', result = NULL, event = NULL, saved = '{}', answer = NULL,
        failure = CASE WHEN failure IS NOT NULL THEN
            json_build_object('code', failure->'code', 'detail', NULL, 'step', failure->'step') END
    WHERE id = ANY(%s)
"""

_ERASE_LOG = """
    DELETE FROM run_steps USING (
        SELECT run_id, number, id FROM run_steps WHERE run_id = ANY(%s) ORDER BY run_id, number LIMIT %s) AS erased
    WHERE run_steps.run_id = erased.run_id AND run_steps.number = erased.number AND run_steps.id = erased.id
"""
