"""Triggers, exits and goals: the runs that events begin, end, wake or bring to their goal.

A few consequences are carried out in the transaction that records the events. If there are many, the events are left to
the fan-out, which plans again and carries the plan out in parts.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

import structlog
from peewee import DatabaseError, InterfaceError

from app import sql
from app.database import rows
from app.domain.triggers import awaited_events, run_endings, run_states, waiting_starts
from app.domain.triggers.automation_listeners import Listener, Listeners, ObservedEvent
from app.domain.work.events import PAST_AUTOMATIONS, Recorder
from app.domain.work.units import Busy, Unit
from app.models.automations import Enrolment
from app.models.contacts import Contact
from app.models.runs import Run
from app.models.sets import Key

log = structlog.get_logger(__name__)

# The most runs that one transaction begins or ends because of events.
MOST_RUNS = 200
# The most pairs of event and listener that one transaction looks at, even if few runs follow.
MOST_LOOKS = 1_000
# An exit records an event too, from which more may follow. After this many rounds in one transaction, the rest is left
# to the fan-out.
ROUNDS = 3
# If only the run can tell whether an event concerns it, only this many of the latest runs of a contact and an
# automation are compared. Runs that a condition excludes stay unfinished, and every event would compare them all again.
MOST_COMPARED = 100


class Position(NamedTuple):
    """A place in a plan, which is ordered by event id, then automation id."""

    event_id: str
    automation_id: str


@dataclass(frozen=True, slots=True)
class Consequence:
    """What an event does to a listener's runs.

    `run_id`: the run that the event ends, wakes or brings to its goal. The last consequence for an event and a listener
    has no `run_id`. It concerns the runs that were begun in this transaction, and begins one if `starts`. `exits_all`:
    the event ends all of the contact's runs of this automation, so none has to be compared. `plans`: the event may set
    the time of a timed trigger of the listener.
    """

    observed: ObservedEvent
    listener: Listener
    run_id: str | None = None
    exits: bool = False
    starts: bool = False
    is_goal: bool = False
    wakes: bool = False
    exits_all: bool = False
    plans: bool = False

    @property
    def position(self) -> Position:
        """The consequence's place in the plan."""
        return Position(self.observed.event.id, self.listener.id)


@dataclass(frozen=True, slots=True)
class Plan:
    """The consequences of events, in order, capped for one transaction.

    `rest`: where the next part begins; None if the plan is complete. `looked`: the positions that were examined.
    """

    consequences: Sequence[Consequence] = ()
    rest: Position | None = None
    looked: Sequence[Position] = field(default_factory=list)

    def before(self, position: Position, observed: ObservedEvent) -> str:
        """Returns the last automation that got the event, once everything before `position` is done."""
        place = bisect_left(self.looked, position)
        passed = place > 0 and self.looked[place - 1].event_id == position.event_id
        return self.looked[place - 1].automation_id if passed else observed.after


def follow(unit: Unit, recorder: Recorder) -> None:
    """Begins, ends and wakes the runs that follow from the recorder's pending events.

    Leaves events to the fan-out if they are too many for one transaction, or would overtake earlier events of a contact
    that the fan-out has not passed to automations yet.
    """
    followed = 0
    for _ in range(ROUNDS):
        observed = [ObservedEvent(recorder.workspace_id, event) for event in recorder.pending[followed:]]
        if not observed:
            return
        if not _follow_at_once(unit, observed):
            break
        followed += len(observed)
    recorder.leave_after(followed)


def plan(observed: Sequence[ObservedEvent]) -> Plan:
    """Plans the consequences of events of one workspace. `observed` must be ordered by event id."""
    keys = {key for each in observed for key in each.keys}
    if not keys:
        return Plan()
    listeners = Listeners(observed[0].workspace_id, keys)
    looked: list[Position] = []
    last: list[Consequence] = []
    for each in observed:
        for listener in listeners.of(each):
            position = Position(each.event.id, listener.id)
            if len(looked) == MOST_LOOKS or len(last) > MOST_RUNS:
                return Plan(*_with_runs(last, position), looked)
            looked.append(position)
            exits, starts, is_goal = listener.may_exit_on(each), listener.starts(each), listener.may_reach_goal_on(each)
            wakes, plans = listeners.awaits(listener, each), listener.plans_on(each)
            if exits or starts or is_goal or wakes or plans:
                exits_all = exits and listener.exits_all_on(each)
                last.append(Consequence(each, listener, None, exits, starts, is_goal, wakes, exits_all, plans))
    return Plan(*_with_runs(last, None), looked)


