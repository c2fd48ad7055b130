"""Balanced channels for tests: conversations that wait in their queues, and who gets them."""

from __future__ import annotations

from typing import Any

from app.database import rows
from app.domain.assignment import assignments
from app.lib import json
from tests.cast import Api, all_of, one
from tests.talks import make_channel, receive


def make_balanced(workspace_id: str, **settings: Any) -> str:
    """A channel with the rule."""
    channel_id = make_channel(workspace_id)
    set_rule(channel_id, **settings)
    return channel_id


def set_rule(channel_id: str, assignment: str = "balanced", **settings: Any) -> None:
    said = json.dumps({"assignment": assignment, **settings}).decode()
    rows("UPDATE channels SET settings = %s WHERE id = %s", (said, channel_id))


def wait_in(api: Api, channel_id: str, *names: str) -> list[str]:
    """Somebody of each name writes in the channel, one after the other; returns their conversations."""
    contacts = [api.contact(external_id=name)["id"] for name in names]
    return [receive(api.workspace_id, contact_id, channel_id).conversation_id for contact_id in contacts]


def assign_all() -> int:
    """Applies the rule until it assigns nothing more; returns how many it has assigned."""
    assigned = 0
    while number := assignments.assign_some("")[1]:
        assigned += number
    return assigned


def assignee(conversation_id: str) -> str | None:
    found: str | None = one("SELECT assignee_id FROM conversations WHERE id = %s", conversation_id)
    return found


def assignees() -> list[str | None]:
    """Of all conversations, the oldest first."""
    return all_of("SELECT assignee_id FROM conversations ORDER BY id")


def set_member(member_id: str, **columns: Any) -> None:
    changes = ", ".join(f"{name} = %s" for name in columns)
    rows(f"UPDATE members SET {changes} WHERE id = %s", (*columns.values(), member_id))
