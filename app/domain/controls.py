"""Controls of all runs of an automation: cancelling them, and releasing those that a pause holds; each in parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from app.domain import run_states, walks
from app.domain.changes import Change
from app.domain.units import Busy, Unit
from app.domain.walks import Choice
from app.lib import ids
from app.models.automations import Automation
from app.models.runs import UNFINISHED, Run


def chosen(automation: Automation, filters: Mapping[str, Any]) -> Choice:
    """The unfinished runs that match `contact_id`, `status`, `since` and `until`, and are older than `before`."""
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
    """Cancels the next of the runs that the payload selects; returns whether that was all. Raises Busy."""
    position = (change.progress or {}).get("after", "")
    after = walks.go_on(change, chosen(automation, change.payload), position, partial(_cancel, automation.name))
    if after is not None:
        change.keep(after=after)
    return after is None


def cancel_all(change: Change, automation: Automation) -> bool:
    """Cancels the next runs of an automation that an earlier part has unpublished; like `cancel`."""
    every = Choice(automation.workspace_id, automation.id)
    return _walk_after_change(change, every, partial(_cancel, automation.name))


def release(change: Change, automation: Automation) -> bool:
    """Lets the next runs go on that a pause held, which an earlier part has ended; like `cancel`."""
    held = Choice(automation.workspace_id, automation.id, statuses=["held"])
    return _walk_after_change(change, held, _go_on)


def _walk_after_change(change: Change, choice: Choice, alter: Callable[[Unit, Run], object]) -> bool:
    """Does the next part of a walk that begins once no transaction still sees the automation as it was before.

    Such a one could still begin a run, or hold one. Raises Busy while there is one.
    """
    progress = change.progress or {}
    if "horizon" not in progress:
        change.keep(horizon=walks.horizon())
        return False
    if "after" not in progress and not walks.has_passed(progress["horizon"]):
        raise Busy
    after = walks.go_on(change, choice, progress.get("after", ""), alter)
    if after is not None:
        change.keep(horizon=progress["horizon"], after=after)
    return after is None


def _go_on(unit: Unit, run: Run) -> None:
    if run.reason == "pause":
        run_states.wake(unit, run, status="queued" if run.started_at is None else "running", reason=None)


def _cancel(automation_name: str, unit: Unit, run: Run) -> None:
    run_states.finish(unit, run, "cancelled", automation_name=automation_name, reason="request")


def _bound(at: str | datetime | None) -> str | None:
    """The lowest identifier of a run whose time, in milliseconds, is that time or later."""
    if at is None:
        return None
    moment = datetime.fromisoformat(at) if isinstance(at, str) else at
    return ids.bound("run", moment + timedelta(microseconds=999))
