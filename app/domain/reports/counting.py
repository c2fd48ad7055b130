"""Counting: adds messages, openings and closings to the inbox's figures, each exactly once.

Messages are found by when they were stored or sent. Openings and closings of conversations are found where a database
trigger noted them. The figures of a part, and the time up to which it counted, are stored in one transaction.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from app.database import count, rows, transaction
from app.domain.insight import figures
from app.domain.reports import openings
from app.domain.reports.openings import DIMENSIONS, ConversationEvent, Figure, Opening, Openings

# About how many events of each kind one transaction counts. PostgreSQL ends a transaction that computes for ten
# seconds.
PART = 2_000
# How long a pass counts; the next one continues.
SLICE_SECONDS = 0.25
KEPT = timedelta(days=400)
# A message that was written before its conversation was closed still counts as the first answer if it is sent within
# this time after the closing.
CLOSED_KEPT = timedelta(days=7)
# How many values of each dimension have figures of their own in a month: the first to occur.
MOST_VALUES = 500


def count_up() -> int:
    """Counts the messages, openings and closings that were not counted yet; returns how many.

    Bounded in time. Safe to run concurrently: only one caller counts. Never counts beyond the start of a transaction
    that is still running, so late commits are not missed.
    """
    count("INSERT INTO inbox_figure_progress VALUES (true, now(), now()) ON CONFLICT DO NOTHING")
    ends, counted = time.monotonic() + SLICE_SECONDS, 0
    settled = figures.settled()
    while (found := _count_part(settled)) is not None:
        counted += found
        if time.monotonic() > ends:
            break
    return counted


def _count_part(settled: datetime) -> int | None:
    """Counts a part; returns how many events, or None if nothing is due or another process counts."""
    with transaction():
        behind = rows("SELECT counted_until FROM inbox_figure_progress FOR UPDATE SKIP LOCKED")
        if not behind or settled <= behind[0][0]:
            return None
        [(until,)] = rows(_UNTIL, {"since": behind[0][0], "settled": settled, "part": PART})
        span = {"since": behind[0][0], "until": until}
        events = [ConversationEvent(*row) for row in (*rows(_TRANSITIONS, span), *rows(_MESSAGES, span))]
        if events:
            known = _openings(events)
            _add(openings.count(events, known))
            _keep(known, {each.conversation_id: each.workspace_id for each in events})
        count("UPDATE inbox_figure_progress SET counted_until = %s", (until,))
    return len(events)


def _openings(events: Iterable[ConversationEvent]) -> Openings:
    conversation_ids = sorted({each.conversation_id for each in events})
    found = rows(
        """
        SELECT conversation_id, opened_at, first_received_at, is_answered, closed_at FROM conversation_openings
        WHERE conversation_id = ANY(%s)
        """,
        (conversation_ids,),
    )
    return {**dict.fromkeys(conversation_ids), **{id: Opening(*columns) for id, *columns in found}}


def _keep(known: Openings, workspaces: Mapping[str, str]) -> None:
    unknown = [id for id, opening in known.items() if opening is None]
    kept = [(id, opening) for id, opening in known.items() if opening is not None]
    rows("DELETE FROM conversation_openings WHERE conversation_id = ANY(%s)", (unknown,))
    columns = ("opened_at", "first_received_at", "is_answered", "closed_at")
    values = [[getattr(opening, column) for _, opening in kept] for column in columns]
    ids = [id for id, _ in kept]
    rows(_KEEP, (ids, [workspaces[id] for id in ids], *values))


def _add(amounts: Counter[Figure]) -> None:
    if not amounts:
        return  # only an erasure happened, which counts for nothing
    amounts = _with_few_values(amounts)
    columns: list[list[Any]] = [list(column) for column in zip(*amounts, strict=True)]
    rows(_ADD, (*columns, list(amounts.values())))


def _with_few_values(amounts: Counter[Figure]) -> Counter[Figure]:
    """Returns the amounts. Adds up values beyond MOST_VALUES of a month and dimension under ""."""
    wanted = sorted({_listed(figure) for figure in amounts if figure.dimension in DIMENSIONS})
    if not wanted:
        return amounts
    workspaces, dimensions, months, values = (list(column) for column in zip(*wanted, strict=True))
    listed = {tuple(row) for row in rows(_LIST, (workspaces, dimensions, months, values, MOST_VALUES))}
    few: Counter[Figure] = Counter()
    for figure, amount in amounts.items():
        is_listed = figure.dimension not in DIMENSIONS or _listed(figure) in listed
        few[figure if is_listed else figure._replace(value="")] += amount
    return few


def _listed(figure: Figure) -> tuple[str, str, datetime, str]:
    return figure.workspace_id, figure.dimension, figure.hour.replace(day=1, hour=0), figure.value


# Selects messages that Bellhop did not send. PostgreSQL uses their partial index only for exactly this condition.
_IS_NOTED = "(direction = 'in' OR author->>'type' = 'provider')"

# The end of the part, so that it has about PART of each kind. Events at the same time are counted together.
_UNTIL = f"""
    SELECT greatest(%(since)s + interval '1 microsecond', least(%(settled)s,
        (SELECT created_at FROM messages WHERE {_IS_NOTED} AND created_at >= %(since)s AND created_at < %(settled)s
            ORDER BY created_at OFFSET %(part)s LIMIT 1),
        (SELECT sent_at FROM messages WHERE sent_at >= %(since)s AND sent_at < %(settled)s
            ORDER BY sent_at OFFSET %(part)s LIMIT 1),
        (SELECT at FROM conversation_transitions WHERE at < %(settled)s ORDER BY at OFFSET %(part)s LIMIT 1)))
