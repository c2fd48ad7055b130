"""Identities: the address of a contact on each kind of channel."""

from __future__ import annotations

from app.domain.work.units import Unit
from app.lib import ids
from app.models import sets
from app.models.identities import Identity
from app.models.sets import Key


def key(workspace_id: str, kind: str, external_id: str) -> Key:
    """Returns the key of an identity on a kind of channel."""
    return sets.key(Identity, workspace_id, "address", f"{kind}:{external_id}")


def find(unit: Unit, workspace_id: str, kind: str, external_id: str) -> Identity | None:
    """Returns the identity; None if no contact has it. Raises Busy."""
    return unit.get(Identity, *key(workspace_id, kind, external_id)[1:])


def give(unit: Unit, workspace_id: str, kind: str, external_id: str, contact_id: str) -> None:
    """Gives the identity to the contact, even if another contact had it. Raises Busy."""
    identity = find(unit, workspace_id, kind, external_id) or Identity(
        id=ids.new("idn"),
        workspace_id=workspace_id,
        channel_kind=kind,
        external_id=external_id,
        address=f"{kind}:{external_id}",
        created_at=unit.now,
    )
    unit.put(identity.altered(contact_id=contact_id))
