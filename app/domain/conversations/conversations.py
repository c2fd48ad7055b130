"""Conversations: opens, closes and assigns them, finds a contact's latest one, and holds runs.

To change a conversation, the caller must have locked its contact.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from marshmallow import fields, validate

from app import realtime
from app.database import rows
from app.domain.channels import outboxes
from app.domain.contacts import contacts
from app.domain.people import conversation_notifications, members
from app.domain.triggers import run_states
from app.domain.work.changes import Change
from app.domain.work.units import Unit
from app.errors import Fault, Invalid, NotFound
from app.lib import ids
from app.lib.schemas import ResponseBody, about, time
from app.models import sets
from app.models.contacts import Contact
from app.models.conversations import Conversation
from app.models.runs import Run

NO_MEMBER = Fault("/assignee_id", "There is no such member in this workspace.")
STATUSES = ("open", "closed")


def prefetch(unit: Unit, runs: Sequence[Run]) -> None:
    """Reads the conversations that `of_run` will return for these runs, in three statements in all."""
    unit.notes |= _latest(run.contact_id for run in runs if run.conversation_id is None)
    wanted = [(run, run.conversation_id or unit.notes[_latest_of(run.contact_id)]) for run in runs]
    unit.read(sets.key(Conversation, run.workspace_id, "id", found) for run, found in wanted if found)
    outboxes.prefetch(unit, (found for _, found in wanted if found))


def prefetch_most_recent(unit: Unit, workspace_id: str, contact_ids: Collection[str]) -> None:
    """Reads the conversations that `most_recent` will return for the contacts, in three statements."""
    latest = _latest(contact_ids)
    unit.notes |= latest
    unit.read(sets.key(Conversation, workspace_id, "id", found) for found in latest.values() if found)
    outboxes.prefetch(unit, (found for found in latest.values() if found))


def of_run(unit: Unit, run: Run) -> Conversation | None:
    """Returns the run's own conversation, or else the contact's most recent one; None if none."""
    own: Conversation | None = None
    if run.conversation_id is not None:
        own = unit.get(Conversation, run.workspace_id, "id", run.conversation_id)
    return own or most_recent(unit, run.workspace_id, run.contact_id)


def most_recent(unit: Unit, workspace_id: str, contact_id: str) -> Conversation | None:
    """Returns the contact's conversation with the latest message, open or closed; None if none."""
    if _latest_of(contact_id) not in unit.notes:
        unit.notes |= _latest([contact_id])
    found = unit.notes[_latest_of(contact_id)]
    return unit.get(Conversation, workspace_id, "id", found) if found else None


def on_channel(unit: Unit, contact: Contact, channel_ids: Collection[str]) -> Conversation | None:
    """Returns the contact's latest conversation on one of the channels, open or closed; None if none."""
    latest = most_recent(unit, contact.workspace_id, contact.id)
    if latest is None or latest.channel_id in channel_ids:
        return latest
    found = rows(
        """
        SELECT id FROM conversations WHERE contact_id = %s AND channel_id = ANY(%s)
        ORDER BY coalesce(last_message_at, created_at) DESC, id DESC LIMIT 1
        """,
        (contact.id, list(channel_ids)),
    )
    return unit.get(Conversation, contact.workspace_id, "id", found[0][0]) if found else None


def open_on(
    change: Change,
    contact: Contact,
    channel_id: str,
    *,
    is_quiet: bool = False,
    referral: Mapping[str, Any] | None = None,
) -> Conversation:
    """Opens a conversation, which becomes the contact's most recent one, and records the event.

    `referral`: the advertisement that led the contact here. If `is_quiet`, the conversation begins closed, and no event
    is recorded.
    """
    conversation = Conversation(
        id=ids.new("cnv"),
        workspace_id=contact.workspace_id,
        contact_id=contact.id,
        channel_id=channel_id,
        status="closed" if is_quiet else "open",
        referral=referral,
        created_at=change.unit.now,
    )
    change.unit.put(conversation)
    change.unit.notes[_latest_of(contact.id)] = conversation.id
    if not is_quiet:
        record(change, "conversation.opened", contact, conversation)
    return conversation


