"""Weeks of deliveries in a workspace, inserted by set-based SQL: most delivered, the others failed in groups."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from app import partitions, sql
from app.domain.insight import figures

# Error code, status and sentence. A group is an endpoint and a cause.
CAUSES = (
    ("status", "500", "The server answered 500 Internal Server Error."),
    ("timeout", "NULL", "No answer within 10 seconds."),
    ("status", "503", "The server answered 503 Service Unavailable."),
    ("refused", "NULL", "The connection was refused."),
    ("tls", "NULL", "The certificate is not valid: it has expired."),
    ("status", "404", "The server answered 404 Not Found."),
    ("reset", "NULL", "The server closed the connection without an answer."),
    ("status", "429", "The server answered 429 Too Many Requests."),
)
KINDS = ("contact.updated", "contact.created", "sale.recorded", "tag.added", "booking.created")
ATTEMPTS = 6
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"


@dataclass(frozen=True)
class History:
    """How much to insert. `first`: identifiers count from here, so that no two histories share any."""

    workspace_id: str
    deliveries: int
    failed: int
    groups: int = 50
    endpoints: int = 25
    contacts: int = 1_000
    days: int = 29
    ended: timedelta = timedelta(minutes=1)  # before now
    kinds: tuple[str, ...] = KINDS
    first: int = 0
    address: str = "https://hooks.example/"  # followed by the number of the endpoint
    sealed_secret: bytes = b"none"


def make_partitions(cursor: Any, days: int) -> None:
    """Creates the partitions of so many past days, as service would have created them."""
    now = datetime.now(UTC)
    for table in partitions.TABLES:
        pieces = {table.pieces(now - timedelta(days=ago))[0] for ago in range(days + 2)}
        for piece in sorted(pieces, key=lambda piece: piece.low):
            cursor.execute(
                f"CREATE TABLE IF NOT EXISTS {piece.name} PARTITION OF {table.table}"
                f" FOR VALUES FROM ('{piece.low}') TO ('{piece.high}') WITH (fillfactor = {table.fillfactor})"
            )


def insert(cursor: Any, history: History) -> None:
    """Inserts the contacts, endpoints, events, deliveries, attempts and jobs of the history, and counts its figures.

    The figures count everything from its beginning to its end, so histories must not overlap with each other or with
    anything counted already.
    """
    ends = datetime.now(UTC) - history.ended
    began = ends - timedelta(days=history.days)
    values = _values(history, began, ends)
    for statement in (_CONTACTS, _ENDPOINTS, _EVENTS, _JOBS, _DELIVERIES, _ATTEMPTS):
        cursor.execute(statement.format(**values))
    cursor.execute("ANALYZE")
    while began < ends:
        until = min(began + timedelta(hours=6), ends)
        slice = {"since": began, "until": until, "bounds": list(figures.BOUNDS_MS)}
        cursor.execute(sql.load("count_outcomes"), slice)
        began = until
    cursor.execute(
        "INSERT INTO figure_progress VALUES ('outcomes', %(ends)s), ('writes', date_trunc('minute', %(ends)s))"
        " ON CONFLICT DO NOTHING",
        {"ends": ends},
    )


def _values(history: History, began: datetime, ends: datetime) -> dict[str, Any]:
    """What the statements have in braces. `n` is the number of a delivery; four of them are of one event."""
    began_ms, ends_ms = int(began.timestamp() * 1000), int(ends.timestamp() * 1000)
    events = -(-history.deliveries // 4)
    moment = f"({began_ms} + {{}} * {ends_ms - began_ms}::bigint / {events})"
    return {
        **vars(history),
        "events": events,
        "ends": f"'{(ends - timedelta(milliseconds=1)).isoformat()}'::timestamptz",
        "moment": moment.format("n"),
        "moment_of_event": moment.format("event"),
        "kinds": ", ".join(f"'{kind}'" for kind in history.kinds),
        "kind_count": len(history.kinds),
        "codes": ", ".join(f"'{code}'" for code, _, _ in CAUSES),
        "statuses": ", ".join(status for _, status, _ in CAUSES),
        "sentences": ", ".join(f"'{sentence}'" for _, _, sentence in CAUSES),
        "cause_count": len(CAUSES),
        "attempts": ATTEMPTS,
        "every": history.deliveries // max(1, history.failed),
        "secret": f"'\\x{history.sealed_secret.hex()}'::bytea",
        "contact": typeid("con", str(began_ms - 1000), f"{history.first} + contact"),
        "endpoint": typeid("whe", str(began_ms - 1000), f"{history.first} + endpoint"),
        "event": typeid("evt", "moment", f"{history.first} + event"),
        "delivery": typeid("dlv", "moment", f"{history.first} + n"),
        "job": typeid("job", "moment", f"{history.first} + event"),
        "trace": "md5(event::text)",
    }


def typeid(prefix: str, milliseconds: str, number: str) -> str:
    """SQL of an identifier made at that time."""
    digits = [f"substr('{_ALPHABET}', 1 + (({milliseconds} >> {shift}) & 31)::int, 1)" for shift in range(45, -1, -5)]
    return f"('{prefix}_' || {' || '.join(digits)} || lpad(({number})::text, 16, '0'))"


_CONTACTS = """
    INSERT INTO contacts (id, workspace_id, external_id, email, first_name, last_name, tags, created_at, updated_at)
    SELECT {contact}, '{workspace_id}', 'customer-' || contact, 'customer.' || contact || '@example.com',
        (ARRAY['Ada', 'Grace', 'Mary', 'Annie', 'Radia', 'Hedy', 'Karen'])[1 + contact % 7],
        (ARRAY['Moreau', 'Okafor', 'Silva', 'Tanaka', 'Novak'])[1 + contact / 7 % 5], '{{customer}}',
        now() - interval '30 days', now() - contact % 700 * interval '1 hour'
    FROM generate_series(0, {contacts} - 1) AS contact
