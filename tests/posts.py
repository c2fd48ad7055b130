"""Messages to be sent, for tests: conversations on channels whose provider is a receiver on loopback."""

from __future__ import annotations

from typing import Any

from app.database import rows
from app.domain.channels import channels
from app.domain.conversations import conversations, messages
from app.lib import json
from app.models.conversations import Conversation, Message
from tests.cast import Api
from tests.talks import change, locked, make_channel

AUTOMATION = {"type": "automation", "id": "aut_1"}
BROADCAST = {"type": "broadcast", "id": "bct_1"}
API = {"type": "api", "id": "tok_1"}
MEMBER = {"type": "member", "id": "mem_1"}


def make_post(workspace_id: str, address: str = "https://127.0.0.1:9/", token: str = "good", **settings: Any) -> str:
    """A channel that sends to the address; returns its identifier."""
    channel_id = make_channel(workspace_id)
    rows(
        "UPDATE channels SET settings = %s, credentials = %s WHERE id = %s",
        (json.dumps({"address": address, **settings}).decode(), channels.sealed({"token": token}), channel_id),
    )
    return channel_id


def open_talk(api: Api, channel_id: str, peer: str = "ada") -> str:
    """A conversation with a contact of its own; returns its identifier."""
    contact_id = api.contact(external_id=f"{peer} of {channel_id}")["id"]
    conversation: Conversation = locked(
        api.workspace_id,
        contact_id,
        lambda unit, contact: conversations.open_on(change(unit, contact.workspace_id), contact, channel_id),
    )
    rows("UPDATE conversations SET peer = %s WHERE id = %s", (peer, conversation.id))
    return str(conversation.id)


def post(conversation_id: str, *texts: str, author: dict[str, str] = API, **options: Any) -> list[str]:
    """Queues messages in the conversation, in one transaction; returns their identifiers."""
    talk = Conversation.get_by_id(conversation_id)

    def task(unit: Any, contact: Any) -> list[Message]:
        found = unit.get(Conversation, talk.workspace_id, "id", conversation_id)
        made = change(unit, talk.workspace_id)
        return [messages.queue(made, contact, found, text, author=author, **options) for text in texts]

    return [message.id for message in locked(talk.workspace_id, talk.contact_id, task)]


def status_of(message_id: str) -> str:
    return str(Message.get_by_id(message_id).status)