def needs(consequences: Sequence[Consequence]) -> Iterator[Key]:
    """Yields the keys that `carry_out` gets from its unit for `consequences`."""
    for each in consequences:
        workspace_id, contact_id = each.observed.workspace_id, _contact_of(each)
        yield Key(Contact, workspace_id, "id", contact_id)
        yield Key(Enrolment, workspace_id, "id", Enrolment.id_of(contact_id, each.listener.id))
        if each.run_id is not None:
            yield Key(Run, workspace_id, "id", each.run_id)
        if each.plans:
            yield from waiting_starts.needs(each.observed, each.listener)


def carry_out(consequence: Consequence, unit: Unit) -> None:
    """Carries out the consequence. Affects no run if the contact has been deleted. Raises Busy."""
    observed = consequence.observed
    if consequence.plans:  # before the contact is checked: a merge may have given the booking another contact
        waiting_starts.follow(unit, observed, consequence.listener)
    if unit.get(Contact, observed.workspace_id, "id", _contact_of(consequence)) is None:
        return
    if consequence.run_id is not None:
        if (run := unit.get(Run, observed.workspace_id, "id", consequence.run_id)) is not None:
            _affect(unit, consequence, run)
    elif consequence.exits or consequence.is_goal or consequence.wakes:
        for run in unit.changed(Run):
            is_its = (run.contact_id, run.automation_id) == (observed.event.contact_id, consequence.listener.id)
            if is_its and run_states.is_before(unit, run, observed.event.id):
                _affect(unit, consequence, run)
    if consequence.starts:
        listener, event = consequence.listener, observed.event
        start = listener.start(
            *(observed.workspace_id, _contact_of(consequence), event.cause.trace_id),
            event=observed.document,
            event_id=event.id,
            depth=event.cause.depth + 1,
        )
        run_states.enter(unit, start, listener.reentry or "after_finish")


class Lookup(NamedTuple):
    """A search for the runs that an event may concern. `recorded_at`: as in ObservedEvent."""

    number: int
    contact_id: str
    automation_id: str
    recorded_at: datetime | None
    happened_at: datetime


def _follow_at_once(unit: Unit, observed: Sequence[ObservedEvent]) -> bool:
    """Carries out all that follows. Returns False, with nothing done, if the fan-out must do that."""
    try:
        planned = plan(observed)
        if planned.rest is not None or _would_overtake(planned.consequences):
            return False
        with unit.attempt():
            unit.read(needs(planned.consequences))
            for consequence in planned.consequences:
                carry_out(consequence, unit)
    except Busy:
        return False
    except (DatabaseError, InterfaceError):
        raise
    except Exception:
        # The write that recorded the events must not fail because of a run. In the fan-out, each run can fail alone.
        log.exception("triggers.left", workspace=observed[0].workspace_id, events=len(observed))
        return False
    return True


def _would_overtake(consequences: Sequence[Consequence]) -> bool:
    """Returns whether earlier events of one of the contacts still wait to be passed to automations."""
    contacts = {_contact_of(consequence) for consequence in consequences}
    return bool(contacts and rows(_UNFOLLOWED, {"contacts": sql.array(contacts)}))


def _with_runs(last: Sequence[Consequence], rest: Position | None) -> tuple[Sequence[Consequence], Position | None]:
    """Adds the consequences for known runs, up to MOST_RUNS, before each of `last`. Goals come first.

    Goals, exits and waits of runs that have to be compared with the event are capped separately, at MOST_RUNS each.
    Such runs may stay unchanged, so with a shared cap, the same part would be planned again and again.
    """
    before: dict[Position, list[tuple[object, Consequence]]] = {}
    for condition, of, is_about in _LOOKS:
        looks = [_look(number, each) for number, each in enumerate(last) if is_about(each)]
        for number, run_id in _find(condition, looks, MOST_RUNS + 1) if looks else ():
            each = last[number]
            before.setdefault(each.position, []).append(
                (condition, Consequence(each.observed, each.listener, run_id, **of))
            )
    consequences: list[Consequence] = []
    done: Counter[object] = Counter()
    for each in last:
        for kind, one in (*before.get(each.position, ()), (None, each)):
            done[kind] += 1
            if done[kind] > MOST_RUNS:
                return consequences, each.position
            consequences.append(one)
    return consequences, rest


def _look(number: int, each: Consequence) -> Lookup:
    return Lookup(number, _contact_of(each), each.listener.id, each.observed.recorded_at, each.observed.event.at)


