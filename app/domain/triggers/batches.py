"""Batches: runs many tasks in one unit of work. Each task can fail alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import structlog
from peewee import DatabaseError, InterfaceError

from app.database import DatabaseAway, savepoint
from app.domain.deliveries import fan_out
from app.domain.triggers import triggers
from app.domain.work.units import LONG_SECONDS, Busy, Unit
from app.models.sets import Key

log = structlog.get_logger(__name__)

T = TypeVar("T")


def run(
    tasks: Sequence[Callable[[Unit], T]],
    needs: Iterable[Key],
    name: str = "unit",
    *,
    then: Callable[[Unit], None] | None = None,
    in_order: bool = True,
) -> list[T | Exception]:
    """Runs the tasks in order, in one unit of work in the caller's transaction.

    Each task can fail alone. Returns what each task returned or raised. If a task needs a row that another transaction
    has locked, the task and all after it have no effect, and the list ends before it. Without `in_order`, only that
    task has no effect, and its result is Busy. Once the unit has run too long, the remaining tasks are skipped in the
    same way; at least one task runs. The caller must commit, and retry the skipped tasks later. Raises DatabaseAway.

    `needs`: the keys that the tasks will `get`, all read by the same few statements. `then`: reads further keys once
    the `needs` are locked. `name`: of the savepoint; a `run` within a task of another needs a different one. If a
    statement fails, everything is rolled back and redone one task at a time.
    """
    try:
        with savepoint(name):
            return _run_together(tasks, needs, then, in_order)
    except DatabaseAway:
        raise
    except Exception:
        log.warning("unit.redone", tasks=len(tasks), exc_info=True)
        return run_each(tasks, name, in_order=in_order)


def run_each(tasks: Sequence[Callable[[Unit], T]], name: str = "unit", *, in_order: bool = True) -> list[T | Exception]:
    """Like `run`, but each task has a unit and a savepoint, and may run statements of its own."""
    results: list[T | Exception] = []
    ends = time.monotonic() + LONG_SECONDS
    for task in tasks:
        try:
            with savepoint(name):
                if results and time.monotonic() > ends:
                    raise Busy
                unit = Unit()
                result = task(unit)
                _write(unit)
        except Busy as busy:
            if in_order:
                break
            results.append(busy)
        except DatabaseAway:
            raise
        except Exception as error:
            results.append(error)
        else:
            results.append(result)
    return results


def _run_together(
    tasks: Sequence[Callable[[Unit], T]],
    needs: Iterable[Key],
    then: Callable[[Unit], None] | None,
    in_order: bool,
) -> list[T | Exception]:
    unit = Unit()
    unit.read(needs)
    if then is not None:
        then(unit)
    unit.begin_tasks()
    results: list[T | Exception] = []
    for task in tasks:
        try:
            if results and unit.is_long:
                raise Busy
            with unit.attempt():
                results.append(task(unit))
        except Busy as busy:
            if in_order:
                break
            results.append(busy)
        except (DatabaseError, InterfaceError):
            raise
        except Exception as error:
            results.append(error)
    _write(unit)
    return results


def _write(unit: Unit) -> None:
    """Writes the tasks' changes, and everything that follows from their events."""
    for recorder in unit.recorders:
        triggers.follow(unit, recorder)
    unit.write()
    for recorder in unit.recorders:
        fan_out.write(recorder)
