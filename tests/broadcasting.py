"""What tests of broadcasts share: people who can be reached, broadcasts, and what became of each contact."""

from __future__ import annotations

from typing import Any

from app import database
from app.domain.broadcasts import broadcast_batches
from app.domain.broadcasts.broadcasts import WAITING
from app.lib import ids
from app.mailbox import wake
from app.models.broadcasts import Broadcast, BroadcastRow
from app.models.conversations import Message
from app.models.jobs import Job
from tests.cast import Api, accept, apply

EVERYBODY = {"field": "contact.created_at", "is": "exists"}


def people(api: Api, number: int, **fields: Any) -> list[str]:
    """Contacts with phone numbers, in the order of their creation."""
    return [api.contact(phone=f"+4930{5_000_000 + each}", **fields)["id"] for each in range(number)]


def begin(workspace_id: str, **fields: Any) -> str:
    """The identifier of a new broadcast, not worked on yet; by default a message for all contacts, at once."""
    broadcast_id = ids.new("bct")
    payload = {"name": "Sale", "filter": EVERYBODY, **fields}
    if "segment_id" in fields:
        del payload["filter"]
    if "automation_id" not in payload:
        payload.setdefault("message", {"text": "Hello {{ contact.first_name }}!"})
    job = accept(workspace_id, "broadcasts.create", payload, broadcast_id)
    apply(workspace_id)
    assert Job.get_by_id(job.id).problem is None
    return broadcast_id


def work(broadcast_id: str) -> Broadcast:
    """Works on the broadcast until it has ended, or waits for a person, a time, or messages to leave."""
    while database.rows("SELECT 1 FROM broadcasts WHERE id = %s AND due_at IS NOT NULL", (broadcast_id,)):
        broadcast_batches.work(broadcast_id)
    return shown(broadcast_id)


def later(broadcast_id: str, seconds: float = 3_600) -> Broadcast:
    """The same when so much time has passed."""
    database.rows(
        """
        WITH moved AS (
            UPDATE broadcast_parts SET due_at = due_at - %(seconds)s * interval '1 second'
            WHERE broadcast_id = %(id)s RETURNING number)
        UPDATE broadcasts SET wakes_at = wakes_at - %(seconds)s * interval '1 second',
            paced_until = paced_until - %(seconds)s * interval '1 second'
        WHERE id = %(id)s RETURNING id
        """,
        {"id": broadcast_id, "seconds": seconds},
    )
    wake(WAITING)
    return work(broadcast_id)


def shown(broadcast_id: str) -> Broadcast:
    found: Broadcast = Broadcast.get_by_id(broadcast_id)
    return found


def move(broadcast_id: str, verb: str, payload: dict[str, Any] | None = None) -> dict[str, Any] | None:
    """What is wrong with pausing, continuing, aborting or changing it."""
    workspace_id = shown(broadcast_id).workspace_id
    job = accept(workspace_id, f"broadcasts.{verb}", payload or {}, broadcast_id)
    apply(workspace_id)
    problem: dict[str, Any] | None = Job.get_by_id(job.id).problem
    return problem


def outcomes(broadcast_id: str) -> dict[str, str]:
    """The outcome of each contact that was handled, or why it was skipped."""
    found = list(BroadcastRow.select().where(BroadcastRow.broadcast_id == broadcast_id).order_by(BroadcastRow.number))
    assert [row.number for row in found] == list(range(1, len(found) + 1))
    return {row.contact_id: row.reason or row.outcome for row in found}


def texts(broadcast_id: str) -> dict[str, str]:
    """The text that each contact got."""
    found = Message.select().where(Message.broadcast_id == broadcast_id)
    return {message.contact_id: message.text for message in found}


def settle(broadcast_id: str, status: str = "sent") -> None:
    """The provider takes, or refuses, all messages of the broadcast that are under way."""
    database.rows(
        """
        UPDATE messages SET status = %s, due_at = NULL, leased_until = NULL
        WHERE broadcast_id = %s AND due_at IS NOT NULL RETURNING id
        """,
        (status, broadcast_id),
    )
