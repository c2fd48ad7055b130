"""Conversations for tests: a channel, what is written in it, and tasks that have locked a contact."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar

from app.channels.kinds import CHANNEL_KINDS
from app.database import rows, transaction
from app.domain.conversations import conversations, messages
from app.domain.triggers import batches
from app.domain.work.changes import Change
from app.domain.work.events import Cause
from app.domain.work.units import Unit
from app.lib import ids
from app.models import sets
from app.models.contacts import Contact
from app.models.conversations import Conversation, Message
from app.models.runs import Run
from tests.cast import Api, until
from tests.wires import WIRE

T = TypeVar("T")

CHANNEL_KINDS[WIRE.name] = WIRE


class Interrupted(Exception):
    """What a task fails with."""


def make_channel(workspace_id: str, state: str = "connected") -> str:
    channel_id = ids.new("chn")
    rows(
        "INSERT INTO channels (id, workspace_id, kind, name, state) VALUES (%s, %s, 'test', 'Test', %s)",
        (channel_id, workspace_id, state),
    )
    return channel_id


def make_member(workspace_id: str) -> str:
    account_id, member_id = ids.new("acc"), ids.new("mem")
    rows("INSERT INTO accounts (id, email) VALUES (%s, %s)", (account_id, f"{member_id}@example.com"))
    rows(
        "INSERT INTO members (id, workspace_id, account_id, role) VALUES (%s, %s, %s, 'agent')",
        (member_id, workspace_id, account_id),
    )
    return member_id


def make_run(workspace_id: str, contact_id: str, **fields: Any) -> str:
    """A run that is not due, of no automation in particular."""
    fields = {"status": "waiting", "version": 1, "automation_id": ids.new("aut"), "trace_id": "trace-1"} | fields
    run = Run(id=ids.new("run"), workspace_id=workspace_id, contact_id=contact_id, **fields)
    with transaction():
        sets.insert(Run, [Run(**{"created_at": "2026-11-21T10:00:00Z", **run.__data__})])
    return str(run.id)


def change(unit: Unit, workspace_id: str) -> Change:
    return Change(workspace_id, {}, None, "test", None, Cause(None, "trace-1"), unit)


def locked(workspace_id: str, contact_id: str, task: Callable[[Unit, Contact], T]) -> T:
    """Does the task in a unit of its own that has locked the contact, as soon as nothing is in the way."""
    key = sets.key(Contact, workspace_id, "id", contact_id)

    def attempt() -> list[T | Exception]:
        with transaction():
            return batches.run([lambda unit: task(unit, unit.get(Contact, workspace_id, "id", contact_id))], [key])

    [result] = until(attempt, seconds=60)
    if isinstance(result, Exception):
        raise result
    return result


def receive(
    workspace_id: str, contact_id: str, channel_id: str, text: str = "Yes", button_id: str | None = None
) -> Message:
    """The contact writes, or presses a button with that label."""

    def take(unit: Unit, contact: Contact) -> Message:
        return messages.receive(change(unit, workspace_id), contact, channel_id, text, button_id=button_id)

    return locked(workspace_id, contact_id, take)


def write(workspace_id: str, contact_id: str, member_id: str, text: str = "Hello") -> Message:
    """A member writes in the contact's most recent conversation."""
    fields = {"payload": {"contact_id": contact_id, "text": text}, "actor_id": member_id, "resource_id": ids.new("msg")}

    def create(unit: Unit, contact: Contact) -> Message:
        effect = messages.create(replace(change(unit, workspace_id), **fields))
        message: Message = unit.get(Message, workspace_id, "id", effect.resource_id)
        return message

    return locked(workspace_id, contact_id, create)


def add_note(api: Api, conversation_id: str, text: str = "Called.", **fields: Any) -> str:
    """Somebody with a token adds a note; returns its identifier."""
    job = api.done(api.post(f"conversations/{conversation_id}/notes", {"text": text, **fields}))
    assert job["status"] == "succeeded", job
    return str(job["resource"]["id"])


def make_saved_reply(api: Api, shortcut: str = "refund", text: str = "Hello {{ contact.first_name }}.") -> str:
    """Creates a saved reply; returns its identifier."""
    job = api.done(api.post("saved-replies", {"shortcut": shortcut, "text": text}))
    assert job["status"] == "succeeded", job
    return str(job["resource"]["id"])


def make_macro(api: Api, *actions: dict[str, Any]) -> str:
    """Creates a macro, by default one that labels and closes a conversation; returns its identifier."""
    taken = list(actions) or [{"kind": "label", "labels": ["refund"]}, {"kind": "close"}]
    job = api.done(api.post("macros", {"name": "Refund", "actions": taken}))
    assert job["status"] == "succeeded", job
    return str(job["resource"]["id"])


def close(workspace_id: str, contact_id: str) -> Conversation:
    """Closes the contact's most recent conversation."""
    return locked(
        workspace_id,
        contact_id,
        lambda unit, contact: conversations.close(change(unit, workspace_id), contact, recent(unit, contact)),
    )


def assign(workspace_id: str, contact_id: str, assignee_id: str | None) -> Conversation:
    """Assigns the contact's most recent conversation."""
    return locked(
        workspace_id,
        contact_id,
        lambda unit, contact: conversations.assign(
            change(unit, workspace_id), contact, recent(unit, contact), assignee_id
        ),
    )


def undo(unit: Unit, work: Callable[[], object]) -> None:
    """Does the work in the unit, and then fails."""
    with suppress(Interrupted), unit.attempt():
        work()
        raise Interrupted


def recent(unit: Unit, contact: Contact) -> Conversation:
    found = conversations.most_recent(unit, contact.workspace_id, contact.id)
    assert found is not None
    return found
