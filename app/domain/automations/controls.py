"""Controls all runs of an automation: cancels them, and releases runs held by a pause.

A cancellation first puts a mark on the automation, which keeps its runs from taking further steps, and then changes the
runs in bulk. A transaction that read the automation before the mark has locked its runs' contacts by then, so the
change waits for it. If such a transaction holds a run for a pause that is over, the next pass releases that run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from app import mailbox, sql
from app.database import rows
from app.domain.automations import bulk_changes
from app.domain.automations.bulk_changes import Choice
from app.domain.triggers import run_endings, run_states
from app.domain.work.changes import Change
from app.domain.work.units import Unit
from app.lib import ids
from app.models.automations import Automation
from app.models.runs import UNFINISHED, Run

# Whether a pause holds any run, even a pause that is over.
IS_ANY_HELD = "EXISTS (SELECT FROM runs WHERE reason = 'pause' AND due_at IS NULL)"


def chosen(automation: Automation, filters: Mapping[str, Any]) -> Choice:
    """Returns the unfinished runs that match `contact_id`, `status`, `since` and `until`.

    `before`: the identifier of a run; only older runs match.
    """
    since, until = _bound(filters.get("since")), _bound(filters.get("until"))
    return Choice(
        automation.workspace_id,
        automation.id,
        statuses=[filters["status"]] if "status" in filters else UNFINISHED,
        contact_id=filters.get("contact_id"),
        first_id=since or "",
        last_id=min(filter(None, [until, filters.get("before"), "run_~"])),
    )


def cancel(change: Change, automation: Automation) -> bool:
    """Cancels the next runs that the payload selects; returns whether none are left. Raises Busy."""
    is_through = _cancel_part(change, automation, chosen(automation, change.payload))
    if is_through:
        _mark(automation, _others(change, automation))
    return is_through


def cancel_all(change: Change, automation: Automation) -> bool:
    """Like `cancel`, for all runs of an automation that is being deleted.

    The mark stays, because a transaction that saw the automation published may still start a run.
    """
    return _cancel_part(change, automation, Choice(automation.workspace_id, automation.id))


def is_cancelled(automation: Automation, run: Run) -> bool:
    """Whether a cancellation in progress covers the run."""
    choices = [{name: mark[name] for name in _MARKED} for mark in automation.cancellations]
    return any(Choice(automation.workspace_id, automation.id, **choice).has(run) for choice in choices)


def release_held(limit: int = 1_000) -> int:
    """Makes runs due that a pause holds although their automation is not paused; returns how many.

    Takes up to `limit` runs of one automation in each of up to ten workspaces. The next step of each run ends its hold.
    Skips locked runs.
    """
    owners = [owner for (owner,) in rows(sql.prepared("release_held", _RELEASE), {"limit": limit})]
    for owner in set(owners):
        mailbox.ring(run_states.MAIL, owner)
    return len(owners)


def _cancel_part(change: Change, automation: Automation, choice: Choice) -> bool:
    """Sets the mark in the first part, and cancels runs in the others; returns whether none are left."""
    if change.progress is None or "after" not in change.progress:
        mark = {"job_id": change.cause.job_id, **{name: getattr(choice, name) for name in _MARKED}}
        _mark(automation, [*_others(change, automation), mark])
        change.keep(after="")
        return False
    after = bulk_changes.go_on(change, choice, change.progress["after"], partial(_cancel, automation.name))
    if after is not None:
        change.keep(after=after)
    return after is None


def _others(change: Change, automation: Automation) -> list[Mapping[str, Any]]:
    """Returns the marks of other jobs, which have failed but may be replayed."""
    return [mark for mark in automation.cancellations if mark["job_id"] != change.cause.job_id]


def _mark(automation: Automation, marks: Sequence[Mapping[str, Any]]) -> None:
    # Automations change only in writes of their workspace, one transaction at a time.
    Automation.update(cancellations=marks).where(Automation.id == automation.id).execute()


def _cancel(automation_name: str, unit: Unit, run: Run) -> None:
    run_endings.finish(unit, run, "cancelled", automation_name=automation_name, reason="request")


def _bound(at: str | datetime | None) -> str | None:
    """Returns the lowest identifier of a run created at that time (in milliseconds) or later."""
    if at is None:
        return None
    moment = datetime.fromisoformat(at) if isinstance(at, str) else at
    return ids.bound("run", moment + timedelta(microseconds=999))


_MARKED = ("statuses", "contact_id", "first_id", "last_id")

# Skips from one automation with held runs to the next, because a paused automation may hold many. Takes one automation
# in each workspace, so that no workspace delays others, and at most ten in all, so that the statement ends soon.
_RELEASE = """
    WITH RECURSIVE holding AS (
        SELECT min(automation_id) AS id FROM runs WHERE reason = 'pause' AND due_at IS NULL
        UNION ALL
        SELECT (SELECT min(automation_id) FROM runs
            WHERE reason = 'pause' AND due_at IS NULL AND automation_id > holding.id)
        FROM holding WHERE holding.id IS NOT NULL
    ), one AS (
        SELECT DISTINCT ON (workspace_id) holding.id FROM holding LEFT JOIN automations USING (id)
        WHERE holding.id IS NOT NULL AND automations.status IS DISTINCT FROM 'paused'
        ORDER BY workspace_id, random()
    ), ended AS MATERIALIZED (
        SELECT id FROM one ORDER BY random() LIMIT 10
    ), released AS MATERIALIZED (
        SELECT run.id FROM ended CROSS JOIN LATERAL (
            SELECT id FROM runs WHERE reason = 'pause' AND due_at IS NULL AND automation_id = ended.id
            ORDER BY automation_id, id LIMIT %(limit)s FOR NO KEY UPDATE SKIP LOCKED) AS run
    )
    UPDATE runs SET due_at = now() WHERE id = ANY(ARRAY(SELECT id FROM released)) RETURNING workspace_id
"""
