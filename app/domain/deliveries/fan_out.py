"""Fan-out: writes events, and the deliveries that follow from them.

Deliveries are made in the transaction that records the events if there are few of them, if no runs are left to the
fan-out, and if no delivery to an ordered endpoint overtakes an earlier one. Otherwise the events become mail for
`fan_out_parts`. Events for a single endpoint never wait.
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
from app.domain.work.events import NewEvent, Recorder
from app.lib import ids
from app.mailbox import Mail

MAIL = Mail(table="events", owner="workspace_id", queue="fan-outs", order="id", exclusive=True)
# The most deliveries that one transaction makes.
PART = 1_000


@dataclass(frozen=True, slots=True)
class Subscriber:
    """An endpoint, with the columns that decide which deliveries it gets."""

    id: str
    kinds: Collection[str]
    state: str
    slow_until: datetime | None
    created_at: datetime
    is_ordered: bool

    def wants(self, kind: str) -> bool:
        """Whether the endpoint is subscribed to this kind of event."""
        return "*" in self.kinds or kind in self.kinds


@dataclass(frozen=True, slots=True)
class Wanted:
    """A delivery to make."""

    id: str
    event: NewEvent
    subscriber: Subscriber


def write(recorder: Recorder, *, but: str | None = None) -> None:
    """Writes the recorded events; bells ring after the commit. `but`: gets no delivery made now."""
    if not (happened := recorder.take()):
        return
    workspace_id = recorder.workspace_id
    subscribers = [subscriber for subscriber in subscribers_of(workspace_id) if subscriber.id != but]
    addressed = [event for event in happened if event.only is not None]
    others = [event for event in happened if event.only is None]
    is_small = (
        not any(event.is_left for event in others)
        and _count(others, subscribers) <= PART
        and not _would_overtake(workspace_id, others, subscribers)
    )
    events.insert(workspace_id, addressed, is_mail=False)
    events.insert(workspace_id, others, is_mail=not is_small)
    at_once = _addressed(addressed, subscribers)
    if is_small:
        at_once += [delivery for event in others for delivery in wanted_by(subscribers, event)]
    else:
        database.after_commit(partial(mailbox.ring, MAIL, workspace_id))
    make(workspace_id, at_once)


def subscribers_of(workspace_id: str) -> list[Subscriber]:
    """Returns the workspace's endpoints that are not deleted, ordered by identifier."""
    found = rows(
        """
        SELECT id, events, state, slow_until, created_at, ordered FROM endpoints
        WHERE workspace_id = %s AND state <> 'deleted' ORDER BY id
        """,
        (workspace_id,),
    )
    return [Subscriber(*row) for row in found]


def _count(happened: Sequence[NewEvent], subscribers: Sequence[Subscriber]) -> int:
    kinds = [event.kind for event in happened]
    return sum(sum(subscriber.wants(kind) for subscriber in subscribers) * kinds.count(kind) for kind in set(kinds))


def _would_overtake(workspace_id: str, happened: Sequence[NewEvent], subscribers: Sequence[Subscriber]) -> bool:
    """Whether deliveries made now would overtake deliveries of earlier events to an ordered endpoint."""
    if not any(
        subscriber.is_ordered and subscriber.wants(event.kind) for subscriber in subscribers for event in happened
    ):
        return False
    waiting = "SELECT 1 FROM events WHERE workspace_id = %s AND due_at IS NOT NULL LIMIT 1"
    return bool(rows(waiting, (workspace_id,)))


def _addressed(happened: Sequence[NewEvent], subscribers: Sequence[Subscriber]) -> list[Wanted]:
    """Returns the deliveries of events for a single endpoint, subscribed or not."""
    by_id = {subscriber.id: subscriber for subscriber in subscribers}
    only = [(event, *event.only) for event in happened if event.only is not None]
    return [Wanted(id, event, by_id[endpoint_id]) for event, endpoint_id, id in only if endpoint_id in by_id]


def wanted_by(subscribers: Iterable[Subscriber], event: NewEvent) -> list[Wanted]:
    """Returns the event's deliveries, one for each of the `subscribers` that wants it."""
    return [Wanted(ids.new("dlv"), event, subscriber) for subscriber in subscribers if subscriber.wants(event.kind)]


def make(workspace_id: str, wanted: Sequence[Wanted]) -> None:
    """Inserts the deliveries, held if the endpoint is stopped. Rings for the others after the commit."""
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
            [each.subscriber.id for each in wanted],
            [each.event.kind for each in wanted],
            [each.event.contact_id for each in wanted],
            ["pending" if each.subscriber.state == "active" else "held" for each in wanted],
        ),
    )
    active = {each.subscriber.id: each.subscriber for each in wanted if each.subscriber.state == "active"}
    for subscriber in active.values():
        database.after_commit(partial(mailbox.ring, lanes.of(subscriber.slow_until), subscriber.id))
