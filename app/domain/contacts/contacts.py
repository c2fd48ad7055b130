"""Contacts: found by their identifiers, and changed only if something differs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import takewhile
from typing import Any

from marshmallow import fields

from app.domain.work.changes import Change, Effect
from app.domain.work.units import Unit
from app.errors import Conflict, Fault, Invalid, NotFound
from app.lib import ids, json, phones
from app.lib.schemas import ResponseBody, about, time
from app.models import sets
from app.models.contacts import Contact
from app.models.identities import Identity
from app.models.sets import Key

# In order of precedence: an upsert looks for the contact in this order.
IDENTIFIERS = ("external_id", "email", "phone")
MOST_TAGS = 100
MOST_FIELDS = 100
# The shortest and the longest search, in characters. A shorter one would match almost everything.
SHORTEST_SEARCH, LONGEST_SEARCH = 2, 100
NO_CONTACT = "There is no such contact in this workspace."
_PLAIN = (*IDENTIFIERS, "first_name", "last_name", "locale", "timezone")


def needs(workspace_id: str, payload: Mapping[str, Any], contact_id: str | None) -> list[Key]:
    """Returns the keys that a verb of this module gets from its unit."""
    keys = [key for name, value in _identifiers(payload).items() for key in ways_to_find(workspace_id, name, value)]
    own = [sets.key(Contact, workspace_id, "id", own_id) for own_id in (contact_id, payload.get("id")) if own_id]
    return [*own, *keys]


def ways_to_find(workspace_id: str, name: str, value: str) -> list[Key]:
    """Returns the keys under which contacts with the identifier may be stored, the given form first.

    A phone number can have two forms. A contact may take the identifier only if no other contact has any of them.
    """
    values = phones.ways_to_write(value) if name == "phone" else [value]
    return [sets.key(Contact, workspace_id, name, each) for each in values]


def upsert(change: Change) -> Effect:
    """Updates the contact that the first matching identifier finds, or creates one.

    Adds tags and merges custom fields. Changes identifiers after the matching one, and fills in empty ones before it. A
    phone number that differs only in its form stays as it is. Raises Conflict if the contact has a different value for
    an identifier before the matching one, or if another contact has one of the identifiers.

    An `id`, which only imported files have, is looked up first. If no contact has it, the identifiers decide; without
    any, raises Invalid.
    """
    holders = _holders(change)
    own_id = change.payload.get("id")
    named = change.unit.get(Contact, change.workspace_id, "id", own_id) if own_id else None
    found = named or next((holder for holder in holders.values() if holder is not None), None)
    if found is None:
        if own_id and not holders:
            raise Invalid(Fault("/id", NO_CONTACT))
        return Effect("made", "contact", make(change).id)
    if named is None:
        _refuse_replacing(found, holders)
    _refuse_taken(found, holders)
    given = dict(change.payload)
    if (phone := given.get("phone")) and found.phone in phones.ways_to_write(phone):
        del given["phone"]
    _alter(change, found, given)
    return Effect("changed", "contact", found.id)


def update(change: Change) -> Effect:
    """Changes the given fields: replaces tags, merges custom fields. Raises NotFound, Conflict."""
    contact = find(change.workspace_id, change.target, change.unit)
    _refuse_taken(contact, _holders(change))
    left = {name: change.payload.get(name, getattr(contact, name)) for name in IDENTIFIERS}
    if change.payload.keys() & left.keys() and not any(left.values()):
        raise Conflict("A contact needs at least one of external_id, email and phone.")
    removed = set(contact.tags) - set(change.payload.get("tags", contact.tags))
    _alter(change, contact, change.payload, removed_tags=removed)
    return Effect("changed", "contact", contact.id)


def add_tag(change: Change) -> Effect:
    """Adds the tag. Does nothing if the contact has it. Raises NotFound."""
    contact = find(change.workspace_id, change.target, change.unit)
    _alter(change, contact, {"tags": [change.payload["name"]]})
    return Effect("changed", "contact", contact.id)


def remove_tag(change: Change) -> Effect:
    """Removes the tag. Does nothing if the contact does not have it. Raises NotFound."""
    contact = find(change.workspace_id, change.target, change.unit)
    _alter(change, contact, {}, removed_tags={change.payload["name"]})
    return Effect("changed", "contact", contact.id)


def make(change: Change) -> Contact:
    """Creates a contact from the payload, and records the events for it and its tags.

    The caller has checked that its identifiers are free.
    """
    payload = change.payload
    contact = Contact(
        id=ids.new("con"),
        workspace_id=change.workspace_id,
        tags=sorted(set(payload.get("tags", ()))),
        custom_fields=_merged({}, payload.get("custom_fields", {})),
        opted_out=payload.get("opted_out", False),
        created_at=change.unit.now,
        updated_at=change.unit.now,
        **{name: payload.get(name) for name in _PLAIN},
    )
    change.unit.put(contact)
    _record(change, contact, "contact.created")
    for tag in contact.tags:
        _record(change, contact, "tag.added", tag=tag)
    return contact


def set_fields(change: Change, contact: Contact, **fields: Any) -> Contact:
    """Sets the fields and records the events, if anything differs; returns the contact.

    The unit must have found identifiers among the fields free.
    """
    return _alter(change, contact, fields)


def holder(unit: Unit, workspace_id: str, name: str, value: str) -> Contact | None:
    """Returns the contact with the identifier in any form, locked; None if none has it. Raises Busy."""
    found = [unit.get(Contact, *key[1:]) for key in ways_to_find(workspace_id, name, value)]
    return next((each for each in found if each is not None), None)


def find(workspace_id: str, contact_id: str, unit: Unit | None = None) -> Contact:
    """Returns the contact; with a `unit`, locked and with its changes. Raises NotFound, Busy."""
    contact: Contact | None = None
    if unit is not None:
        contact = unit.get(Contact, workspace_id, "id", contact_id)
    elif ids.is_id(contact_id, "con"):
        contact = Contact.one(workspace_id, contact_id)
    if contact is None:
        raise NotFound()
    return contact


def find_named(workspace_id: str, contact_id: str, unit: Unit | None = None) -> Contact:
    """Like `find`, for the `contact_id` of a body: raises Invalid if the contact does not exist."""
    try:
        return find(workspace_id, contact_id, unit)
    except NotFound as error:
        raise Invalid(Fault("/contact_id", NO_CONTACT)) from error


class ContactSchema(ResponseBody):
    id = fields.String()
    external_id = fields.String(allow_none=True)
    email = fields.String(allow_none=True)
    phone = fields.String(allow_none=True)
    first_name = fields.String(allow_none=True)
    last_name = fields.String(allow_none=True)
    locale = fields.String(allow_none=True)
    timezone = fields.String(allow_none=True)
    tags = fields.List(fields.String(), metadata=about("Sorted."))
    custom_fields = fields.Dict(values=fields.Raw(metadata={"type": ["string", "number", "boolean", "null"]}))
    opted_out = fields.Boolean()
    created_at = time("When the contact was created.")
    updated_at = time("When it last changed.")


represent = ContactSchema.of


def identity_key(workspace_id: str, kind: str, external_id: str) -> Key:
    """Returns the key of an identity on a kind of channel."""
    return sets.key(Identity, workspace_id, "address", f"{kind}:{external_id}")


def find_identity(unit: Unit, workspace_id: str, kind: str, external_id: str) -> Identity | None:
    """Returns the identity; None if no contact has it. Raises Busy."""
    return unit.get(Identity, *identity_key(workspace_id, kind, external_id)[1:])


def give_identity(unit: Unit, workspace_id: str, kind: str, external_id: str, contact_id: str) -> None:
    """Gives the identity to the contact, even if another contact had it. Raises Busy."""
    identity = find_identity(unit, workspace_id, kind, external_id) or Identity(
        id=ids.new("idn"),
        workspace_id=workspace_id,
        channel_kind=kind,
        external_id=external_id,
        address=f"{kind}:{external_id}",
        created_at=unit.now,
    )
    unit.put(identity.altered(contact_id=contact_id))


def _alter(change: Change, contact: Contact, given: Mapping[str, Any], removed_tags: Collection[str] = ()) -> Contact:
    """Changes fields, adds tags, removes `removed_tags`, records the events; returns the contact.

    Does nothing if nothing differs.
    """
    fields = {
        name: given[name] for name in (*_PLAIN, "opted_out") if name in given and given[name] != getattr(contact, name)
    }
    merged = _merged(contact.custom_fields, given.get("custom_fields", {}))
    if json.dumps(merged) != json.dumps(contact.custom_fields):  # compared as JSON: to Python, 1 equals true
        fields["custom_fields"] = merged
    had = set(contact.tags)
    tags = had.union(given.get("tags", ())).difference(removed_tags)
    if not fields and tags == had:
        return contact
    altered = contact.altered(**fields, tags=sorted(tags), updated_at=change.unit.now)
    _refuse_too_much(altered)
    change.unit.put(altered)
    if fields:
        _record(change, altered, "contact.updated", changed=sorted(fields))
    for tag in sorted(tags - had):
        _record(change, altered, "tag.added", tag=tag)
    for tag in sorted(had - tags):
        _record(change, altered, "tag.removed", tag=tag)
    return altered


def _record(change: Change, contact: Contact, kind: str, **further: Any) -> None:
    change.events.record(kind, {"contact": represent(contact), **further}, contact.id)


def _identifiers(payload: Mapping[str, Any]) -> dict[str, str]:
    return {name: payload[name] for name in IDENTIFIERS if payload.get(name)}


def _holders(change: Change) -> dict[str, Contact | None]:
    """Maps each given identifier to the contact that has it, in any of its forms."""
    given = _identifiers(change.payload).items()
    return {name: holder(change.unit, change.workspace_id, name, value) for name, value in given}


def _refuse_replacing(found: Contact, holders: Mapping[str, Contact | None]) -> None:
    """Raises Conflict if the contact has another value for an identifier before the first match."""
    matching = next(name for name, holder in holders.items() if holder is not None)
    for name in takewhile(lambda name: name != matching, holders):
        if getattr(found, name) is not None:
            detail = f"The contact with this {matching} has a different {name}."
            raise Conflict(detail, conflicting_field=name, conflicting_contact_id=found.id)


def _refuse_taken(own: Contact, holders: Mapping[str, Contact | None]) -> None:
    for name, holder in holders.items():
        if holder is not None and holder.id != own.id:
            detail = f"Another contact of this workspace already has this {name}."
            raise Conflict(detail, conflicting_field=name, conflicting_contact_id=holder.id)


def _refuse_too_much(contact: Contact) -> None:
    # Each request was checked when it was accepted, but several together could exceed the limit.
    for name, held, most in (("tags", contact.tags, MOST_TAGS), ("custom fields", contact.custom_fields, MOST_FIELDS)):
        if len(held) > most:
            raise Conflict(f"A contact has at most {most} {name}; this would make {len(held)}.")


def _merged(before: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the custom fields after a merge, in which null removes a field (RFC 7396, one level)."""
    return {name: value for name, value in {**before, **given}.items() if value is not None}