def open_for(change: Change, contact: Contact, channel_id: str) -> Conversation:
    """Returns the contact's most recent conversation on the channel, reopened, or else a new one."""
    found = on_channel(change.unit, contact, [channel_id])
    return reopen(change, contact, found) if found else open_on(change, contact, channel_id)


def reopen(change: Change, contact: Contact, conversation: Conversation) -> Conversation:
    """Reopens the conversation and records the event. Does nothing if it is open."""
    if conversation.status == "open":
        return conversation
    reopened = alter(change.unit, conversation, status="open")
    record(change, "conversation.opened", contact, reopened)
    return reopened


def close(change: Change, contact: Contact, conversation: Conversation) -> Conversation:
    """Closes an open conversation: ends its snooze, releases held runs and records the event."""
    if conversation.status == "closed":
        return conversation
    ended = dict.fromkeys(("held_at", "snoozed_until", "waiting_since"))
    closed = alter(change.unit, conversation, status="closed", **ended)
    if conversation.held_at is not None:
        _release(change.unit, closed)
    record(change, "conversation.closed", contact, closed)
    return closed


def assign(
    change: Change,
    contact: Contact,
    conversation: Conversation,
    assignee_id: str | None,
    by: Mapping[str, str] | None = None,
) -> Conversation:
    """Assigns the conversation to the member; None removes the assignee.

    Records the event and notifies the member. Raises Invalid for an unknown member. `by`: the author (`type`, `id`);
    None for the change's author.
    """
    if assignee_id is not None:
        member = (conversation.workspace_id, assignee_id)
        if not change.unit.noted(("member", *member), lambda: members.exists(*member)):
            raise Invalid(NO_MEMBER)
    if assignee_id == conversation.assignee_id:
        return conversation
    assigned = alter(change.unit, conversation, assignee_id=assignee_id)
    actor = by or change.author
    record(change, "conversation.assigned", contact, assigned, assigned_by=actor)
    conversation_notifications.assigned(change.unit, assigned, actor["id"], change.payload.get("member_id"))
    return assigned


def touch(unit: Unit, conversation: Conversation, **fields: Any) -> Conversation:
    """Records that a message was added now, which makes this the contact's most recent conversation."""
    unit.notes[_latest_of(conversation.contact_id)] = conversation.id
    return alter(unit, conversation, last_message_at=unit.now, **fields)


def answer(unit: Unit, conversation: Conversation) -> Conversation:
    """Records an answer by a person: the contact no longer waits."""
    if conversation.waiting_since is None:
        return conversation
    first_answered_at = conversation.first_answered_at or unit.now
    return alter(unit, conversation, waiting_since=None, first_answered_at=first_answered_at)


def move(unit: Unit, conversation: Conversation, contact: Contact) -> Conversation:
    """Moves the conversation to the contact, as the most recent one if none of theirs is later."""
    latest = most_recent(unit, contact.workspace_id, contact.id)
    if latest is None or is_later(conversation, latest):
        unit.notes[_latest_of(contact.id)] = conversation.id
    return alter(unit, conversation, contact_id=contact.id)


def is_later(conversation: Conversation, than: Conversation) -> bool:
    """Whether the conversation is as late as `than`, by the latest message or else the creation."""
    one, other = ((each.last_message_at or each.created_at) for each in (conversation, than))
    return bool(one >= other)


def alter(unit: Unit, conversation: Conversation, **fields: Any) -> Conversation:
    """Stores the conversation with these fields changed; returns it."""
    return unit.put(conversation.altered(**fields))


def runs_that(unit: Unit, conversation: Conversation, condition: str) -> list[Run]:
    """Returns the contact's unfinished runs that meet the SQL condition, locked.

    The caller must check the condition again: also returns all runs that the unit has changed.
    """
    stored = rows(
        f"SELECT id FROM runs WHERE contact_id = %s AND finished_at IS NULL AND {condition}",
        (conversation.contact_id,),
    )
    unit.read(sets.key(Run, conversation.workspace_id, "id", run_id) for (run_id,) in stored)
    found = [unit.get(Run, conversation.workspace_id, "id", run_id) for (run_id,) in stored]
    return list({run.id: run for run in (*found, *unit.changed(Run)) if run is not None}.values())


