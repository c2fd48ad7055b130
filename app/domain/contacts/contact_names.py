"""Names of contacts, for lists that mention them."""

from __future__ import annotations

from collections.abc import Collection

from app.models.contacts import Contact


def names_of(workspace_id: str, contact_ids: Collection[str]) -> dict[str, str]:
    """Returns the names of the contacts that exist, by id; one statement."""
    return names_in([workspace_id], contact_ids)


def names_in(workspace_ids: Collection[str], contact_ids: Collection[str]) -> dict[str, str]:
    """Like `names_of`, for contacts in several workspaces."""
    if not contact_ids:
        return {}
    named = (Contact.id, Contact.first_name, Contact.last_name, Contact.email, Contact.phone, Contact.external_id)
    theirs = (Contact.id.in_(list(contact_ids)), Contact.workspace_id.in_(list(workspace_ids)))
    return {contact.id: name_of(contact) for contact in Contact.select(*named).where(*theirs)}


def name_of(contact: Contact) -> str:
    """Returns the contact's name, or else an identifier, or else `Visitor` with the end of its id."""
    name = " ".join(part for part in (contact.first_name, contact.last_name) if part)
    return str(name or contact.email or contact.phone or contact.external_id or f"Visitor {contact.id[-4:]}")
