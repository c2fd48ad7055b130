"""The catalogue of event kinds, each with a sample made by the code that makes real bodies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from app.domain import contacts, events
from app.lib import json
from app.models.contacts import Contact

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