"""
_ENDPOINTS = """
    INSERT INTO endpoints (id, workspace_id, address, events, description, state, stop_reason, stopped_at, secret,
        created_at)
    SELECT {endpoint}, '{workspace_id}', '{address}' || endpoint, ARRAY[{kinds}],
        CASE WHEN endpoint % 3 = 0 THEN 'Shop ' || endpoint END,
        CASE WHEN endpoint % 20 = 19 THEN 'stopped' ELSE 'active' END,
        CASE WHEN endpoint % 20 = 19 THEN 'The last 50 attempts failed.' END,
        CASE WHEN endpoint % 20 = 19 THEN now() - interval '1 hour' END, {secret}, now() - interval '30 days'
    FROM generate_series(0, {endpoints} - 1) AS endpoint
"""
_EVENTS = """
    INSERT INTO events (id, workspace_id, kind, contact_id, job_id, trace_id, body, created_at)
    SELECT {event}, '{workspace_id}', kind, {contact}, {job}, {trace},
        convert_to(json_build_object(
            'id', {event}, 'kind', kind, 'created_at', at, 'workspace_id', '{workspace_id}', 'data', json_build_object(
                'contact', json_build_object('id', {contact}, 'email', 'customer.' || contact || '@example.com')
            ))::text, 'UTF8'), at
    FROM (
        SELECT n AS event, {moment} AS moment, to_timestamp({moment} / 1000.0) AS at, n % {contacts} AS contact,
            (ARRAY[{kinds}])[1 + n % {kind_count}] AS kind
        FROM generate_series(0, {events} - 1) AS n) AS numbered
"""
# One in a hundred has failed.
_JOBS = """
    INSERT INTO jobs (id, workspace_id, kind, status, payload, effect, resource_type, resource_id, problem, trace_id,
        due_at, created_at, started_at, finished_at)
    SELECT {job}, '{workspace_id}', 'contacts.upsert', CASE WHEN has_failed THEN 'failed' ELSE 'succeeded' END,
        CASE WHEN has_failed THEN json_build_object('email', 'customer.' || contact || '@example.com') END,
        CASE WHEN NOT has_failed THEN 'changed' END, 'contact', {contact},
        CASE WHEN has_failed THEN '{{"type": "https://bellhop.test/problems/conflict", "title": "Conflict",
            "status": 409, "detail": "Another contact has this e-mail address."}}'::json END,
        {trace}, NULL, at, at + interval '5 ms', at + interval '30 ms'
    FROM (
        SELECT n AS event, {moment} AS moment, to_timestamp({moment} / 1000.0) AS at, n % {contacts} AS contact,
            n % 100 = 7 AS has_failed
        FROM generate_series(0, {events} - 1) AS n) AS numbered
"""
_NUMBERED = """
    (
        SELECT *, {moment_of_event} AS moment, to_timestamp({moment_of_event} / 1000.0) AS at,
            CASE WHEN has_failed THEN team % {endpoints} ELSE n % {endpoints} END AS endpoint,
            1 + (team % {endpoints} + 3 * (team / {endpoints})) % {cause_count} AS cause
        FROM (
            SELECT number AS n, number / 4 AS event, number / 4 % {contacts} AS contact,
                number % {every} = 0 AND number / {every} < {failed} AS has_failed, number / {every} % {groups} AS team
            FROM generate_series(0, {deliveries} - 1) AS number) AS counted) AS numbered
"""
_DELIVERIES = (
    """
    INSERT INTO deliveries (id, workspace_id, event_id, endpoint_id, kind, contact_id, status, attempts, tries,
        last_error, last_error_code, last_status, due_at, created_at, delivered_at)
    SELECT {delivery}, '{workspace_id}', {event}, {endpoint}, (ARRAY[{kinds}])[1 + event % {kind_count}], {contact},
        CASE WHEN has_failed THEN 'failed' ELSE 'delivered' END,
        CASE WHEN has_failed THEN {attempts} ELSE 1 END, CASE WHEN has_failed THEN {attempts} ELSE 1 END,
        CASE WHEN has_failed THEN (ARRAY[{sentences}])[cause] END,
        CASE WHEN has_failed THEN (ARRAY[{codes}])[cause] END,
        CASE WHEN has_failed THEN (ARRAY[{statuses}])[cause] ELSE 200 END, NULL, at,
        CASE WHEN NOT has_failed THEN at + interval '40 ms' END
    FROM """
    + _NUMBERED
)
_ATTEMPTS = (
    """
    INSERT INTO attempts (delivery_id, number, at, recorded_at, duration_ms, status, error, error_code, response_body)
    SELECT {delivery}, attempt, tried_at, tried_at,
        CASE WHEN has_failed AND (ARRAY[{codes}])[cause] = 'timeout' THEN 10000 ELSE 20 + n % 60 END,
        CASE WHEN has_failed THEN (ARRAY[{statuses}])[cause] ELSE 200 END,
        CASE WHEN has_failed THEN (ARRAY[{sentences}])[cause] END,
        CASE WHEN has_failed THEN (ARRAY[{codes}])[cause] END,
        CASE WHEN NOT has_failed THEN 'ok' WHEN (ARRAY[{statuses}])[cause] IS NOT NULL THEN 'Try again later.' END
    FROM """
    + _NUMBERED
    + """, generate_series(1, CASE WHEN has_failed THEN {attempts} ELSE 1 END) AS attempt,
        LATERAL (SELECT least(at + (ARRAY[0, 1, 6, 36, 156, 876])[attempt] * interval '1 minute', {ends}) AS tried_at
            ) AS times
    """
)