"""

_TRANSITIONS = """
    DELETE FROM conversation_transitions WHERE at < %(until)s
    RETURNING at, kind, workspace_id, conversation_id, channel_id, labels,
        CASE kind WHEN 'closed' THEN assignee_id END
"""

_MESSAGES = f"""
    SELECT noted.at, CASE direction WHEN 'in' THEN 'received' ELSE 'sent' END, noted.workspace_id,
        noted.conversation_id, talk.channel_id, talk.labels,
        CASE author->>'type' WHEN 'member' THEN author->>'id' END, noted.created_at, author->>'type'
    FROM (
        SELECT created_at AS at, workspace_id, conversation_id, direction, author, created_at FROM messages
        WHERE {_IS_NOTED} AND created_at >= %(since)s AND created_at < %(until)s
        UNION ALL
        SELECT sent_at, workspace_id, conversation_id, direction, author, created_at FROM messages
        WHERE sent_at >= %(since)s AND sent_at < %(until)s) AS noted
    JOIN conversations AS talk ON talk.id = noted.conversation_id
"""

_KEEP = """
    INSERT INTO conversation_openings
        (conversation_id, workspace_id, opened_at, first_received_at, is_answered, closed_at)
    SELECT * FROM
        unnest(%s::text[], %s::text[], %s::timestamptz[], %s::timestamptz[], %s::boolean[], %s::timestamptz[])
    ON CONFLICT (conversation_id) DO UPDATE SET opened_at = excluded.opened_at,
        first_received_at = excluded.first_received_at, is_answered = excluded.is_answered,
        closed_at = excluded.closed_at
"""

_LIST = """
    WITH wanted AS MATERIALIZED (
        SELECT new.*, known.value IS NOT NULL AS is_known,
            row_number() OVER (PARTITION BY new.workspace_id, new.dimension, new.month, known.value IS NULL) AS place
        FROM unnest(%s::text[], %s::text[], %s::timestamptz[], %s::text[])
            AS new(workspace_id, dimension, month, value)
        LEFT JOIN inbox_figure_values AS known USING (workspace_id, dimension, month, value)
    ), added AS (
        INSERT INTO inbox_figure_values (workspace_id, dimension, month, value)
        SELECT workspace_id, dimension, month, value FROM wanted
        WHERE NOT is_known AND place <= %s - (
            SELECT count(*) FROM inbox_figure_values AS counted
            WHERE (counted.workspace_id, counted.dimension, counted.month)
                = (wanted.workspace_id, wanted.dimension, wanted.month))
        RETURNING workspace_id, dimension, month, value
    )
    SELECT workspace_id, dimension, month, value FROM wanted WHERE is_known
    UNION ALL SELECT workspace_id, dimension, month, value FROM added
"""

_ADD = """
    INSERT INTO inbox_figures AS kept (workspace_id, dimension, grain, measure, starts_at, value, bucket, amount)
    SELECT workspace_id, dimension, grain, measure, starts_at, value, bucket, sum(amount)
    FROM unnest(%s::text[], %s::text[], %s::text[], %s::timestamptz[], %s::text[], %s::smallint[], %s::bigint[])
        AS counted(workspace_id, dimension, value, hour, measure, bucket, amount)
    CROSS JOIN LATERAL (VALUES ('hour', hour), ('day', date_trunc('day', hour, 'UTC')),
        ('month', date_trunc('month', hour, 'UTC'))) AS time(grain, starts_at)
    GROUP BY 1, 2, 3, 4, 5, 6, 7 ORDER BY 1, 2, 3, 4, 5, 6, 7
    ON CONFLICT (workspace_id, dimension, grain, measure, starts_at, value, bucket)
        DO UPDATE SET amount = kept.amount + excluded.amount
"""
