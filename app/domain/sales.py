"""Sales: recorded once for each reference, for a contact that is there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app import sql
from app.database import rows
from app.domain import contacts
from app.domain.changes import Change, Effect
from app.errors import Conflict
from app.models.contacts import Contact
from app.models.sales import Sale


def create(change: Change) -> Effect:
    """Records the sale. Raises what `check` does."""
    payload = change.payload
    contact = check(change.workspace_id, payload)
    sale = Sale(
        id=change.target,
        workspace_id=change.workspace_id,
        contact_id=contact.id,
        amount=payload["amount"],
        currency=payload["currency"],
        reference=payload.get("reference"),
        occurred_at=payload["occurred_at"],
    )
    [(sale.amount, sale.occurred_at, sale.created_at)] = rows(sql.load("insert_sale"), sale.__data__)
    data = {"contact": contacts.represent(contact), "sale": represent(sale)}
    change.events.record("sale.recorded", data, contact.id)
    return Effect("made", "sale", sale.id)


def check(workspace_id: str, payload: Mapping[str, Any]) -> Contact:
    """The contact of a sale that may be recorded.

    Raises Invalid where there is no such contact, Conflict where another sale has the reference.
    """
    contact = contacts.find_named(workspace_id, payload["contact_id"])
    if (reference := payload.get("reference")) is not None:
        _refuse_taken(workspace_id, reference)
    return contact


def find(workspace_id: str, sale_id: str) -> Sale:
    """Raises NotFound."""
    return Sale.get_in(workspace_id, sale_id, "sal")


def represent(sale: Sale) -> dict[str, Any]:
    return {
        "id": sale.id,
        "contact_id": sale.contact_id,
        "amount": f"{sale.amount:f}",
        "currency": sale.currency,
        "reference": sale.reference,
        "occurred_at": sale.occurred_at,
        "created_at": sale.created_at,
    }


def _refuse_taken(workspace_id: str, reference: str) -> None:
    holder = Sale.matching(workspace_id, {"reference": reference}).first()
    if holder is not None:
        raise Conflict("Another sale of this workspace already has this reference.", conflicting_sale_id=holder.id)
