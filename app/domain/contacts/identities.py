"""Identities: who a contact is on each kind of channel."""

from __future__ import annotations

from app.domain.work.units import Unit
from app.lib import ids
from app.models import sets
from app.models.identities import Identity
from app.models.sets import Key


def key(workspace_id: str, kind: str, external_id: str) -> Key:
    """The key of an identity on a kind of channel."""
    return sets.key(Identity, workspace_id, "address", f"{kind}:{external_id}")


def find(unit: Unit, workspace_id: str, kind: str, external_id: str) -> Identity | None:
    """The identity; None if nobody has been known by it. Raises Busy."""
    return unit.get(Identity, *key(workspace_id, kind, external_id)[1:])


def give(unit: Unit, workspace_id: str, kind: str, external_id: str, contact_id: str) -> None:
    """Makes the contact known by the identity from now on; one of a contact that was deleted is the new one's."""
    identity = find(unit, workspace_id, kind, external_id) or Identity(
        id=ids.new("idn"),
        workspace_id=workspace_id,
        channel_kind=kind,
        external_id=external_id,
        address=f"{kind}:{external_id}",
        created_at=unit.now,
    )
    unit.put(identity.altered(contact_id=contact_id))