def _affect(unit: Unit, consequence: Consequence, run: Run) -> None:
    """Applies the consequence to the run if it matches: reaches its goal, ends it, or wakes it."""
    observed, listener = consequence.observed, consequence.listener
    if consequence.is_goal and listener.reaches_goal_on(observed, run):
        run = run_states.reach_goal(unit, run_endings.adopted(unit, run), observed.event.at)
    if consequence.exits and not run.is_finished and listener.exits_on(observed, run):
        run_endings.finish(unit, run, "cancelled", automation_name=listener.name, reason="exit")
    elif consequence.wakes and awaited_events.is_awaited(run, observed):
        run_states.wake(unit, run_endings.adopted(unit, run), answer={"event": observed.document})


def _contact_of(consequence: Consequence) -> str:
    assert consequence.observed.event.contact_id is not None
    return consequence.observed.event.contact_id


def _find(condition: str | None, looks: Sequence[Lookup], limit: int) -> list[tuple[int, str]]:
    """Returns up to `limit` runs that meet the condition, as (number of the look, run id), sorted.

    Examines only the latest MOST_COMPARED runs of each look. Without a condition, all unfinished runs count.
    """
    statement = _UNFINISHED if condition is None else _LATEST.format(condition=condition)
    return list(rows(statement, {**_parameters(looks, limit), "most": MOST_COMPARED}))


def _parameters(looks: Sequence[Lookup], limit: int) -> dict[str, object]:
    names = ("numbers", "contacts", "automations", "times", "happened")
    return {"limit": limit, **dict(zip(names, map(list, zip(*looks, strict=True)), strict=True))}


# For each kind of consequence on known runs: the condition for `_find`, the flag that the consequence gets, and which
# consequences need the search.
_LOOKS: Sequence[tuple[str | None, dict[str, bool], Callable[[Consequence], bool]]] = (
    ("runs.goal_until >= look.happened_at", {"is_goal": True}, lambda each: each.is_goal),
    ("runs.finished_at IS NULL", {"exits": True}, lambda each: each.exits and not each.exits_all),
    ("runs.waits_for = 'event'", {"wakes": True}, lambda each: each.wakes),
    (None, {"exits": True}, lambda each: each.exits_all),
)

_UNFOLLOWED = sql.prepared(
    "find_unfollowed",
    f"""
    SELECT 1 FROM events WHERE contact_id = ANY(%(contacts)s::text[]) AND due_at IS NOT NULL
        AND fan_out_after < '{PAST_AUTOMATIONS}' LIMIT 1
    """,
)


# A run that an event started always counts: such runs start in the order of events, so the run is older than the look's
# event. Any other run counts only if it was created before that event was recorded. `pending_merges` adds the contacts
# that were merged into the look's contact, because their runs may not have been moved yet.
_UNFINISHED = """
    SELECT exit.number, runs.id
    FROM unnest(%(numbers)s::int[], %(contacts)s::text[], %(automations)s::text[], %(times)s::timestamptz[])
        AS exit(number, contact_id, automation_id, at)
    CROSS JOIN LATERAL (
        SELECT exit.contact_id AS id UNION ALL SELECT id FROM pending_merges WHERE kept_id = exit.contact_id
    ) AS own
    JOIN runs ON runs.contact_id = own.id AND runs.automation_id = exit.automation_id
        AND runs.finished_at IS NULL
        AND (runs.event_id IS NOT NULL OR runs.created_at <= coalesce(exit.at, 'infinity'))
    ORDER BY exit.number, runs.id LIMIT %(limit)s
"""

_LATEST = """
    SELECT look.number, run.id
    FROM unnest(%(numbers)s::int[], %(contacts)s::text[], %(automations)s::text[], %(times)s::timestamptz[],
        %(happened)s::timestamptz[]) AS look(number, contact_id, automation_id, at, happened_at)
    CROSS JOIN LATERAL (
        SELECT runs.id FROM (
            SELECT look.contact_id AS id UNION ALL SELECT id FROM pending_merges WHERE kept_id = look.contact_id
        ) AS own
        JOIN runs ON runs.contact_id = own.id AND runs.automation_id = look.automation_id
            AND {condition}
            AND (runs.event_id IS NOT NULL OR runs.created_at <= coalesce(look.at, 'infinity'))
        ORDER BY runs.id DESC LIMIT %(most)s
    ) AS run
    ORDER BY look.number, run.id LIMIT %(limit)s
"""
