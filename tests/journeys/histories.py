"""Conversations that are there before a story begins."""

from __future__ import annotations

from tests.journeys.audit import rows
from tests.stack.stack import Stack


def fill(stack: Stack, workspace_id: str, number: int, labelled: int = 0) -> None:
    """Gives a workspace that many open conversations in a web chat, the newest first; some have the label `done`."""
    assert len(rows(stack, _FILL, workspace_id, number, labelled)) == number


_FILL = """
    WITH given AS (
        SELECT %s::text AS workspace, %s::int AS many, %s::int AS labelled
    ), channel AS (
        INSERT INTO channels (id, workspace_id, kind, name, state)
        SELECT 'chn_' || right(workspace, 26), workspace, 'web_chat', 'Shop', 'connected' FROM given RETURNING id
    ), people AS (
        INSERT INTO contacts (id, workspace_id, external_id, created_at, updated_at)
        SELECT 'con_' || lpad(n::text, 5, '0') || right(workspace, 21), workspace, n::text, now(), now()
        FROM given, generate_series(1, many) AS n RETURNING id, external_id::int AS n
    )
    INSERT INTO conversations (id, workspace_id, contact_id, channel_id, peer, status, labels, created_at)
    SELECT 'cnv_' || right(people.id, 26), workspace, people.id, channel.id, 'vst_' || right(people.id, 26), 'open',
        CASE WHEN n <= labelled THEN ARRAY['done'] ELSE '{}' END, now() - n * interval '1 second'
    FROM given, people, channel RETURNING id
"""
