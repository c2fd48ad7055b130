"""Moves: lets waiting runs of one version continue with the published version.

A run is moved while it waits in a step that the other version has, too, with the same identifier and kind. The wait
continues, followed by the other version's steps. All other runs keep their version.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from app.domain.automations import bulk_changes, version_counts
from app.domain.automations.bulk_changes import Choice
from app.domain.automations.definitions import programs
from app.domain.triggers import run_states
from app.domain.work.changes import Change, Effect
from app.domain.work.units import Unit
from app.errors import Conflict, Fault, Invalid
from app.models.automations import Automation
from app.models.runs import UNFINISHED, Run


def move_runs(change: Change) -> Effect | None:
    """Moves waiting runs from version `from_version` to the published `to_version`, in parts.

    Moves each run once, without taking a step. Returns None until the last part. Raises NotFound, Busy, Invalid for
    equal versions, and Conflict if `to_version` is not published when the move begins.
    """
    automation = Automation.find(change.workspace_id, change.target)
    source, target = change.payload["from_version"], change.payload["to_version"]
    _refuse_same(source, target)
    if change.progress is None and automation.version != target:
        raise Conflict(f"Version {target} is not the published one any more.")
    steps = common_steps(automation.id, source, target)
    step, after = (change.progress or {}).get("step"), (change.progress or {}).get("after", "")
    left = steps[steps.index(step) :] if step in steps else [] if step else steps
    if not left:
        return Effect("changed", "automation", automation.id)
    choice = Choice(change.workspace_id, automation.id, waiting_in=(source, left[0]))
    reached = bulk_changes.go_on(change, choice, after, partial(_move, target))
    if reached is None and len(left) == 1:
        return Effect("changed", "automation", automation.id)
    change.keep(step=left[1] if reached is None else left[0], after=reached or "")
    return None


def common_steps(automation_id: str, one: int, other: int) -> list[str]:
    """Returns the sorted identifiers of steps with the same kind in both versions. Raises NotFound."""
    theirs = programs.program_of(automation_id, other).steps
    return sorted(
        step.id
        for step in programs.program_of(automation_id, one).steps.values()
        if step.id in theirs and theirs[step.id].kind == step.kind
    )


def count(automation: Automation, source: int, target: int) -> tuple[int, int]:
    """Counts the version's runs that can be moved now, and its other unfinished runs.

    Raises NotFound, and Invalid for equal versions.
    """
    _refuse_same(source, target)
    counted: dict[str, Any] = version_counts.read(automation, source)
    unfinished = sum(counted["runs"][status] for status in UNFINISHED)
    waiting = sum(counted["steps"][step]["waiting"] for step in common_steps(automation.id, source, target))
    return waiting, unfinished - waiting


def _refuse_same(source: int, target: int) -> None:
    if source == target:
        raise Invalid(Fault("/from_version", "Give another version than the published one."))


def _move(target: int, unit: Unit, run: Run) -> None:
    """Moves the run to version `target`, which counts the run and its wait from now on."""
    run_states.count(unit, run, run.status, -1)
    run_states.count_step(unit, run, "waiting", -1)
    moved = unit.put(run.altered(version=target))
    run_states.count(unit, moved, moved.status)
    run_states.count_step(unit, moved, "entered")
    run_states.count_step(unit, moved, "waiting")
