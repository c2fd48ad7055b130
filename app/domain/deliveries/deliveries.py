"""Deliveries: shows, resends and erases events on their way to endpoints."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from marshmallow import fields, validate
from peewee import fn

from app import mailbox
from app.database import batches, database, rows
from app.domain.deliveries import lanes, resends
from app.domain.work import audit, events
from app.domain.work.changes import Change, Effect
from app.errors import Conflict, Fault, Invalid
from app.lib.schemas import ResponseBody, about, time
from app.models.deliveries import STATUSES, Attempt, Delivery
from app.models.endpoints import Endpoint
from app.models.events import Event
from app.models.jobs import Job
from app.outbound.answers import ERROR_CODES, sentence_without_target

BODY_GONE = "The body of this event is no longer kept: its retention period is over. It cannot be sent again."

NO_ENDPOINT = "The workspace has no such endpoint."


def resend(change: Change) -> Effect:
    """Sends the delivery `delivery_id` at once, as a new one if it was delivered.

    Does nothing if the delivery is due already. Raises NotFound, and Conflict if an attempt is in progress or the
    delivery cannot be sent.
    """
    delivery_id = change.payload["delivery_id"]
    lock = "SELECT leased_until > clock_timestamp() FROM deliveries WHERE id = %s FOR NO KEY UPDATE"
    locked = rows(lock, (delivery_id,))
    delivery = find_resendable(change.workspace_id, change.payload)
    if locked == [(True,)]:
        raise Conflict("An attempt at this delivery is in progress.")
    endpoint = Endpoint.in_workspace(change.workspace_id).where(Endpoint.id == delivery.endpoint_id).first()
    if endpoint is None:
        raise Conflict("The endpoint of this delivery was deleted.")
    if endpoint.state != "active":
        raise Conflict("The endpoint of this delivery is stopped. Enable it first.")
    if delivery.status == "pending" and delivery.next_attempt_at is None:
        return Effect("changed", "delivery", delivery.id)
    sent_as = resends.send_again({delivery.id: delivery.status})[delivery.id]
    database.after_commit(partial(mailbox.ring, lanes.of(endpoint.slow_until), endpoint.id))
    audit.record(change, "delivery", delivery.id, {"endpoint_id": endpoint.id, "sent_as": sent_as}, endpoint.id)
    return Effect("changed" if sent_as == delivery.id else "made", "delivery", sent_as)


def create(change: Change) -> Effect:
    """Sends the event `event_id` to the endpoint `endpoint_id`, even if it is not subscribed.

    The change's target is the new delivery. Raises NotFound for the event, Invalid for an unknown endpoint, and
    Conflict if the endpoint is stopped or the event's body has been deleted.
    """
    event = find_sendable(change.workspace_id, change.payload["event_id"])
    endpoint = Endpoint.in_workspace(change.workspace_id).where(Endpoint.id == change.payload["endpoint_id"]).first()
    if endpoint is None:
        raise Invalid(Fault("/endpoint_id", NO_ENDPOINT))
    if endpoint.state != "active":
        raise Conflict(f"The endpoint {endpoint.id} is stopped. Enable it first.")
    Delivery.insert(
        id=change.target,
        workspace_id=change.workspace_id,
        event_id=event.id,
        endpoint_id=endpoint.id,
        kind=event.kind,
        contact_id=event.contact_id,
        trigger="resend",
        due_at=fn.now(),
        created_at=fn.now(),
    ).execute()
    database.after_commit(partial(mailbox.ring, lanes.of(endpoint.slow_until), endpoint.id))
    audit.record(change, "delivery", change.target, {"endpoint_id": endpoint.id, "event_id": event.id}, endpoint.id)
    return Effect("made", "delivery", change.target)


def check(workspace_id: str, payload: Mapping[str, Any], *_: object) -> None:
    """Raises like `find_sendable`; Invalid if the endpoint neither exists nor will be made by a job."""
    find_sendable(workspace_id, payload["event_id"])
    endpoint_id = payload["endpoint_id"]
    is_there = Endpoint.in_workspace(workspace_id).where(Endpoint.id == endpoint_id).exists()
    if not is_there and not Job.will_make(workspace_id, "endpoint", endpoint_id):
        raise Invalid(Fault("/endpoint_id", NO_ENDPOINT))


def find_sendable(workspace_id: str, event_id: str) -> Event:
    """Returns the event. Raises NotFound, and Conflict if its body has been deleted."""
    event = events.find(workspace_id, event_id)
    if event.body is None:
        raise Conflict(BODY_GONE)
    return event


def find_resendable(workspace_id: str, payload: Mapping[str, Any], *_: object) -> Delivery:
    """Returns the delivery `delivery_id`. Raises NotFound, and Conflict if it can never be sent again."""
    delivery = Delivery.find(workspace_id, payload["delivery_id"])
    if delivery.status == "cancelled":
        raise Conflict("This delivery was cancelled: it was discarded, or its endpoint was deleted.")
    if not Event.select().where(Event.id == delivery.event_id).exists():
        raise Conflict(BODY_GONE)
    return delivery


class DeliverySchema(ResponseBody):
    id = fields.String(metadata=about("Also sent as X-Service-Delivery, in every attempt."))
    event_id = fields.String()
    endpoint_id = fields.String()
    kind = fields.String()
    status = fields.String(validate=validate.OneOf(STATUSES))
    attempts = fields.Integer(metadata=about("How many attempts have ended."))
    next_attempt_at = time("When the next attempt is due.", allow_none=True)
    last_error = fields.String(allow_none=True, metadata=about("Why the last attempt failed; null: it did not."))
    last_error_code = fields.String(
        allow_none=True,
        validate=validate.OneOf([*ERROR_CODES, None]),
        metadata=about("The same as a code. `ours`: a fault of ours, which spent no attempt."),
    )
    created_at = time("When the event happened.")
    delivered_at = time("When an attempt succeeded.", allow_none=True)
    resent_from = fields.String(allow_none=True)


class AttemptSchema(ResponseBody):
    number = fields.Integer()
    at = time("When the attempt began.")
    duration_ms = fields.Integer()
    status = fields.Integer(allow_none=True, metadata=about("The status code received."))
    error = fields.String(allow_none=True, metadata=about("Why it failed; null: it did not."))
    error_code = fields.String(allow_none=True, validate=validate.OneOf([*ERROR_CODES, None]))
    response_body = fields.String(allow_none=True, metadata=about("At most 16 KiB of it."))
    trigger = fields.String(
        validate=validate.OneOf(["automatic", "resend"]),
        metadata=about("`resend`: it was requested. `automatic`: it was due by itself."),
    )


class DeliveryWithAttemptsSchema(DeliverySchema):
    body = fields.String(allow_none=True, metadata=about("The bytes that are sent, as text."))
    attempts_log = fields.List(fields.Nested(AttemptSchema))


def represent(delivery: Delivery) -> dict[str, Any]:
    """Returns the delivery as lists show it."""
    # During an attempt, the next one is shown as due when the lease ends, in case no outcome is recorded.
    due_at = delivery.due_at and max(delivery.due_at, delivery.leased_until or delivery.due_at)
    return DeliverySchema.of(delivery, next_attempt_at=delivery.next_attempt_at or due_at)


def represent_whole(delivery: Delivery) -> dict[str, Any]:
    """Like `represent`, with the body as text and every attempt."""
    event = Event.get_or_none(Event.id == delivery.event_id)
    return represent(delivery) | {
        "body": bytes(event.body).decode() if event else None,
        "attempts_log": [AttemptSchema.of(attempt) for attempt in Attempt.of(delivery.id)],
    }


def of_contact(contact_id: str) -> Iterator[dict[str, Any]]:
    """Yields the deliveries about a contact with their attempts, oldest first, read in batches."""
    for batch in batches("SELECT id FROM deliveries WHERE contact_id = %s ORDER BY id", (contact_id,)):
        attempts = defaultdict(list)
        for attempt in Attempt.of(*batch):
            attempts[attempt.delivery_id].append(AttemptSchema.of(attempt))
        for delivery in Delivery.select().where(Delivery.id.in_(batch)).order_by(Delivery.id):
            yield represent(delivery) | {"attempts_log": attempts[delivery.id]}


def erase(delivery_ids: Sequence[str]) -> None:
    """Removes receivers' answers to these deliveries, and targets of redirects, from the log.

    The caller has locked the deliveries, so that no sender claims them or records attempts, and has erased the bodies
    of their events. The outcome of an attempt in progress no longer counts: it is repeated with the erased body.
    """
    rows("UPDATE deliveries SET leased_until = NULL WHERE id = ANY(%s) AND leased_until IS NOT NULL", (delivery_ids,))
    redirects = "SELECT DISTINCT status FROM attempts WHERE delivery_id = ANY(%s) AND error_code = 'redirect'"
    for (status,) in rows(redirects, (delivery_ids,)):
        erased = (sentence_without_target(status), delivery_ids, status)
        rows(
            "UPDATE deliveries SET last_error = %s"
            " WHERE id = ANY(%s) AND last_error_code = 'redirect' AND last_status = %s",
            erased,
        )
        rows("UPDATE attempts SET error = %s WHERE delivery_id = ANY(%s) AND status = %s", erased)
    rows(
        "UPDATE attempts SET response_body = NULL WHERE delivery_id = ANY(%s) AND response_body IS NOT NULL",
        (delivery_ids,),
    )
