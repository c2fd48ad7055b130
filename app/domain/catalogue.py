"""The catalogue of event kinds, each with a sample made by the code that makes real bodies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from app.domain import bookings, contacts, events, sales
from app.lib import json
from app.models.bookings import Booking
from app.models.contacts import Contact
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


@dataclass(frozen=True, slots=True)
class EventKind:
    """`sample` gives the `data` of a body."""

    description: str
    sample: Callable[[], dict[str, Any]]


KINDS: Mapping[str, EventKind] = {
    "contact.created": EventKind("A contact was made.", lambda: _contact()),
    "contact.updated": EventKind(
        "Fields of a contact changed; 'changed' names them.", lambda: _contact(changed=["first_name"])
    ),
    "contact.deleted": EventKind(
        "A contact was deleted. Its data is gone; only the identifier is left.",
        lambda: {"contact": {"id": _CONTACT.id}},
    ),
    "tag.added": EventKind("A contact got a tag.", lambda: _contact(tag="vip")),
    "tag.removed": EventKind("A contact lost a tag.", lambda: _contact(tag="vip")),
    "sale.recorded": EventKind("A sale to a contact was recorded.", lambda: _contact(sale=sales.represent(_SALE))),
    "booking.created": EventKind("A booking was made for a contact.", lambda: _booking(status="booked")),
    "booking.cancelled": EventKind("A booking was cancelled.", lambda: _booking(status="cancelled")),
}


def represent(workspace_id: str) -> list[dict[str, Any]]:
    """Every kind, with a whole delivery body as a sample."""
    return [
        {"kind": name, "description": kind.description, "sample": _body(name, kind, workspace_id)}
        for name, kind in KINDS.items()
    ]


def _body(name: str, kind: EventKind, workspace_id: str) -> Any:
    return json.loads(events.body("evt_01kaj5bd40fx3s0v9n1d8e2m4t", name, _AT, workspace_id, kind.sample()))


def _contact(**further: Any) -> dict[str, Any]:
    return {"contact": contacts.represent(_CONTACT), **further}


def _booking(status: str) -> dict[str, Any]:
    return _contact(booking=bookings.represent(Booking(**_BOOKING, status=status)))
