"""Working copies: drafts shared by an automation's editors, with undo and redo.

A working copy may be incomplete. Whenever the copy can run, it becomes the automation's `definition`; until then, it is
kept beside the definition. If the definition changes elsewhere, through the API or by restoring a version, the new
definition becomes the copy's next state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from peewee import fn

from app import bounds
from app.database import rows, transaction
from app.domain.automations import definitions
from app.domain.automations.editing import edits, step_trees
from app.errors import Conflict, Fault, Invalid
from app.lib import clock, json
from app.lib.caches import Cache
from app.models.automations import Automation
from app.models.working_copies import WorkingCopy, WorkingCopyState

MOST_STATES = 100
# The limit for all states of an automation. The current state is always kept.
MOST_STATE_BYTES = 8 * 1024 * 1024
# Typing within this time after the last state extends that state.
TYPING_SECONDS = 120
CHANGED_ELSEWHERE = "changed the draft over the API, or restored a version"
_LARGE_BYTES = 4 * 1024
# Faults by the fingerprint of their definition. Cached, because each form of the editor shows all of them.
_FAULTS: Cache[str, list[Fault]] = Cache(10_000)
Change = Callable[[Mapping[str, Any]], Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Copy:
    """The current working copy.

    `undoes`: the state whose change an undo takes back; `redoes`: the state that a redo restores; None without one.
    """

    automation: Automation
    definition: Mapping[str, Any]
    revision: int
    undoes: WorkingCopyState | None = None
    redoes: WorkingCopyState | None = None

    @property
    def faults(self) -> list[Fault]:
        """The faults that keep the copy from running. Raises Overloaded if too many are being looked for."""
        key = step_trees.print_of(self.definition)
        if (kept := _FAULTS.get(key)) is not None:
            return kept
        is_large = len(json.dumps(self.definition)) > _LARGE_BYTES
        with bounds.alone(self.automation.workspace_id) if is_large else nullcontext():
            found = definitions.faults(self.definition)
        _FAULTS.put(key, found, 1 + len(found))
        return found


def current(automation: Automation) -> Copy:
    """Returns the working copy, or the automation's definition if that is newer or there is no copy."""
    found: WorkingCopy | None = WorkingCopy.get_or_none(WorkingCopy.automation_id == automation.id)
    if found is None:
        return Copy(automation, automation.definition, 0)
    if found.seen != step_trees.print_of(automation.definition):
        # The definition was changed elsewhere. The next edit stores that change as a state. Until then, the definition
        # has the old revision number.
        return Copy(automation, automation.definition, found.revision, undoes=_state(automation, found.state))
    return _copy(automation, found)


def edit(automation: Automation, actor_id: str, done: str, change: Change, *, is_typing: bool = False) -> Copy:
    """Changes the current working copy, even if others have changed it in the meantime.

    `done`: a phrase about the change. With `is_typing`, extends the last state if it is recent, and of the same steps
    and person. Raises what `change` raises, and Invalid for a definition that cannot be edited.
    """
    with transaction():
        locked, found = _locked(automation)
        before = _definition(found)
        after = change(before)
        if faults := step_trees.structure_faults(after):
            raise Invalid(*faults)
        if after == before:
            return _copy(locked, found)
        steps = edits.changed_steps(before, after)
        number = found.state + 1
        if is_typing and _goes_on(found, actor_id, done, steps):
            number = found.state
        later = (WorkingCopyState.automation_id == automation.id) & (WorkingCopyState.number >= number)
        WorkingCopyState.delete().where(later).execute()
        _store(locked, number, after, actor_id, done, steps)
        _prune(automation.id, number)
        return _go_to(locked, found, number, after)


def undo(automation: Automation, revision: int) -> Copy:
    """Undoes the last change. Raises Conflict if there is none, or if `revision` is not current."""
    return _step(automation, revision, -1, "There is nothing to undo.")


def redo(automation: Automation, revision: int) -> Copy:
    """Redoes the change that was undone last. Raises Conflict like `undo`."""
    return _step(automation, revision, 1, "There is nothing to redo.")


def last_change(automation: Automation, step_id: str) -> WorkingCopyState | None:
    """Returns the state that last changed or removed the step; None if that state is not kept."""
    position = WorkingCopy.select(WorkingCopy.state).where(WorkingCopy.automation_id == automation.id)
    found: WorkingCopyState | None = (
        _states(automation.id)
        .where(WorkingCopyState.steps.contains([step_id]), WorkingCopyState.number <= position)
        .order_by(WorkingCopyState.number.desc())
        .first()
    )
    return found


def step_with(automation: Automation, step_id: str, its_print: str) -> Mapping[str, Any] | None:
    """Returns the step as it had the fingerprint, without nested steps; None if no state has it."""
    for state in _states(automation.id).order_by(WorkingCopyState.number.desc()):
        for placed in step_trees.walk(state.definition):
            if placed.step["id"] == step_id:
                own = step_trees.own(placed.step)
                if step_trees.print_of(own) == its_print:
                    return own
    return None


