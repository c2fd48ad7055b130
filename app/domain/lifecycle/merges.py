"""Merges: join two contacts that are one person, and suggest contacts that may be one person."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marshmallow import fields

from app.database import rows
from app.domain.contacts import contacts
from app.domain.contacts.contacts import ContactSchema
from app.domain.conversations import peers
from app.domain.jobs import jobs
from app.domain.lifecycle import erasures
from app.domain.triggers import run_endings
from app.domain.work.changes import Change, Effect, Write
from app.domain.work.units import Busy, Unit
from app.errors import Fault, Invalid
from app.lib import ids
from app.lib.schemas import ResponseBody, about
from app.models import sets
from app.models.automations import Enrolment
from app.models.contacts import Contact
from app.models.conversations import Conversation, Message
from app.models.identities import Identity, SuggestedMerge
from app.models.notes import Note
from app.models.runs import Run

KIND = "contacts.merge"
# The most rows that one transaction moves and locks.
PART = 2_000
# The most unfinished runs, and the most conversations, that are moved in the transaction of the merge. Conversations of
# these runs are moved in addition.
AT_ONCE = 500
# The tables that name a contact, in the order in which rows are moved after the merge. A contact can have a million
# rows in each.
_TABLES = ("unfinished_runs", "conversations", "messages", "notes", "runs", "sales", "bookings", "events", "deliveries")
_FILLED = (*contacts.IDENTIFIERS, "first_name", "last_name", "locale", "timezone")


def merge(change: Change, kept: Contact, other: Contact) -> Contact:
    """Merges `other` into `kept`; returns `kept` in its new state. The unit has locked both.

    `kept` gets the fields that it lacks, the identities, and the latest conversations and unfinished runs, AT_ONCE of
    each. The other conversations and runs, messages and so on follow after the commit, in a write of their own. An
    unfinished run that is due earlier is moved when it is due. Events keep their bodies. Raises Busy.
    """
    merged = _merge(change, kept, other)
    payload = {"contact_id": other.id, "is_merged": True}
    jobs.follow(Write(change.workspace_id, KIND, payload, change.cause.trace_id, kept.id, change.actor_id), "contact")
    return merged


def go_on(change: Change) -> Effect | None:
    """Merges the payload's contact into the one in the path, one part in each call.

    Returns None while there is more. Raises NotFound, Invalid, Busy.
    """
    other_id = change.payload["contact_id"]
    if change.progress is None and not change.payload.get("is_merged"):
        found = [sets.key(Contact, change.workspace_id, "id", each) for each in (change.target, other_id)]
        change.unit.read(found)
        kept = contacts.find(change.workspace_id, change.target, change.unit)
        _merge(change, kept, find_other(change.workspace_id, change.target, other_id, change.unit))
        change.keep(table=_TABLES[0])
        return None
    # The task that called `merge` may have been undone although its write stays queued. Then nothing has to be moved.
    is_undone = bool(change.payload.get("is_merged")) and Contact.one(change.workspace_id, other_id) is not None
    is_through = is_undone or (_move(change, other_id) and (not _is_deleted(change) or erasures.erase_late(change)))
    return Effect("changed", "contact", change.target) if is_through else None


def check(workspace_id: str, payload: Mapping[str, Any], kept_id: str, *_: object) -> None:
    """Raises Invalid if the contacts cannot be merged, like `find_other`."""
    find_other(workspace_id, kept_id, payload["contact_id"])


def find_other(workspace_id: str, kept_id: str, other_id: str, unit: Unit | None = None) -> Contact:
    """Returns the contact to merge. Raises Invalid if there is none, or if the two ids are equal."""
    if other_id == kept_id:
        raise Invalid(Fault("/contact_id", "A contact cannot be merged with itself."))
    return contacts.find_named(workspace_id, other_id, unit)


def suggest(unit: Unit, workspace_id: str, contact_id: str, other_id: str, reason: str) -> None:
    """Records that the two contacts may be the same person. Does nothing if that is recorded."""
    first, second = sorted((contact_id, other_id))
    note = ("suggested merge", first, second)
    known = "SELECT 1 FROM suggested_merges WHERE contact_id = %s AND other_id = %s"
    if first != second and note not in unit.notes and not rows(known, (first, second)):
        unit.notes[note] = True
        suggested = {"contact_id": first, "other_id": second, "reason": reason, "created_at": unit.now}
        unit.append(SuggestedMerge(id=ids.new("sgm"), workspace_id=workspace_id, **suggested))


def suggested(contact: Contact, most: int) -> list[tuple[str, str]]:
    """Returns up to `most` contacts who may be the same person as this one, each with the reason."""
    return list(rows(_SUGGESTED, {"id": contact.id, "most": most}))


class IdentitySchema(ResponseBody):
    channel_kind = fields.String(metadata={"example": "whatsapp"})
    external_id = fields.String(metadata=about("The contact's identifier at the provider; not always a phone number."))


class SuggestedMergeSchema(ResponseBody):
    contact_id = fields.String(metadata=about("A contact who may be the same person."))
    reason = fields.String(metadata={"example": "same_phone"})


class ContactItemSchema(ContactSchema):
    identities = fields.List(fields.Nested(IdentitySchema), metadata=about("Its identifiers on each kind of channel."))
    suggested_merges = fields.List(fields.Nested(SuggestedMergeSchema))


def represent(contact: Contact) -> dict[str, Any]:
    """Returns the contact as the API shows a single one, with identities and suggested merges."""
    identities, suggested = rows(_DETAILS, {"id": contact.id})[0]
    return ContactItemSchema.of(contact, identities=identities or [], suggested_merges=suggested or [])


def _merge(change: Change, kept: Contact, other: Contact) -> Contact:
    unit = change.unit
    _read(unit, other)
    named: list[Any] = [*unit.changed(Identity), *_owned(unit, Identity, other), *unit.changed(Message)]
    for row in (*named, *unit.changed(Note)):
        if row.contact_id == other.id:
            unit.put(row.altered(contact_id=kept.id))
    for conversation in unit.changed(Conversation) + _owned(unit, Conversation, other):
        if conversation.contact_id == other.id:
            peers.move(unit, conversation, kept)
    _move_enrolments(unit, kept, other)
    for run in unit.changed(Run) + _owned(unit, Run, other):
        if run.contact_id == other.id:
            run_endings.move(unit, run, kept.id)
    run_endings.hand_over(unit, other, kept)
    unit.drop(other)
    merged = unit.put(_united(unit, kept, other))
    data = {"contact": contacts.represent(merged), "merged_contact_id": other.id}
    change.events.record("contact.merged", data, kept.id)
    return merged


def _united(unit: Unit, kept: Contact, other: Contact) -> Contact:
    """Returns `kept` with the fields that it lacks, and with tags and custom fields up to the limits.

    Where both contacts have a value, `kept` keeps its own; but it is opted out if either was.
    """
    filled = {name: getattr(other, name) for name in _FILLED if getattr(kept, name) is None}
    tags = [*kept.tags, *(tag for tag in other.tags if tag not in kept.tags)][: contacts.MOST_TAGS]
    custom = list({**kept.custom_fields, **other.custom_fields, **kept.custom_fields}.items())
    return kept.altered(
        **filled,
        tags=sorted(tags),
        custom_fields=dict(custom[: contacts.MOST_FIELDS]),
        opted_out=kept.opted_out or other.opted_out,
        updated_at=unit.now,
    )


def _read(unit: Unit, contact: Contact) -> None:
    """Reads and locks the rows that are moved at once, with a few statements."""
    for model in _AT_ONCE:
        unit.read(sets.key(model, contact.workspace_id, "id", row_id) for row_id in _stored(unit, model, contact))


def _owned(unit: Unit, model: Any, contact: Contact) -> list[Any]:
    found = [unit.get(model, contact.workspace_id, "id", row_id) for row_id in _stored(unit, model, contact)]
    return [row for row in found if row is not None]


def _stored(unit: Unit, model: Any, contact: Contact) -> list[str]:
    def find() -> list[str]:
        return [row_id for (row_id,) in rows(_AT_ONCE[model], {"id": contact.id, "most": AT_ONCE})]

    return unit.noted(("of a merge", model, contact.id), find)


def _move_enrolments(unit: Unit, kept: Contact, other: Contact) -> None:
    """Moves enrolments. If both contacts have one, keeps the later run and sums up the active runs."""
    moved = [each for each in _owned(unit, Enrolment, other) if each.contact_id == other.id]
    own_ids = [Enrolment.id_of(kept.id, each.automation_id) for each in moved]
    unit.read(sets.key(Enrolment, kept.workspace_id, "id", own_id) for own_id in own_ids)
    for each, own_id in zip(moved, own_ids, strict=True):
        own = unit.get(Enrolment, kept.workspace_id, "id", own_id)
        latest = max(each.run_id, own.run_id) if own else each.run_id
        active = each.active + (own.active if own else 0)
        unit.put(each.altered(id=own_id, contact_id=kept.id, run_id=latest, active=active))
        unit.drop(each)


def _move(change: Change, other_id: str) -> bool:
    """Moves the next rows of the other contact, and returns False. If none are left, returns True.

    In that case, the merge has ended. Raises Busy if other transactions have locked all rows that are left.
    """
    progress = change.progress or {}
    table = _TABLES[0] if "after" in progress else progress.get("table", _TABLES[0])
    for each in _TABLES[_TABLES.index(table) :]:
        if each == "unfinished_runs":
            if run_endings.move_next(change.workspace_id, other_id, change.target, PART):
                change.keep(table=each)
                return False
            continue
        next_ones = f"SELECT id FROM {each} WHERE contact_id = %s ORDER BY id LIMIT %s FOR NO KEY UPDATE SKIP LOCKED"
        found = [row_id for (row_id,) in rows(next_ones, (other_id, PART))]
        if found:
            rows(f"UPDATE {each} SET contact_id = %s WHERE id = ANY(%s)", (change.target, found))
            change.keep(table=each)
            return False
        if rows(f"SELECT 1 FROM {each} WHERE contact_id = %s LIMIT 1", (other_id,)):
            raise Busy
    _forget(change, other_id)
    return True


def _is_deleted(change: Change) -> bool:
    """Returns whether the target was deleted, and not merged, before all rows followed."""
    if Contact.one(change.workspace_id, change.target) is not None:
        return False
    return not rows(_MERGED_ON, (change.workspace_id, KIND, change.target))


def _forget(change: Change, other_id: str) -> None:
    """Moves suggestions to the kept contact, voids failed writes about the other, and ends the merge."""
    for first, second, reason in rows(_TAKE_SUGGESTIONS, (other_id, other_id)):
        pair = sorted((change.target, second if first == other_id else first))
        if pair[0] != pair[1]:
            rows(_SUGGEST_AGAIN, (ids.new("sgm"), change.workspace_id, *pair, reason))
    rows(_VOID, (change.workspace_id, other_id))
    rows("DELETE FROM pending_merges WHERE id = %s", (other_id,))


# The rows that are moved with the contact at once, and the queries that find them.
_AT_ONCE: dict[Any, str] = {
    Identity: "SELECT id FROM identities WHERE contact_id = %(id)s",
    Conversation: """
        (SELECT id FROM conversations WHERE contact_id = %(id)s
            ORDER BY coalesce(last_message_at, created_at) DESC, id DESC LIMIT %(most)s)
        UNION (SELECT conversation_id FROM runs
            WHERE contact_id = %(id)s AND finished_at IS NULL AND conversation_id IS NOT NULL LIMIT %(most)s)
    """,
    Enrolment: "SELECT id FROM enrolments WHERE id > %(id)s || '/' AND id < %(id)s || '0'",
    Run: "SELECT id FROM runs WHERE contact_id = %(id)s AND finished_at IS NULL LIMIT %(most)s",
}
_DETAILS = """
    SELECT (SELECT json_agg(json_build_object('channel_kind', channel_kind, 'external_id', external_id) ORDER BY id)
            FROM identities WHERE contact_id = %(id)s),
        (SELECT json_agg(json_build_object('contact_id', pair.id, 'reason', pair.reason) ORDER BY pair.id)
            FROM (
                SELECT other_id AS id, reason FROM suggested_merges WHERE contact_id = %(id)s
                UNION ALL SELECT contact_id, reason FROM suggested_merges WHERE other_id = %(id)s) AS pair
            JOIN contacts ON contacts.id = pair.id)
