"""The catalogue of event kinds, each with a sample made by the code that makes real bodies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from app.domain.broadcasts import broadcasts
from app.domain.channels import channels
from app.domain.contacts import bookings, contacts, sales
from app.domain.conversations import conversations, messages
from app.domain.deliveries import stops
from app.domain.segments import segments
from app.domain.triggers import run_states
from app.domain.work import events
from app.lib import json
from app.models.bookings import Booking
from app.models.broadcasts import Broadcast
from app.models.channels import Channel
from app.models.contacts import Contact
from app.models.conversations import Conversation, Message
from app.models.endpoints import Endpoint
from app.models.runs import Run
from app.models.sales import Sale

_AT = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)
_CONTACT = Contact(
    id="con_01kaj5bd40e6rr3f5y2kq0w9xz",
    external_id="customer-1042",
    email="ada@example.com",
    phone="+4930123456",
    first_name="Ada",
    last_name="Lovelace",
    locale="en-GB",
    timezone="Europe/London",
    tags=["vip"],
    custom_fields={"plan": "gold", "orders": 3},
    created_at=_AT,
    updated_at=_AT,
)
_SALE = Sale(
    id="sal_01kaj5bd40f8m9v7q6s3h9t1xc",
    contact_id=_CONTACT.id,
    amount=Decimal("19.90"),
    currency="EUR",
    reference="order-5107",
    occurred_at=_AT,
    created_at=_AT,
)
_BOOKING = {
    "id": "bkg_01kaj5bd40ecs8r4y1n7w2z5kd",
    "contact_id": _CONTACT.id,
    "title": "Haircut",
    "starts_at": _AT + timedelta(days=3),
    "ends_at": _AT + timedelta(days=3, minutes=45),
    "created_at": _AT,
}
_CONVERSATION = {
    "id": "cnv_01kaj5bd40e9qv2m6t8c4x0zfn",
    "contact_id": _CONTACT.id,
    "channel_id": "chn_01kaj5bd40f1x7w3k5j9p2d6gs",
    "created_at": _AT,
}
_MESSAGE = Message(
    id="msg_01kaj5bd40ft6y8r1n3q5v7b9c",
    conversation_id=_CONVERSATION["id"],
    direction="in",
    text="Yes, please.",
    status="received",
    author={"type": "contact", "id": _CONTACT.id},
    created_at=_AT,
)
_AUTHOR = {"type": "api", "id": "tok_01kaj5bd40ewx6z8b0d2f4h6j9"}
_RULE = {"type": "rule", "id": _CONVERSATION["channel_id"]}
_RUN = {
    "id": "run_01kaj5bd40f5b7d9g1j3m6p8rt",
    "automation_id": "aut_01kaj5bd40fa2c4e6h8k0n2q4s",
    "version": 3,
    "contact_id": _CONTACT.id,
    "variables": {"order": "order-5107"},
    "job_id": "job_01kaj5bd40fw5z7b9d1f3h5k7n",
    "created_at": _AT,
    "started_at": _AT,
}
_BROADCAST = Broadcast(
    id="bct_01kaj5bd40e3m6p9s2v5x8z1b4",
    name="Autumn sale",
    state="done",
    segment_id="seg_01kaj5bd40h2k5m8p1r4t7v0x3",
    filter=segments.EXAMPLE,
    message={"text": "Hello {{ contact.first_name }}, everything is half the price until Sunday."},
    count=1_200,
    handled=1_200,
    created_by=_AUTHOR["id"],
    created_at=_AT,
    started_at=_AT,
    finished_at=_AT + timedelta(minutes=15),
)
_TALLY = {
    "delivered": 1_100,
    "read": 80,
    "failed": 5,
    "failed:window_closed": 5,
    "replied": 31,
    "skipped:opted_out": 15,
}
_CHANNEL = Channel(id=_CONVERSATION["channel_id"], kind="telegram", name="Shop")
_REFUSED = {"code": "401", "detail": "Telegram does not accept the bot's token any more."}
_CLOSED = "The time in which free text may be sent has passed. Send a template."
_GONE = "The contact has been deleted."
_STOPPED = Endpoint(
    id="whe_01kaj5bd40fgct2j8n5r7w3y6q",
    address="https://old-shop.example/hooks",
    stop_reason="50 attempts in a row failed. The last: The connection was refused.",
    stopped_at=_AT,
)


@dataclass(frozen=True, slots=True)
class EventKind:
    """A kind of event. `sample` makes the `data` of a body."""

    description: str
    sample: Callable[[], dict[str, Any]]


EVENT_KINDS: Mapping[str, EventKind] = {
    "contact.created": EventKind("A contact was created.", lambda: _contact()),
    "contact.updated": EventKind(
        "Fields of a contact changed; 'changed' names them.", lambda: _contact(changed=["first_name"])
    ),
    "contact.deleted": EventKind(
        "A contact was deleted. Only its identifier remains.",
        lambda: {"contact": {"id": _CONTACT.id}},
    ),
    "contact.merged": EventKind(
        "Another contact, 'merged_contact_id', was merged into a contact, and no longer exists.",
        lambda: _contact(merged_contact_id="con_01kaj5bd40e8x2c4v6b8n0m1q3"),
    ),
    "tag.added": EventKind("A tag was added to a contact.", lambda: _contact(tag="vip")),
    "tag.removed": EventKind("A tag was removed from a contact.", lambda: _contact(tag="vip")),
    "sale.recorded": EventKind("A sale to a contact was recorded.", lambda: _contact(sale=sales.represent(_SALE))),
    "booking.created": EventKind("A booking was created for a contact.", lambda: _booking(status="booked")),
    "booking.cancelled": EventKind("A booking was cancelled.", lambda: _booking(status="cancelled")),
    "conversation.opened": EventKind(
        "A conversation with a contact was opened, or opened again.", lambda: _conversation()
    ),
    "conversation.closed": EventKind("A conversation was closed.", lambda: _conversation(status="closed")),
    "conversation.assigned": EventKind(
        "A conversation was assigned to a member, or its assignee was removed; 'assigned_by' says by whom.",
        lambda: _conversation(assignee_id="mem_01kaj5bd40fm2z4h6k8s0w1x3y") | {"assigned_by": _RULE},
    ),
    "conversation.labelled": EventKind(
        "Labels of a conversation changed; 'added' and 'removed' name them.",
        lambda: _conversation(labels=["refund", "urgent"]) | {"added": ["urgent"], "removed": ["new"]},
    ),
    "conversation.snoozed": EventKind(
        "A conversation was snoozed until a time, or until another one.", lambda: _conversation(snoozed_until=_AT)
    ),
    "conversation.woken": EventKind("A conversation is not snoozed any more.", lambda: _conversation()),
    "message.received": EventKind(
        "A contact wrote a message.",
        lambda: _conversation(last_message_at=_AT) | {"message": messages.represent(_MESSAGE)},
    ),
    "message.sent": EventKind(
        "The channel's provider took a message, or a web chat shows it.", lambda: _message("sent", provider_time=_AT)
    ),
    "message.delivered": EventKind("A message reached the contact.", lambda: _message("delivered", provider_time=_AT)),
    "message.read": EventKind("The contact read a message.", lambda: _message("read", provider_time=_AT)),
    "message.failed": EventKind(
        "A message was not sent, or did not reach the contact; its `failure` says why.",
        lambda: _message("failed", failure={"code": "window_closed", "detail": _CLOSED}),
    ),
    "automation.started": EventKind("A run of an automation took its first step.", lambda: _run("running")),
    "automation.completed": EventKind("A run was completed.", lambda: _run("completed", finished_at=_AT)),
    "automation.failed": EventKind(
        "A run failed; its `failure` says why.",
        lambda: _run("failed", finished_at=_AT, failure={"code": "gone", "detail": _GONE, "step": "greet"}),
    ),
    "automation.cancelled": EventKind(
        "A run was cancelled; its `reason` says why.",
        lambda: _run("cancelled", finished_at=_AT, reason="request"),
    ),
    "broadcast.finished": EventKind(
        "A broadcast is done, or was aborted.",
        lambda: {"broadcast": broadcasts.represent_counted(_BROADCAST, _TALLY)},
    ),
    "channel.reauthorization_required": EventKind(
        "A channel's provider refuses its credentials. Its messages wait for new ones.",
        lambda: channels.represent_problem(_CHANNEL, _REFUSED),
    ),
    "endpoint.stopped": EventKind(
        "Another endpoint of the workspace was stopped. 'held_deliveries' counts what waits for it, up to"
        f" {stops.MOST_COUNTED:,}.",
        lambda: stops.represent(_STOPPED, held=17),
    ),
}


def represent(workspace_id: str) -> list[dict[str, Any]]:
    """Returns all kinds, each with a complete delivery body as its sample."""
    return [
        {"kind": name, "description": kind.description, "sample": sample(name, workspace_id)}
        for name, kind in EVENT_KINDS.items()
    ]


def sample(kind: str, workspace_id: str) -> Any:
    """Returns a complete delivery body of that kind, parsed."""
    return json.loads(
        events.body("evt_01kaj5bd40fx3s0v9n1d8e2m4t", kind, _AT, workspace_id, EVENT_KINDS[kind].sample())
    )


def _contact(**further: Any) -> dict[str, Any]:
    return {"contact": contacts.represent(_CONTACT), **further}


def _booking(status: str) -> dict[str, Any]:
    return _contact(booking=bookings.represent(Booking(**_BOOKING, status=status)))


def _conversation(**fields: Any) -> dict[str, Any]:
    return _contact(conversation=conversations.represent(Conversation(**_CONVERSATION, **fields)))


def _message(status: str, **fields: Any) -> dict[str, Any]:
    sent = {"direction": "out", "text": "It is on its way.", "author": _AUTHOR, "status": status}
    message = _MESSAGE.altered(**sent | fields)
    return _conversation(last_message_at=_AT) | {"message": messages.represent(message)}


def _run(status: str, **fields: Any) -> dict[str, Any]:
    run = Run(**_RUN, status=status, **fields)
    automation = {"id": run.automation_id, "name": "Welcome new customers", "version": run.version}
    return _contact(automation=automation, run=run_states.represent(run))
