"""Events: what happened, in bytes that never change, and a delivery for every endpoint that wants it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from app import mailbox
from app.database import batches, database, rows
from app.domain import deliveries, lanes
from app.domain.deliveries import NewDelivery
from app.lib import clock, ids, json
from app.models.endpoints import Endpoint


@dataclass(frozen=True, slots=True)
class Cause:
    """What an event came of: a job and the request that made it."""

    job_id: str | None
    trace_id: str


@dataclass(frozen=True, slots=True)
class Happening:
    """An event that is recorded but not yet written.

    `only`: the one endpoint that it goes to, and the identifier of its delivery; None: it goes to all that want it.
    """

    id: str
    kind: str
    contact_id: str | None
    cause: Cause
    body: bytes
    at: datetime
    only: tuple[str, str] | None

    def deliveries(self, endpoints: Sequence[Endpoint]) -> list[NewDelivery]:
        """Its deliveries to those of the endpoints that it goes to."""
        if self.only is None:
            return [self._delivery(ids.new("dlv"), to) for to in endpoints if to.wants(self.kind)]
        endpoint_id, delivery_id = self.only
        return [self._delivery(delivery_id, to) for to in endpoints if to.id == endpoint_id]

    def _delivery(self, delivery_id: str, to: Endpoint) -> NewDelivery:
        return NewDelivery(delivery_id, self.id, self.kind, self.contact_id, to)


def body(event_id: str, kind: str, at: datetime, workspace_id: str, data: Mapping[str, Any]) -> bytes:
    """The body that receivers get; the only place that makes one."""
    document = {"id": event_id, "kind": kind, "created_at": at, "workspace_id": workspace_id, "data": data}
    return json.dumps(document)


class Recorder:
    """Collects the events of one workspace within a transaction and writes them, with their deliveries, in one go."""

    def __init__(self, workspace_id: str) -> None:
        self.workspace_id = workspace_id
        self.cause = Cause(None, "")
        self._pending: list[Happening] = []

    def record(self, kind: str, data: Mapping[str, Any], contact_id: str | None = None) -> None:
        self._record(kind, data, contact_id, None)

    def record_for(self, endpoint_id: str, kind: str, data: Mapping[str, Any]) -> str:
        """An event for one endpoint alone, whether or not it wants the kind; returns its delivery's identifier."""
        delivery_id = ids.new("dlv")
        self._record(kind, data, None, (endpoint_id, delivery_id))
        return delivery_id

    def mark(self) -> int:
        """A place to go back to with `forget_after`, when what was recorded since did not happen after all."""
        return len(self._pending)

    def forget_after(self, mark: int) -> None:
        del self._pending[mark:]

    def write(self) -> None:
        """Inserts what is pending; the endpoints' bells ring when the transaction commits."""
        if not self._pending:
            return
        happened, self._pending = self._pending, []
        self._insert(happened)
        endpoints = list(Endpoint.in_workspace(self.workspace_id).order_by(Endpoint.id))
        wanted = [delivery for event in happened for delivery in event.deliveries(endpoints)]
        if wanted:
            deliveries.create(self.workspace_id, wanted)
        active = {each.endpoint.id: each.endpoint for each in wanted if each.endpoint.state == "active"}
        for endpoint_id, lane in [(to.id, lanes.of(to.slow_until)) for to in active.values()]:
            database.after_commit(partial(mailbox.ring, lane, endpoint_id))

    def _record(self, kind: str, data: Mapping[str, Any], contact_id: str | None, only: tuple[str, str] | None) -> None:
        event_id, at = ids.new("evt"), clock.now()
        content = body(event_id, kind, at, self.workspace_id, data)
        self._pending.append(Happening(event_id, kind, contact_id, self.cause, content, at, only))

    def _insert(self, happened: list[Happening]) -> None:
        rows(
            """
            INSERT INTO events (id, workspace_id, kind, contact_id, job_id, trace_id, body, created_at)
            SELECT new.id, %s, new.kind, new.contact_id, new.job_id, new.trace_id, new.body, new.created_at
            FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[], %s::text[], %s::bytea[], %s::timestamptz[])
                AS new(id, kind, contact_id, job_id, trace_id, body, created_at)
            """,
            (
                self.workspace_id,
                [event.id for event in happened],
                [event.kind for event in happened],
                [event.contact_id for event in happened],
                [event.cause.job_id for event in happened],
                [event.cause.trace_id for event in happened],
                [event.body for event in happened],
                [event.at for event in happened],
            ),
        )


def of_contact(contact_id: str) -> Iterator[dict[str, Any]]:
    """The bodies of what happened to a contact, oldest first, some at a time."""
    for batch in batches("SELECT id FROM events WHERE contact_id = %s ORDER BY id", (contact_id,)):
        for (content,) in rows("SELECT body FROM events WHERE id = ANY(%s) ORDER BY id", (batch,)):
            yield json.loads(bytes(content))


def erase_contact(contact_id: str) -> set[str]:
    """Takes a contact's data out of every stored body; the identifiers stay. What it was found by at any time."""
    known: set[str] = set()
    for batch in batches("SELECT id FROM events WHERE contact_id = %s ORDER BY id", (contact_id,)):
        erased = {}
        for event_id, kind, at, workspace_id, content in rows(
            "SELECT id, kind, created_at, workspace_id, body FROM events WHERE id = ANY(%s)", (batch,)
        ):
            was = json.loads(bytes(content))["data"].get("contact", {})
            known |= {was[name] for name in ("external_id", "email", "phone") if was.get(name)}
            erased[event_id] = body(event_id, kind, at, workspace_id, {"contact": {"id": contact_id}})
        rows(
            """
            UPDATE events SET body = erased.body FROM unnest(%s::text[], %s::bytea[]) AS erased(id, body)
            WHERE events.id = erased.id AND events.id = ANY(%s)
            """,
            (list(erased), list(erased.values()), list(erased)),
        )
    return known
