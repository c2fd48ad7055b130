"""Messages that are sent later, for tests."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from app.database import rows
from app.domain.conversations import scheduled_messages
from app.models.conversations import Message
from tests.cast import Api

TOMORROW = datetime.now(UTC).replace(microsecond=0) + timedelta(days=1)


def schedule(api: Api, conversation_id: str, text: str = "Any news?", **body: Any) -> str:
    """Schedules a message for tomorrow; returns its identifier."""
    body = {"text": text, "send_at": TOMORROW.isoformat()} | body
    job = api.done(api.post(f"conversations/{conversation_id}/messages", body))
    assert job["status"] == "succeeded", job
    return str(job["resource"]["id"])


def pass_time(*message_ids: str) -> None:
    """The time of these messages comes now, one after the other."""
    for number, message_id in enumerate(message_ids):
        ago = len(message_ids) - number
        rows("UPDATE messages SET send_at = now() - %s * interval '1 second' WHERE id = %s", (ago, message_id))


def go(*message_ids: str) -> int:
    """The time of these messages comes, and the scheduler queues them; returns how many it did."""
    pass_time(*message_ids)
    return scheduled_messages.queue_some()


def state(message_id: str) -> tuple[str, str | None]:
    """The status, and the code of the failure."""
    message = Message.get_by_id(message_id)
    return str(message.status), (message.failure or {}).get("code")
