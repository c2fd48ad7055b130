"""Senders: finds, creates and merges the contacts of the senders that providers name."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from app.domain.contacts import contacts
from app.domain.lifecycle import merges
from app.domain.work.changes import Change
from app.domain.work.units import Unit
from app.lib import graphemes, normalization, phones
from app.models.channels import Channel
from app.models.contacts import Contact
from app.models.sets import Key

LONGEST_NAME = 255


def key(channel: Channel, external_id: str) -> Key:
    """Returns the key of the sender's identity."""
    return contacts.identity_key(channel.workspace_id, channel.kind, external_id)


def known(unit: Unit, channel: Channel, external_id: str) -> Contact | None:
    """Returns the sender's contact, locked; None if the sender is not known yet. Raises Busy."""
    identity = contacts.find_identity(unit, channel.workspace_id, channel.kind, external_id)
    return unit.get(Contact, channel.workspace_id, "id", identity.contact_id) if identity else None


def contact_of(
    change: Change,
    channel: Channel,
    external_id: str,
    *,
    name: str | None = None,
    phone: str | None = None,
    locale: str | None = None,
) -> Contact:
    """Returns the sender's contact, locked; created for a sender that is not known yet. Raises Busy.

    The provider has confirmed `phone`: the contact with this number is the sender. A known contact keeps its name.
    """
    unit, contact = change.unit, known(change.unit, channel, external_id)
    if contact is not None:
        return _with_phone(change, contact, phone)
    contact = _holder(unit, channel.workspace_id, phone)
    if contact is None:
        contact = contacts.make(replace(change, payload=_names(name) | {"locale": _locale(locale), "phone": phone}))
    contacts.give_identity(unit, channel.workspace_id, channel.kind, external_id, contact.id)
    return contact


def move(
    change: Change, channel: Channel, formers: Sequence[str], external_id: str, *, phone: str | None = None
) -> Contact | None:
    """Gives the contact of one of `formers` the identity `external_id`, and returns it. Raises Busy.

    Returns None if no contact has any of these identities. Merges the contact with another one that has the identity or
    the phone number. If both have an `external_id` of the workspace, only suggests the merge and returns None.
    """
    unit = change.unit
    names = [each for each in (*formers, external_id) if known(unit, channel, each) is not None]
    if not names:
        return None
    contact = known(unit, channel, names[0])
    for find in (partial(known, unit, channel, external_id), partial(_holder, unit, channel.workspace_id, phone)):
        other = find()
        if contact is not None and other is not None and other.id != contact.id:
            contact = _joined(change, contact, other)
    if contact is None:
        return None
    for former in formers:
        identity = contacts.find_identity(unit, channel.workspace_id, channel.kind, former)
        if identity is not None and identity.contact_id == contact.id:
            unit.drop(identity)
    contacts.give_identity(unit, channel.workspace_id, channel.kind, external_id, contact.id)
    is_former = contact.phone in [way for former in formers for way in phones.ways_to_write(f"+{former}")]
    if phone is not None and (is_former or contact.phone is None):
        contact = contacts.set_fields(change, contact, phone=phone)
    return contact


def _joined(change: Change, contact: Contact, other: Contact) -> Contact | None:
    """Merges the contacts. If both have an `external_id`, only suggests the merge and returns None."""
    if None in (contact.external_id, other.external_id):
        return merges.merge(change, contact, other)
    merges.suggest(change.unit, contact.workspace_id, contact.id, other.id, "same_phone")
    return None


def _with_phone(change: Change, contact: Contact, phone: str | None) -> Contact:
    """Gives the contact its confirmed number. Merges it with another contact that has the number.

    Only suggests the merge if the contact has another number, or both have an `external_id`.
    """
    if phone is None or contact.phone in phones.ways_to_write(phone):
        return contact
    holder = _holder(change.unit, contact.workspace_id, phone)
    if holder is None:
        return contacts.set_fields(change, contact, phone=phone) if contact.phone is None else contact
    if contact.phone is None and None in (contact.external_id, holder.external_id):
        return merges.merge(change, holder, contact)
    merges.suggest(change.unit, contact.workspace_id, contact.id, holder.id, "same_phone")
    return contact


def _holder(unit: Unit, workspace_id: str, phone: str | None) -> Contact | None:
    return contacts.holder(unit, workspace_id, "phone", phone) if phone is not None else None


def _names(name: str | None) -> dict[str, Any]:
    # PostgreSQL cannot store U+0000, and line breaks would break the layout of lists.
    composed = unicodedata.normalize("NFC", name or "")
    clean = " ".join("".join(each if each.isprintable() else " " for each in composed).split())
    first, _, last = clean.partition(" ")
    cut = (graphemes.cut(each, LONGEST_NAME) or None for each in (first, last))
    return dict(zip(("first_name", "last_name"), cut, strict=True))


def _locale(locale: str | None) -> str | None:
    try:
        return normalization.locale(locale) if locale else None
    except ValueError:
        return None
