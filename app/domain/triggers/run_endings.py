"""Ends of runs (completed, failed, cancelled), and the runs of deleted or merged contacts.

The unfinished runs of a deleted contact are cancelled as `erased`, in parts (`cancel_erased`). Until then, a due run
fails with `gone` at the first step that needs the contact. No event begins another run.

The unfinished runs of a merged contact go on as runs of the kept contact. Some move in the merge's transaction
(`move`), the others in parts (`move_next`). If a run is due or ends before its part, it moves then (`adopted`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from app.database import rows
from app.domain.triggers import run_states
from app.domain.work.units import Busy, Unit
from app.models import sets
from app.models.automations import Enrolment
from app.models.contacts import Contact
from app.models.identities import PendingMerge
from app.models.runs import Run


def finish(
    unit: Unit,
    run: Run,
    status: Literal["completed", "failed", "cancelled"],
    *,
    automation_name: str,
    reason: Literal["request", "exit", "erased"] | None = None,
    failure: Mapping[str, Any] | None = None,
) -> Run:
    """Ends an unfinished run, and records `automation.<status>`. Wakes the run that waits for it.

    With a `reason`, also cancels the run that this one waits for, if its step has `cancel_together`. Raises Busy.
    """
    run = adopted(unit, run)
    if run.waits_for is not None:
        run_states.count_step(unit, run, "waiting", -1)
    ended = run_states.change(
        unit,
        run,
        status=status,
        reason=reason,
        failure=failure,
        answer=None,
        waits_for=None,
        resume_at=None,
        due_at=None,
        leased_until=None,
        finished_at=unit.now,
    )
    enrolment = unit.get(Enrolment, run.workspace_id, "id", Enrolment.id_of(run.contact_id, run.automation_id))
    if enrolment is not None and enrolment.active:
        unit.put(enrolment.altered(active=enrolment.active - 1))
    run_states.record(unit, ended, f"automation.{status}", automation_name)
    if ended.is_awaited:
        _wake_starter(unit, ended)
    if reason is not None and run.waits_for == "run":
        _cancel_awaited(unit, run, reason)
    return ended


def _wake_starter(unit: Unit, ended: Run) -> None:
    """Wakes the run that started `ended` and waits for it, with its result. Raises Busy."""
    starter = unit.get(Run, ended.workspace_id, "id", str(ended.parent_id))
    if starter is None or starter.waits_for != "run":
        return
    if starter.saved.get(str(starter.step), {}).get("run_id") == ended.id:
        answer = {"run_id": ended.id, "status": ended.status, "result": ended.result}
        run_states.wake(unit, adopted(unit, starter), answer=answer)


def _cancel_awaited(unit: Unit, starter: Run, reason: Literal["request", "exit", "erased"]) -> None:
    """Cancels the run that `starter` waits for, if the step says `cancel_together`. Raises Busy."""
    started = starter.saved.get(str(starter.step), {})
    if not started.get("cancel_together"):
        return
    run = unit.get(Run, starter.workspace_id, "id", started["run_id"])
    if run is not None and not run.is_finished:
        [name] = rows("SELECT name FROM automations WHERE id = %s", (run.automation_id,)) or [("",)]
        finish(unit, run, "cancelled", automation_name=name[0], reason=reason)


def cancel_erased(unit: Unit, workspace_id: str, run_ids: Sequence[str]) -> None:
    """Cancels the unfinished runs among `run_ids`, which the caller has locked, of a deleted contact."""
    unfinished = rows(
        """
        SELECT runs.id, runs.contact_id, automation_id, coalesce(name, '') FROM runs
        LEFT JOIN automations ON automations.id = automation_id
        WHERE runs.id = ANY(%s) AND finished_at IS NULL ORDER BY runs.id
        """,
        (list(run_ids),),
    )
    enrolments = (Enrolment.id_of(contact_id, automation_id) for _, contact_id, automation_id, _ in unfinished)
    unit.read(sets.key(Enrolment, workspace_id, "id", enrolment_id) for enrolment_id in enrolments)
    unit.read(sets.key(Run, workspace_id, "id", run_id) for run_id, *_ in unfinished)
    for run_id, _, _, name in unfinished:
        run = unit.get(Run, workspace_id, "id", run_id)
        assert run is not None
        finish(unit, run, "cancelled", automation_name=name, reason="erased")


def hand_over(unit: Unit, contact: Contact, kept: Contact) -> None:
    """Makes `kept` the owner of the contact's unfinished runs, whose rows are moved later."""
    unit.notes[_handed_over(contact.id)] = kept.id
    unit.append(PendingMerge(id=contact.id, workspace_id=contact.workspace_id, kept_id=kept.id))


def move(unit: Unit, run: Run, contact_id: str) -> Run:
    """Moves the run to another contact. Ends a worker's claim, which was made for the old contact."""
    run_states.ring(run.workspace_id)
    return run_states.change(unit, run, contact_id=contact_id, claim=run.claim + 1, leased_until=None)


def move_next(workspace_id: str, contact_id: str, kept_id: str, limit: int) -> bool:
    """Moves up to `limit` unfinished runs to `kept_id`; returns whether there were any.

    Raises Busy if runs are left but other transactions have locked them.
    """
    moved = rows(_MOVE_NEXT, {"kept_id": kept_id, "id": contact_id, "limit": limit})
    if moved:
        run_states.ring(workspace_id)
    elif rows("SELECT 1 FROM runs WHERE contact_id = %s AND finished_at IS NULL LIMIT 1", (contact_id,)):
        raise Busy
    return bool(moved)


def adopted(unit: Unit, run: Run) -> Run:
    """Returns the run, moved to the kept contact if its own has been merged. Raises Busy."""
    while unit.get(Contact, run.workspace_id, "id", run.contact_id) is None:
        kept_id = kept(unit, run.contact_id)
        if kept_id is None:
            break
        run = move(unit, run, kept_id)
    return run


def kept(unit: Unit, contact_id: str) -> str | None:
    """Returns the contact that `contact_id` was merged into; None if no merge of it is still pending."""
    pending = PendingMerge.select(PendingMerge.kept_id).where(PendingMerge.id == contact_id)
    kept_id: str | None = unit.noted(_handed_over(contact_id), pending.scalar)
    return kept_id


def _handed_over(contact_id: str) -> tuple[str, str]:
    return ("handed over", contact_id)


# A worker that has claimed a run expects the old contact, so the claim ends.
_MOVE_NEXT = """
    UPDATE runs SET contact_id = %(kept_id)s, claim = claim + 1, leased_until = NULL WHERE id = ANY(ARRAY(
        SELECT id FROM runs WHERE contact_id = %(id)s AND finished_at IS NULL
        LIMIT %(limit)s FOR NO KEY UPDATE SKIP LOCKED))
    RETURNING id
"""
