"""Sales: what contacts paid, recorded once for each reference."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from marshmallow import fields

from app.domain.contacts import contacts
from app.domain.work.changes import Change, Effect
from app.domain.work.units import Unit
from app.errors import Conflict
from app.lib.schemas import ResponseBody, about, time
from app.models import sets
from app.models.contacts import Contact
from app.models.sales import Sale
from app.models.sets import Key


def needs(workspace_id: str, payload: Mapping[str, Any], _: str | None) -> list[Key]:
    """Returns the keys that a verb of this module gets from its unit."""
    found = [sets.key(Contact, workspace_id, "id", payload["contact_id"])]
    if (reference := payload.get("reference")) is not None:
        found.append(sets.key(Sale, workspace_id, "reference", reference))
    return found


def create(change: Change) -> Effect:
    """Records the sale, and the event for it. Raises Invalid, Conflict like `check`."""
    payload = change.payload
    contact = check(change.workspace_id, payload, unit=change.unit)
    sale = Sale(
        id=change.target,
        workspace_id=change.workspace_id,
        contact_id=contact.id,
        amount=Decimal(payload["amount"]),
        currency=payload["currency"],
        reference=payload.get("reference"),
        occurred_at=datetime.fromisoformat(payload["occurred_at"]),
        created_at=change.unit.now,
    )
    change.unit.put(sale)
    data = {"contact": contacts.represent(contact), "sale": represent(sale)}
    change.events.record("sale.recorded", data, contact.id)
    return Effect("made", "sale", sale.id)


def check(workspace_id: str, payload: Mapping[str, Any], *_: object, unit: Unit | None = None) -> Contact:
    """Checks that the sale may be recorded, and returns its contact.

    With a `unit`, locks the rows that it reads. Raises Invalid if there is no such contact, and Conflict if another
    sale has the reference.
    """
    contact = contacts.find_named(workspace_id, payload["contact_id"], unit)
    if (reference := payload.get("reference")) is not None:
        _refuse_taken(workspace_id, reference, unit)
    return contact


class SaleSchema(ResponseBody):
    id = fields.String()
    contact_id = fields.String(allow_none=True, metadata=about("null: the contact was deleted."))
    amount = fields.String(
        metadata=about("A decimal with as many decimal places as its currency has.", example="19.90")
    )
    currency = fields.String(metadata=about("ISO 4217.", example="EUR"))
    reference = fields.String(allow_none=True)
    occurred_at = time("When the sale happened, as given.")
    created_at = time("When the sale was recorded.")


def represent(sale: Sale) -> dict[str, Any]:
    """Returns the sale as the API shows it."""
    return SaleSchema.of(sale, amount=f"{sale.amount:f}")


def _refuse_taken(workspace_id: str, reference: str, unit: Unit | None) -> None:
    if unit is not None:
        holder = unit.get(Sale, workspace_id, "reference", reference)
    else:
        holder = Sale.matching(workspace_id, {"reference": reference}).first()
    if holder is not None:
        raise Conflict("Another sale of this workspace already has this reference.", conflicting_sale_id=holder.id)
