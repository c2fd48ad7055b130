"""Messages that wait to be sent, written straight into the database of a running service."""

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg2
from psycopg2.extras import execute_values

from app import config
from app.lib import ids, vault
from tests.stack.stack import Stack


@dataclass(frozen=True)
class Posted:
    """The messages of one conversation, in their order: the peer, and each identifier with its text."""

    conversation_id: str
    peer: str
    texts: Mapping[str, str]


def connect(
    stack: Stack, workspace_id: str, kind: str, credentials: Mapping[str, str], settings: Mapping[str, Any]
) -> str:
    """A connected channel; returns its identifier."""
    channel_id = ids.new("chn")
    sealed = vault.encrypt(config.read(stack.environment).secret_keys, json.dumps(dict(credentials)))
    _insert(
        stack,
        "channels (id, workspace_id, kind, name, settings, credentials)",
        [(channel_id, workspace_id, kind, "Demo", json.dumps(dict(settings)), sealed)],
    )
    return channel_id


def post(stack: Stack, workspace_id: str, channel_ids: Sequence[str], conversations: int, each: int) -> list[Posted]:
    """Queues that many messages in each of the new conversations with new contacts; nobody is rung for.

    The channels get an equal number of conversations, whose peers are numbers.
    """
    contacts, talks, messages, posted = [], [], [], []
    for number, channel_id in zip(range(conversations), itertools.cycle(channel_ids)):
        contact_id, conversation_id = ids.new("con"), ids.new("cnv")
        peer = str(1_000_000 + number)
        contacts.append((contact_id, workspace_id, f"customer-{contact_id}"))
        talks.append((conversation_id, workspace_id, contact_id, channel_id, peer))
        texts = {ids.new("msg"): f"{peer}-{place}" for place in range(each)}
        posted.append(Posted(conversation_id, peer, texts))
        shared = (workspace_id, conversation_id, contact_id, channel_id)
        messages += [(id, *shared, text, place > 0) for place, (id, text) in enumerate(texts.items())]
    _insert(stack, "contacts (id, workspace_id, external_id)", contacts)
    _insert(
        stack,
        "conversations (id, workspace_id, contact_id, channel_id, peer, window_ends_at)",
        talks,
        "(%s, %s, %s, %s, %s, now() + interval '1 day')",
    )
    _insert(
        stack,
        "messages (id, workspace_id, conversation_id, contact_id, channel_id, text, is_behind, due_at, direction,"
        " status, author)",
        [(*message, message[-1]) for message in messages],
        "(%s, %s, %s, %s, %s, %s, %s, CASE WHEN %s THEN NULL ELSE now() END, 'out', 'queued',"
        """ '{"type": "api", "id": "tok_1"}')""",
    )
    return posted


def _insert(stack: Stack, into: str, rows: Sequence[Sequence[Any]], template: str | None = None) -> None:
    connection = psycopg2.connect(stack.postgres.url)
    try:
        with connection, connection.cursor() as cursor:
            execute_values(cursor, f"INSERT INTO {into} VALUES %s", rows, template, page_size=1000)
    finally:
        connection.close()