def check_publishable(automation: Automation) -> None:
    """Raises Conflict if the working copy cannot run: the published draft would not be the shown one."""
    count = len(current(automation).faults)
    if count:
        problems = "a problem" if count == 1 else f"{count} problems"
        raise Conflict(f"The draft has {problems}. Mend that first; the editor shows where.")


def _locked(automation: Automation) -> tuple[Automation, WorkingCopy]:
    """Locks the automation; returns it with its working copy, created if missing. Raises NotFound."""
    mine = Automation.id == automation.id
    locked: Automation = Automation.select().where(mine).for_update().get_or_none() or Automation.find(
        automation.workspace_id, automation.id
    )
    seen = step_trees.print_of(locked.definition)
    found = WorkingCopy.get_or_none(WorkingCopy.automation_id == automation.id)
    if found is None:
        _store(locked, 1, locked.definition, None, "", [])
        values = {"automation_id": locked.id, "workspace_id": locked.workspace_id, "state": 1, "revision": 0}
        WorkingCopy.insert(**values, seen=seen).execute()
        found = WorkingCopy.get(WorkingCopy.automation_id == automation.id)
    elif found.seen != seen:
        number = found.state + 1
        later = (WorkingCopyState.automation_id == locked.id) & (WorkingCopyState.number >= number)
        WorkingCopyState.delete().where(later).execute()
        steps = edits.changed_steps(_definition(found), locked.definition)
        _store(locked, number, locked.definition, None, CHANGED_ELSEWHERE, steps)
        found = found.altered(state=number, seen=seen)
    return locked, found


def _step(automation: Automation, revision: int, by: int, otherwise: str) -> Copy:
    with transaction():
        locked, found = _locked(automation)
        if found.revision != revision:
            raise Conflict("The draft has changed since this page was made. Look at what has changed, then try again.")
        state = _state(locked, found.state + by)
        if state is None:
            raise Conflict(otherwise)
        return _go_to(locked, found, state.number, state.definition)


def _go_to(automation: Automation, found: WorkingCopy, number: int, definition: Mapping[str, Any]) -> Copy:
    """Makes a state the current one, and the automation's definition if it can run."""
    seen = found.seen
    if not Copy(automation, definition, 0).faults:
        Automation.update(definition=definition, updated_at=fn.now()).where(Automation.id == automation.id).execute()
        automation, seen = automation.altered(definition=definition), step_trees.print_of(definition)
    changed = {"state": number, "revision": found.revision + 1, "seen": seen}
    WorkingCopy.update(**changed, updated_at=fn.now()).where(WorkingCopy.automation_id == automation.id).execute()
    return _copy(automation, found.altered(**changed))


def _copy(automation: Automation, found: WorkingCopy) -> Copy:
    around = WorkingCopyState.number.in_([found.state - 1, found.state, found.state + 1])
    near = {state.number: state for state in _states(found.automation_id).where(around)}
    here = near[found.state]
    undoes = here if found.state - 1 in near else None
    return Copy(automation, here.definition, found.revision, undoes, near.get(found.state + 1))


def _definition(found: WorkingCopy) -> Mapping[str, Any]:
    state = _states(found.automation_id).where(WorkingCopyState.number == found.state).get()
    definition: Mapping[str, Any] = state.definition
    return definition


def _state(automation: Automation, number: int) -> WorkingCopyState | None:
    found: WorkingCopyState | None = _states(automation.id).where(WorkingCopyState.number == number).first()
    return found


def _states(automation_id: str) -> Any:
    return WorkingCopyState.select().where(WorkingCopyState.automation_id == automation_id)


def _goes_on(found: WorkingCopy, actor_id: str, done: str, steps: Sequence[str]) -> bool:
    last = _states(found.automation_id).order_by(WorkingCopyState.number.desc()).first()
    is_recent = last.made_at > clock.now() - timedelta(seconds=TYPING_SECONDS)
    is_same = (last.number, last.actor_id, last.done, last.steps) == (found.state, actor_id, done, list(steps))
    return is_recent and is_same and found.state > 1


def _store(
    automation: Automation,
    number: int,
    definition: Mapping[str, Any],
    actor_id: str | None,
    done: str,
    steps: Sequence[str],
) -> None:
    WorkingCopyState.insert(
        automation_id=automation.id,
        number=number,
        workspace_id=automation.workspace_id,
        definition=definition,
        bytes=len(json.dumps(definition)),
        actor_id=actor_id,
        done=done,
        steps=list(steps),
    ).execute()


def _prune(automation_id: str, newest: int) -> None:
    """Deletes the oldest states that exceed MOST_STATES or MOST_STATE_BYTES, but never `newest`."""
    rows(
        """
        DELETE FROM working_copy_states WHERE automation_id = %(id)s AND number < %(newest)s AND number <= (
            SELECT coalesce(max(number), 0) FROM (
                SELECT number, sum(bytes) OVER (ORDER BY number DESC) AS total FROM working_copy_states
                WHERE automation_id = %(id)s
            ) AS summed WHERE total > %(most_bytes)s OR number <= %(newest)s - %(most)s
        )
        """,
        {"id": automation_id, "newest": newest, "most": MOST_STATES, "most_bytes": MOST_STATE_BYTES},
    )
