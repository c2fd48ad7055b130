"""Fan-out: writes events with the deliveries that follow from them.

While these are few, and no runs have been left to follow, they are made in the transaction that records the events.
Otherwise the events are mail, which `fan_out_parts` takes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from app import mailbox
from app.database import count, database, rows
from app.domain.deliveries import lanes
from app.domain.work import events
from app.domain.work.events import Happening, Recorder
from app.lib import ids
from app.mailbox import Mail

MAIL = Mail(table="events", owner="workspace_id", queue="fan-outs", order="id", exclusive=True)
# Deliveries that one transaction makes.
PART = 1_000


@dataclass(frozen=True, slots=True)
class Taker:
    """An endpoint, as far as it decides which deliveries are made."""

    id: str
    kinds: Collection[str]
    state: str
    slow_until: datetime | None
    created_at: datetime
    is_ordered: bool

    def wants(self, kind: str) -> bool:
        """Whether it gets events of this kind."""
        return "*" in self.kinds or kind in self.kinds


@dataclass(frozen=True, slots=True)
class Wanted:
    """A delivery that is to be made."""

    id: str
    event: Happening
    taker: Taker


def write(recorder: Recorder, *, but: str | None = None) -> None:
    """Writes what has been recorded, in the present transaction; bells for what follows ring when it commits.

    Of what follows at once, the endpoint `but` gets nothing.
    """
    if not (happened := recorder.take()):
        return
    workspace_id = recorder.workspace_id
    takers = [taker for taker in takers_of(workspace_id) if taker.id != but]
    addressed = [event for event in happened if event.only is not None]
    others = [event for event in happened if event.only is None]
    is_small = (
        not any(event.is_left for event in others)
        and _count(others, takers) <= PART
        and not _would_overtake(workspace_id, others, takers)
    )
    events.insert(workspace_id, addressed, is_mail=False)
    events.insert(workspace_id, others, is_mail=not is_small)
    at_once = _addressed(addressed, takers)
    if is_small:
        at_once += [delivery for event in others for delivery in wanted_by(takers, event)]
    else:
        database.after_commit(partial(mailbox.ring, MAIL, workspace_id))
    make(workspace_id, at_once)


def takers_of(workspace_id: str) -> list[Taker]:
    """The endpoints of a workspace, in the order of their identifiers."""
    found = rows(
        """
        SELECT id, events, state, slow_until, created_at, ordered FROM endpoints
        WHERE workspace_id = %s AND state <> 'deleted' ORDER BY id
        """,
        (workspace_id,),
    )
    return [Taker(*row) for row in found]


def _count(happened: Sequence[Happening], takers: Sequence[Taker]) -> int:
    kinds = [event.kind for event in happened]
    return sum(sum(taker.wants(kind) for taker in takers) * kinds.count(kind) for kind in set(kinds))


def _would_overtake(workspace_id: str, happened: Sequence[Happening], takers: Sequence[Taker]) -> bool:
    """Whether deliveries made now would go before those of earlier events to an endpoint that wants order."""
    if not any(taker.is_ordered and taker.wants(event.kind) for taker in takers for event in happened):
        return False
    waiting = "SELECT 1 FROM events WHERE workspace_id = %s AND due_at IS NOT NULL LIMIT 1"
    return bool(rows(waiting, (workspace_id,)))


def _addressed(happened: Sequence[Happening], takers: Sequence[Taker]) -> list[Wanted]:
    """The deliveries of events that are for one endpoint alone, whether or not it wants the kind."""
    by_id = {taker.id: taker for taker in takers}
    only = [(event, *event.only) for event in happened if event.only is not None]
    return [Wanted(id, event, by_id[endpoint_id]) for event, endpoint_id, id in only if endpoint_id in by_id]


def wanted_by(takers: Iterable[Taker], event: Happening) -> list[Wanted]:
    """The deliveries that follow from an event, as far as these endpoints want it."""
    return [Wanted(ids.new("dlv"), event, taker) for taker in takers if taker.wants(event.kind)]


def make(workspace_id: str, wanted: Sequence[Wanted]) -> None:
    """Writes the deliveries down, held where the endpoint is stopped, and rings for the others after the commit."""
    if not wanted:
        return
    count(
        """
        INSERT INTO deliveries (id, workspace_id, event_id, endpoint_id, kind, contact_id, status, due_at)
        SELECT new.id, %s, new.event_id, new.endpoint_id, new.kind, new.contact_id, new.status,
            CASE new.status WHEN 'pending' THEN now() END
        FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[], %s::text[], %s::text[])
            AS new(id, event_id, endpoint_id, kind, contact_id, status)
        """,
        (
            workspace_id,
            [each.id for each in wanted],
            [each.event.id for each in wanted],
            [each.taker.id for each in wanted],
            [each.event.kind for each in wanted],
            [each.event.contact_id for each in wanted],
            ["pending" if each.taker.state == "active" else "held" for each in wanted],
        ),
    )
    active = {each.taker.id: each.taker for each in wanted if each.taker.state == "active"}
    for taker in active.values():
        database.after_commit(partial(mailbox.ring, lanes.of(taker.slow_until), taker.id))
