"""Events: what happened, as bytes that never change, except by an erasure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from marshmallow import fields

from app.database import batches, database, rows
from app.errors import NotFound
from app.lib import clock, ids, json
from app.lib.schemas import ResponseBody, about, time
from app.logs import tracing
from app.models.deliveries import Delivery
from app.models.events import Event

if TYPE_CHECKING:
    from app.logs.spans import Spans

# The `fan_out_after` of an event that has been passed to all automations: sorts after their ids and before endpoint
# ids.
PAST_AUTOMATIONS = "aut_~"


@dataclass(frozen=True, slots=True)
class Cause:
    """The cause of an event: a job with the request that made it, or a run.

    `depth`: how many automations started automatically, one after another, before the event; 0 for a job.
    """

    job_id: str | None
    trace_id: str
    run_id: str | None = None
    depth: int = 0


@dataclass(frozen=True, slots=True)
class NewEvent:
    """An event that is recorded but not yet written.

    `only`: the one endpoint that gets the event, and the id of its delivery; None if the event is for all endpoints.
    `tag`: the tag that was added or removed, if any. `is_left`: whether the fan-out starts the event's runs.
    """

    id: str
    kind: str
    contact_id: str | None
    cause: Cause
    body: bytes
    at: datetime
    only: tuple[str, str] | None = None
    tag: str | None = None
    is_left: bool = False


def body(event_id: str | None, kind: str, at: datetime, workspace_id: str, data: Mapping[str, Any]) -> bytes:
    """Returns the body of an event. `event_id`: None if it is made only for a run, and sent nowhere."""
    document = {"id": event_id, "kind": kind, "created_at": at, "workspace_id": workspace_id, "data": data}
    return json.dumps(document)


class Recorder:
    """Collects the events of one workspace until they are written, all in one statement."""

    def __init__(self, workspace_id: str) -> None:
        self.workspace_id = workspace_id
        self.cause = Cause(None, "")
        self._pending: list[NewEvent] = []

    def record(
        self, kind: str, data: Mapping[str, Any], contact_id: str | None = None, only: tuple[str, str] | None = None
    ) -> None:
        """Records an event. `contact_id`: the contact that it is about, if any. `only`: as in NewEvent."""
        event_id, at = ids.new("evt"), clock.now()
        content = body(event_id, kind, at, self.workspace_id, data)
        tag = data.get("tag")
        self._pending.append(NewEvent(event_id, kind, contact_id, self.cause, content, at, only, tag))

    def record_for(self, endpoint_id: str, kind: str, data: Mapping[str, Any]) -> str:
        """Records an event for one endpoint, whether or not it wants the kind; returns the delivery's id."""
        delivery_id = ids.new("dlv")
        self.record(kind, data, only=(endpoint_id, delivery_id))
        return delivery_id

    def mark(self) -> int:
        """Returns a mark for `forget_after`: call it before recording events that may have to be dropped."""
        return len(self._pending)

    def forget_after(self, mark: int) -> None:
        """Drops the events that were recorded since the mark."""
        del self._pending[mark:]

    @property
    def pending(self) -> Sequence[NewEvent]:
        """The events that are recorded but not yet written."""
        return self._pending

    def leave_after(self, mark: int) -> None:
        """Lets the fan-out start the runs that follow from events since the mark, after the commit."""
        self._pending[mark:] = [replace(event, is_left=True) for event in self._pending[mark:]]

    def take(self) -> list[NewEvent]:
        """Takes the events that are not yet written. The caller must `insert` them."""
        happened, self._pending = self._pending, []
        return happened


