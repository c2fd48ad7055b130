"""Contacts: found by what identifies them, changed only where something differs, erased for good."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from random import random
from typing import Any

from app import sql
from app.database import rows
from app.domain import deliveries, events
from app.domain.changes import Change, Effect
from app.errors import Conflict, Fault, Invalid, NotFound
from app.lib import ids, json
from app.models.bookings import Booking
from app.models.contacts import Contact, ContactSegment
from app.models.sales import Sale

# In the order in which an upsert looks for the contact.
IDENTIFIERS = ("external_id", "email", "phone")
MOST_TAGS = 100
MOST_FIELDS = 100
# Of contacts that are made one in so many, on average, has those of the newest segment counted.
COUNTED_EVERY = 250
_PLAIN = (*IDENTIFIERS, "first_name", "last_name", "locale", "timezone")


def upsert(change: Change) -> Effect:
    """Finds the contact by the first identifier that is given, or makes it; tags are added, custom fields merged.

    Raises Conflict where another contact holds one of the identifiers.
    """
    given = {name: change.payload[name] for name in IDENTIFIERS if change.payload.get(name)}
    holders = Contact.holding(change.workspace_id, given)
    name, value = next(iter(given.items()))
    found = next((holder for holder in holders if _same(name, getattr(holder, name), value)), None)
    _refuse_taken(holders, found)
    if found is None:
        return Effect("made", "contact", _make(change))
    _alter(change, found)
    return Effect("changed", "contact", found.id)


def update(change: Change) -> Effect:
    """Changes the fields that are given; `tags` replaces, custom fields are merged. Raises NotFound, Conflict."""
    contact = find(change.workspace_id, change.target)
    given = {name: change.payload[name] for name in IDENTIFIERS if change.payload.get(name)}
    _refuse_taken(Contact.holding(change.workspace_id, given), contact)
    if not any(change.payload.get(name, getattr(contact, name)) for name in IDENTIFIERS):
        raise Conflict("A contact needs at least one of external_id, email and phone.")
    _alter(change, contact, removed_tags=set(contact.tags) - set(change.payload.get("tags", contact.tags)))
    return Effect("changed", "contact", contact.id)


def delete(change: Change) -> Effect:
    """Erases the contact's data everywhere, stored bodies and waiting writes included. Raises NotFound.

    Its bookings go with it; its sales stay for the books, and lead to nobody.
    """
    contact = find(change.workspace_id, change.target)
    Contact.delete().where(Contact.id == contact.id).execute()
    Booking.delete().where(Booking.contact_id == contact.id).execute()
    Sale.forget_contact(contact.id)
    deliveries.erase_contact(contact.id)
    _erase_kept_payloads(contact, events.erase_contact(contact.id))
    change.events.record("contact.deleted", {"contact": {"id": contact.id}}, contact.id)
    return Effect("deleted", "contact", contact.id)


def add_tag(change: Change) -> Effect:
    """Adds the tag; nothing happens if the contact has it. Raises NotFound."""
    contact = find(change.workspace_id, change.target)
    _alter(change, contact, added_tags={change.payload["name"]})
    return Effect("changed", "contact", contact.id)


def remove_tag(change: Change) -> Effect:
    """Removes the tag; nothing happens if the contact does not have it. Raises NotFound."""
    contact = find(change.workspace_id, change.target)
    _alter(change, contact, removed_tags={change.payload["name"]})
    return Effect("changed", "contact", contact.id)


def find(workspace_id: str, contact_id: str) -> Contact:
    """Raises NotFound."""
    contact = None
    if ids.is_id(contact_id, "con"):
        contact = Contact.one(workspace_id, contact_id)
    if contact is None:
        raise NotFound()
    return contact


def find_named(workspace_id: str, contact_id: str) -> Contact:
    """The contact that the `contact_id` of a body names. Raises Invalid."""
    try:
        return find(workspace_id, contact_id)
    except NotFound as error:
        raise Invalid(Fault("/contact_id", "There is no such contact in this workspace.")) from error


def kept_jobs(contact: Contact) -> Iterator[dict[str, Any]]:
    """Jobs about a contact that still have what they were asked to do, because they wait or failed unexpectedly."""
    found = rows(
        f"""
        SELECT id, kind, status, payload, created_at FROM jobs WHERE {_IS_KEPT}
        UNION ALL
        SELECT id, kind, status, payload, created_at FROM jobs WHERE resource_id = %(id)s AND due_at IS NOT NULL
        ORDER BY id
        """,
        _marks(contact),
    )
    return (dict(zip(("id", "kind", "status", "payload", "created_at"), job, strict=True)) for job in found)


def represent(contact: Contact) -> dict[str, Any]:
    return {
        "id": contact.id,
        "external_id": contact.external_id,
        "email": contact.email,
        "phone": contact.phone,
        "first_name": contact.first_name,
        "last_name": contact.last_name,
        "locale": contact.locale,
        "timezone": contact.timezone,
        "tags": contact.tags,
        "custom_fields": contact.custom_fields,
        "opted_out": contact.opted_out,
        "created_at": contact.created_at,
        "updated_at": contact.updated_at,
    }


def _make(change: Change) -> str:
    payload = change.payload
    contact = Contact(
        id=ids.new("con"),
        workspace_id=change.workspace_id,
        tags=sorted(set(payload.get("tags", ()))),
        custom_fields=_merged({}, payload.get("custom_fields", {})),
        opted_out=payload.get("opted_out", False),
        **{name: payload.get(name) for name in _PLAIN},
    )
    if random() < 1 / COUNTED_EVERY:
        ContactSegment.open_at(contact.workspace_id, contact.id)
    _save(contact, "insert_contact")
    _record(change, contact, "contact.created")
    for tag in contact.tags:
        _record(change, contact, "tag.added", tag=tag)
    return contact.id


def _alter(
    change: Change, contact: Contact, added_tags: set[str] | None = None, removed_tags: set[str] | None = None
) -> None:
    """Writes what differs, and an event for each kind of difference; nothing at all where nothing does."""
    payload, had = change.payload, set(contact.tags)
    for name in (*_PLAIN, "opted_out"):
        if name in payload and payload[name] != getattr(contact, name):
            setattr(contact, name, payload[name])
    merged = _merged(contact.custom_fields, payload.get("custom_fields", {}))
    if json.dumps(merged) != json.dumps(contact.custom_fields):  # to Python, 1 equals true
        contact.custom_fields = merged
    changed_fields = sorted(field.name for field in contact.dirty_fields)
    tags = (had | set(payload.get("tags", ())) | (added_tags or set())) - (removed_tags or set())
    if tags != had:
        contact.tags = sorted(tags)
    if not contact.dirty_fields:
        return
    _refuse_too_much(contact)
    _save(contact, "update_contact")
    if changed_fields:
        _record(change, contact, "contact.updated", changed=changed_fields)
    for tag in sorted(tags - had):
        _record(change, contact, "tag.added", tag=tag)
    for tag in sorted(had - tags):
        _record(change, contact, "tag.removed", tag=tag)


def _save(contact: Contact, statement: str) -> None:
    values = contact.__data__ | {"custom_fields": json.dumps(contact.custom_fields).decode()}
    [(contact.created_at, contact.updated_at)] = rows(sql.prepared(statement), values)


def _record(change: Change, contact: Contact, kind: str, **further: Any) -> None:
    change.events.record(kind, {"contact": represent(contact), **further}, contact.id)


def _refuse_taken(holders: list[Contact], own: Contact | None) -> None:
    for holder in holders:
        if own is None or holder.id != own.id:
            raise Conflict(
                "Another contact of this workspace already has one of these identifiers.",
                conflicting_contact_id=holder.id,
            )


def _refuse_too_much(contact: Contact) -> None:
    # What one request may hold is checked when it is accepted; many together must not hold more.
    for name, held, most in (("tags", contact.tags, MOST_TAGS), ("custom fields", contact.custom_fields, MOST_FIELDS)):
        if len(held) > most:
            raise Conflict(f"A contact has at most {most} {name}; this would make {len(held)}.")


def _same(name: str, held: str | None, given: str) -> bool:
    return held is not None and (held.lower() == given.lower() if name == "email" else held == given)


def _merged(before: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Custom fields after a merge: null removes (contract of the API; RFC 7396 for one level)."""
    return {name: value for name, value in {**before, **given}.items() if value is not None}


def _erase_kept_payloads(contact: Contact, known: Collection[str]) -> None:
    rows(f"UPDATE jobs SET payload = NULL WHERE {_IS_KEPT}", _marks(contact, known))


def _marks(contact: Contact, known: Collection[str] = ()) -> dict[str, Any]:
    """What payloads about a contact may have of it; `known` is what it was found by at other times."""
    own = {getattr(contact, name) for name in IDENTIFIERS} - {None}
    return {"workspace_id": contact.workspace_id, "id": contact.id, "known": [*own, *known]}


# Only jobs that failed unexpectedly keep what they were asked to do.
_IS_KEPT = """
    workspace_id = %(workspace_id)s AND status = 'failed' AND payload IS NOT NULL AND (
        resource_id = %(id)s OR payload->>'contact_id' = %(id)s
        OR payload->>'external_id' = ANY(%(known)s::text[]) OR payload->>'phone' = ANY(%(known)s::text[])
        OR lower(payload->>'email') IN (SELECT lower(each) FROM unnest(%(known)s::text[]) AS each))
"""
