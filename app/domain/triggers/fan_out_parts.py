"""Fan-out in parts: makes the runs, then the deliveries, that follow from events left as mail.

Each part is a transaction of bounded size. `fan_out_after` stores how far an event has been passed on, so each run
begins and each delivery is made exactly once, even if a worker dies.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

import structlog

from app import mailbox
from app.database import count, rows, transaction
from app.domain.deliveries import fan_out
from app.domain.deliveries.fan_out import MAIL, Subscriber, Wanted
from app.domain.triggers import batches, triggers
from app.domain.triggers.automation_listeners import ObservedEvent
from app.domain.triggers.triggers import Consequence, Position
from app.domain.work.events import PAST_AUTOMATIONS, Cause, NewEvent
from app.lib import json
from app.mailbox import Claimed

log = structlog.get_logger(__name__)

# The most events that one transaction looks at, even if little follows from each.
ROOM = 200
# The pause before an event is retried whose contact another transaction has locked.
BUSY_SECONDS = 0.005


@dataclass(frozen=True, slots=True)
class _Waiting:
    """An event that is mail. `after`: the last automation or endpoint that it has been passed to.

    `due_at`: when the event was recorded. Automations and endpoints that are newer do not get it.
    """

    event: NewEvent
    after: str
    due_at: datetime


def work(workspace_id: str) -> None:
    """Fans out the events of the workspace's mail, until none is left or the slice is over."""
    mailbox.serve(MAIL, workspace_id, ROOM, _make_part)


def _make_part(batch: Sequence[Claimed]) -> None:
    """Makes the next runs and deliveries that follow from the events; releases the rest of the batch."""
    with transaction():
        if not mailbox.holding(MAIL, batch):
            log.warning("fan_out.not_held", workspace=batch[0].owner, events=len(batch))
            return
        workspace_id = batch[0].owner
        waiting = _waiting(batch)
        followed, halfway, is_busy = _follow(workspace_id, waiting)
        part, reached = _part(followed, fan_out.subscribers_of(workspace_id))
        fan_out.make(workspace_id, part)
        _save(batch, {each.event.id: each.after for each in (*followed, *halfway)} | reached)
    if is_busy:
        time.sleep(BUSY_SECONDS)


def _waiting(batch: Sequence[Claimed]) -> list[_Waiting]:
    found = rows(
        """
        SELECT id, kind, contact_id, CASE WHEN fan_out_after < %s THEN body END, created_at, fan_out_after, due_at,
            job_id, trace_id, run_id, depth
        FROM events WHERE id = ANY(%s) ORDER BY id
        """,
        (PAST_AUTOMATIONS, [claimed.id for claimed in batch]),
    )
    waiting = []
    for id, kind, contact_id, body, at, after, due_at, *cause in found:
        content = bytes(body or b"")
        tag = json.loads(content)["data"].get("tag") if content else None
        event = NewEvent(id, kind, contact_id, Cause(*cause), content, at, tag=tag)
        waiting.append(_Waiting(event, after, due_at))
    return waiting


def _follow(workspace_id: str, waiting: Sequence[_Waiting]) -> tuple[list[_Waiting], list[_Waiting], bool]:
    """Begins and ends the runs that follow from the events, until the limit or a locked contact.

    Returns the events that were passed to all automations, the event that was passed to some (in a list, which may be
    empty), and whether a contact was locked.
    """
    observed = {
        each.event.id: ObservedEvent(workspace_id, each.event, each.after, each.due_at)
        for each in waiting
        if each.after < PAST_AUTOMATIONS
    }
    planned = triggers.plan(list(observed.values()))
    done = _carry_out(planned.consequences)
    is_busy = done < len(planned.consequences)
    rest: Position | None = planned.consequences[done].position if is_busy else planned.rest
    followed = [
        replace(each, after=max(each.after, PAST_AUTOMATIONS))
        for each in waiting
        if rest is None or each.event.id < rest.event_id
    ]
    halfway = [
        replace(each, after=planned.before(rest, observed[each.event.id]))
        for each in waiting
        if rest is not None and each.event.id == rest.event_id
    ]
    return followed, halfway, is_busy


def _carry_out(consequences: Sequence[Consequence]) -> int:
    """Carries out consequences until a contact is locked; returns how many. Each can fail alone."""
    if not consequences:
        return 0
    tasks = [partial(triggers.carry_out, consequence) for consequence in consequences]
    results = batches.run(tasks, triggers.needs(consequences))
    for consequence, result in zip(consequences, results, strict=False):
        if isinstance(result, Exception):
            log.error("triggers.failed", **consequence.position._asdict(), exc_info=result)
    return len(results)


def _part(waiting: Sequence[_Waiting], subscribers: Sequence[Subscriber]) -> tuple[list[Wanted], dict[str, str | None]]:
    """Returns the deliveries of one part, and for each event reached the last endpoint served.

    An event maps to None once all its endpoints are served.
    """
    part: list[Wanted] = []
    reached: dict[str, str | None] = {}
    for each in waiting:
        left = [one for one in subscribers if one.id > each.after and one.created_at <= each.due_at]
        wanted, room = fan_out.wanted_by(left, each.event), fan_out.PART - len(part)
        part += wanted[:room]
        if len(wanted) > room:
            reached[each.event.id] = wanted[room - 1].subscriber.id if room else each.after
            break
        reached[each.event.id] = None
    return part, reached


def _save(batch: Sequence[Claimed], reached: Mapping[str, str | None]) -> None:
    """Stores how far each event has got. Events that are done stop being mail, and all leases end."""
    count(
        """
        UPDATE events SET leased_until = NULL, fan_out_after = coalesce(reached.after, fan_out_after),
            due_at = CASE WHEN reached.is_done THEN NULL ELSE due_at END
        FROM unnest(%s::text[], %s::text[], %s::boolean[]) AS reached(id, after, is_done)
        WHERE events.id = reached.id AND events.id = ANY(%s)
        """,
        (
            [claimed.id for claimed in batch],
            [reached.get(claimed.id) for claimed in batch],
            [claimed.id in reached and reached[claimed.id] is None for claimed in batch],
            [claimed.id for claimed in batch],
        ),
    )
