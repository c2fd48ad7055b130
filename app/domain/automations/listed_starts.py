"""Starts runs for a list of contacts, in parts, and accounts for each start exactly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from app.domain.automations import automations
from app.domain.automations.bulk_changes import PART
from app.domain.triggers import run_states
from app.domain.triggers.run_states import Start
from app.domain.work.changes import Change, Effect
from app.domain.work.units import Busy
from app.models import sets
from app.models.contacts import Contact
from app.models.jobs import Job

MOST_CONTACTS = 1_000
# The outcomes of a start: its run has begun, `reentry` kept the contact out, or the contact is gone.
BEGUN, REFUSED, GONE = "begun", "refused", "gone"


def start_list(change: Change) -> Effect | None:
    """Starts one run for each contact in `contact_ids`, in parts; `account` returns the outcomes.

    Returns None until the last part. Raises NotFound, Busy, and AutomationNotPublished, even after some parts.
    """
    unit, workspace_id, automation_id = change.unit, change.workspace_id, change.target
    version, reentry, goal = automations.published(unit, workspace_id, automation_id)
    progress = change.progress or {"done": 0}
    part = change.payload["contact_ids"][progress["done"] :][:PART]
    became = Counter({name: progress.get(name, 0) for name in (BEGUN, REFUSED, GONE)})
    unit.read(sets.key(Contact, workspace_id, "id", contact_id) for contact_id in part)
    done = 0
    for contact_id in part:
        start = Start(
            workspace_id,
            automation_id,
            version,
            contact_id,
            change.cause.trace_id,
            goal=goal,
            job_id=change.cause.job_id,
        )
        try:
            with unit.attempt():
                became[_begin(change, start, reentry)] += 1
        except Busy:
            if not done:
                raise
            break
        done += 1
    change.keep(done=progress["done"] + done, **became)
    is_through = progress["done"] + done >= len(change.payload["contact_ids"])
    return Effect("changed", "automation", automation_id) if is_through else None


def account(job: Job) -> Mapping[str, int]:
    """Returns the outcomes of the list's starts so far: counts of BEGUN, REFUSED and GONE."""
    progress: dict[str, Any] = job.progress or {}
    return {name: progress.get(name, 0) for name in (BEGUN, REFUSED, GONE)}


def _begin(change: Change, start: Start, reentry: run_states.Reentry) -> str:
    unit = change.unit
    if unit.get(Contact, start.workspace_id, "id", start.contact_id) is None:
        return GONE
    if run_states.keeps_out(unit, start, reentry) is not None:
        run_states.count_refused(unit, start, "reentry")
        return REFUSED
    run_states.begin(unit, start)
    return BEGUN