"""
_SUGGESTED = """
    (SELECT contacts.id, reason FROM suggested_merges JOIN contacts ON contacts.id = other_id
        WHERE contact_id = %(id)s ORDER BY other_id LIMIT %(most)s)
    UNION ALL
    (SELECT contacts.id, reason FROM suggested_merges JOIN contacts ON contacts.id = contact_id
        WHERE other_id = %(id)s LIMIT %(most)s)
    LIMIT %(most)s
"""
_MERGED_ON = """
    SELECT 1 FROM jobs WHERE workspace_id = %s AND kind = %s AND payload->>'contact_id' = %s AND due_at IS NOT NULL
"""
_TAKE_SUGGESTIONS = """
    DELETE FROM suggested_merges WHERE contact_id = %s OR other_id = %s RETURNING contact_id, other_id, reason
"""
_SUGGEST_AGAIN = """
    INSERT INTO suggested_merges (id, workspace_id, contact_id, other_id, reason) VALUES (%s, %s, %s, %s, %s)
    ON CONFLICT DO NOTHING RETURNING id
"""
# Only failed writes keep a payload, and these writes could never be applied again.
_VOID = """
    UPDATE jobs SET payload = NULL, broke = NULL
    WHERE workspace_id = %s AND coalesce(payload->>'contact_id', resource_id) = %s
        AND status = 'failed' AND payload IS NOT NULL RETURNING id
"""