def insert(workspace_id: str, happened: Sequence[NewEvent], *, is_mail: bool) -> None:
    """Writes the events. `is_mail`: the fan-out makes their deliveries and, if `is_left`, runs."""
    if not happened:
        return
    rows(
        """
        INSERT INTO events (
            id, workspace_id, kind, contact_id, job_id, trace_id, run_id, depth, body, created_at, due_at,
            fan_out_after)
        SELECT new.id, %s, new.kind, new.contact_id, new.job_id, new.trace_id, new.run_id, new.depth, new.body,
            new.created_at, CASE WHEN %s THEN clock_timestamp() END, CASE WHEN %s AND NOT is_left THEN %s ELSE '' END
        FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[], %s::text[], %s::text[], %s::int[], %s::bytea[],
            %s::timestamptz[], %s::boolean[])
            AS new(id, kind, contact_id, job_id, trace_id, run_id, depth, body, created_at, is_left)
        """,
        (
            workspace_id,
            is_mail,
            is_mail,
            PAST_AUTOMATIONS,
            [event.id for event in happened],
            [event.kind for event in happened],
            [event.contact_id for event in happened],
            [event.cause.job_id for event in happened],
            [event.cause.trace_id for event in happened],
            [event.cause.run_id for event in happened],
            [event.cause.depth for event in happened],
            [event.body for event in happened],
            [event.at for event in happened],
            [event.is_left for event in happened],
        ),
    )
    if tracing.spans is not None:
        database.after_commit(partial(_trace, tracing.spans, happened))


def _trace(spans: Spans, happened: Sequence[NewEvent]) -> None:
    """Adds a span without duration for each event: its deliveries and runs become the children."""
    for event in happened:
        at, cause_id = event.at.timestamp(), event.cause.run_id or event.cause.job_id
        spans.add(
            event.kind,
            "PRODUCER",
            tracing.trace_of(event.cause.trace_id or event.id),
            tracing.span_of(event.id),
            tracing.span_of(cause_id) if cause_id else None,
            (at, at),
            {"messaging.system": "bellhop", "messaging.operation.type": "send", "messaging.message.id": event.id},
        )


def find(workspace_id: str, event_id: str) -> Event:
    """Returns the event; after its retention, rebuilt from a delivery, without body. Raises NotFound."""
    try:
        return Event.find(workspace_id, event_id)
    except NotFound:
        sent = Delivery.of_event(workspace_id, event_id, limit=1) if ids.is_id(event_id, "evt") else []
        if not sent:
            raise
    known = {"kind": sent[0].kind, "contact_id": sent[0].contact_id, "body": None}
    return Event(id=event_id, workspace_id=workspace_id, created_at=ids.time_of(event_id), **known)


class EventSchema(ResponseBody):
    id = fields.String()
    kind = fields.String()
    created_at = time("When the event happened.")
    contact_id = fields.String(allow_none=True, metadata=about("The contact it is about; null: none."))
    body = fields.Dict(
        allow_none=True,
        metadata=about(
            "The body of each of its deliveries, byte for byte; null once it is no longer kept.",
            anyOf=[{"$ref": f"#/components/schemas/{name}"} for name in ("WebhookBody", "ErasedBody")]
            + [{"type": "null"}],
        ),
    )


def represent(event: Event) -> dict[str, Any]:
    """Returns the event as the API shows it. Its body has the exact bytes that deliveries send."""
    return EventSchema.of(event, body=None if event.body is None else json.verbatim(bytes(event.body)))


def of_contact(contact_id: str) -> Iterator[dict[str, Any]]:
    """Yields the bodies of a contact's events, oldest first, read in batches."""
    for batch in batches("SELECT id FROM events WHERE contact_id = %s ORDER BY id", (contact_id,)):
        for (content,) in rows("SELECT body FROM events WHERE id = ANY(%s) ORDER BY id", (batch,)):
            yield json.loads(bytes(content))


def erase(event_ids: list[str]) -> set[str]:
    """Replaces the contact in the bodies by its id; returns the identifiers that they contained."""
    known: set[str] = set()
    erased = {}
    for event_id, kind, at, workspace_id, contact_id, content in rows(
        "SELECT id, kind, created_at, workspace_id, contact_id, body FROM events WHERE id = ANY(%s)", (event_ids,)
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