def hold(change: Change, conversation_id: str) -> tuple[Contact, Conversation]:
    """Returns the contact and the conversation, locked. Raises Busy, and NotFound if one was deleted."""
    conversation = change.unit.get(Conversation, change.workspace_id, "id", conversation_id)
    if conversation is None:
        raise NotFound
    return contacts.find(change.workspace_id, conversation.contact_id, change.unit), conversation


def hold_runs(unit: Unit, conversation: Conversation) -> Conversation:
    """Holds the contact's runs, including released ones, until the conversation is closed."""
    conversation = alter(unit, conversation, held_at=unit.now)
    for run in runs_that(unit, conversation, "is_released"):
        if run.contact_id == conversation.contact_id and run.is_released:
            run_states.change(unit, run, is_released=False)
    return conversation


def tell_typing(conversation: Conversation, author: dict[str, str]) -> None:
    """Shows other members, and a web chat's visitor, that the author is typing. Needs no lock."""
    realtime.typing(conversation.workspace_id, conversation.id, author, conversation.channel_id, conversation.peer)


def record(change: Change, kind: str, contact: Contact, conversation: Conversation, **further: Any) -> None:
    """Records an event of the conversation; `further` is added to its data."""
    data = {"contact": contacts.represent(contact), "conversation": represent(conversation), **further}
    change.events.record(kind, data, contact.id)


def erase(conversation_ids: Sequence[str]) -> None:
    """Closes these conversations of a deleted contact. Records no event; `contact.deleted` covers it."""
    rows("DELETE FROM read_receipts WHERE conversation_id = ANY(%s)", (list(conversation_ids),))
    rows(
        """
        UPDATE conversations SET status = 'closed', held_at = NULL, peer = NULL, unread = 0, window_ends_at = NULL,
            labels = '{}', snoozed_until = NULL, waiting_since = NULL, asked_at = NULL, referral = NULL,
            scheduled = 0
        WHERE id = ANY(%s)
        """,
        (list(conversation_ids),),
    )


class ConversationSchema(ResponseBody):
    id = fields.String()
    contact_id = fields.String()
    channel_id = fields.String()
    status = fields.String(validate=validate.OneOf(STATUSES))
    assignee_id = fields.String(allow_none=True, metadata=about("A member; null if it is not assigned."))
    labels = fields.List(fields.String(), metadata=about("Sorted.", example=["refund"]))
    snoozed_until = time("When it wakes at the latest; null: it is not snoozed.", allow_none=True)
    unread = fields.Integer(metadata=about("How many messages of the contact no member has read.", example=2))
    waiting_since = time(
        "When the contact wrote the first message that is still unanswered; null: none is.", allow_none=True
    )
    first_answered_at = time("When the contact was first answered; null: never.", allow_none=True)
    scheduled = fields.Integer(metadata=about("How many of its messages are scheduled.", example=1))
    last_message_at = time("When the latest message was added; null: there is none.", allow_none=True)
    window_ends_at = time(
        "Until when the provider lets free text through; null: it has no such window, or it has not begun.",
        allow_none=True,
    )
    referral = fields.Dict(
        allow_none=True,
        metadata=about(
            "The advertisement that the contact last came from, as WhatsApp says it: `source_id`, `headline`,"
            " `ctwa_clid` and others; null: none."
        ),
    )
    created_at = time("When the conversation began.")


represent = ConversationSchema.of


def _latest(contact_ids: Iterable[str]) -> Mapping[tuple[str, str], str | None]:
    """Returns the stored most recent conversation of each contact, by its key in a unit's notes."""
    wanted = sorted(set(contact_ids))
    if not wanted:
        return {}
    found = rows(
        """
        SELECT contact_id, (
            SELECT id FROM conversations WHERE conversations.contact_id = wanted.contact_id
            ORDER BY coalesce(last_message_at, created_at) DESC, id DESC LIMIT 1
        ) FROM unnest(%s::text[]) AS wanted(contact_id)
        """,
        (wanted,),
    )
    return {_latest_of(contact_id): conversation_id for contact_id, conversation_id in found}


def _latest_of(contact_id: str) -> tuple[str, str]:
    return ("most recent conversation", contact_id)


def _release(unit: Unit, conversation: Conversation) -> None:
    for run in runs_that(unit, conversation, "waits_for = 'member'"):
        if run.waits_for == "member" and run.conversation_id == conversation.id:
            run_states.wake(unit, run)
