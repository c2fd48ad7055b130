"""Changes to a workspace's settings, and to the runs that its time zone and quiet hours affect."""

from __future__ import annotations

from app.database import count, rows
from app.domain.people import workspaces
from app.domain.segments import schedules
from app.domain.triggers import run_states, start_scans
from app.domain.work.changes import Change, Effect
from app.domain.work.units import Busy

# The most runs that one transaction makes due.
PART = 1_000
_WAITS = "workspace_id = %s AND waits_for = 'quiet_hours' AND resume_at IS NOT NULL"


def update(change: Change) -> Effect | None:
    """Changes the given fields of the workspace. Works in parts: returns None if more runs are left.

    After a change of quiet hours or time zone, makes the runs that wait for the end of quiet hours due, so that they
    check again. Raises Busy.
    """
    if change.progress is None:
        workspaces.update(change)
        if "timezone" in change.payload:
            start_scans.begin_again(change.workspace_id)
            schedules.move(change.workspace_id)
    if {"quiet_hours", "timezone"}.isdisjoint(change.payload) or _wake_some(change.workspace_id):
        return Effect("changed", "workspace", change.workspace_id)
    change.keep(is_changed=True)
    return None


def _wake_some(workspace_id: str) -> bool:
    """Makes the next runs due; returns whether none is left. Raises Busy if all left are locked."""
    woken = count(
        f"""
        UPDATE runs SET due_at = now(), resume_at = NULL WHERE id = ANY(ARRAY(
            SELECT id FROM runs WHERE {_WAITS} LIMIT %s FOR NO KEY UPDATE SKIP LOCKED))
        """,
        (workspace_id, PART),
    )
    if woken:
        run_states.ring(workspace_id)
    if not rows(f"SELECT 1 FROM runs WHERE {_WAITS} LIMIT 1", (workspace_id,)):
        return True
    if not woken:
        raise Busy
    return False
