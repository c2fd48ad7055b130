"""Fillings: many rows in the tables that grow, as the baseline makes them."""

from __future__ import annotations

from datetime import UTC, datetime

from app.database import rows, transaction
from app.lib import ids

# Rows of a table, where these are not as many as asked for.
SHARES = {"contacts": 0.25, "events": 0.5} | dict.fromkeys(("conversations", "messages", "runs", "notifications"), 0.2)


def fill(table: str, number: int) -> None:
    """Fills a table of STATEMENTS with that many rows."""
    with transaction():
        rows("SET LOCAL statement_timeout = 0")
        rows("SET LOCAL session_replication_role = replica")  # without triggers
        rows(STATEMENTS[table], {"rows": number})
    rows("SET statement_timeout = 0")
    rows(f"VACUUM ANALYZE {table}")


def _ids(prefix: str) -> str:
    """The SQL of the identifiers of a filling, which are of the present partition."""
    return f"'{ids.bound(prefix, datetime.now(UTC))[:14]}' || lpad(number::text, 16, '0')"


FROM = "FROM generate_series(1, %(rows)s) AS number"
# By table. `number` is a row's, `id` the beginning of its identifier.
STATEMENTS = {
    "contacts": f"""
        INSERT INTO contacts (id, workspace_id, external_id, email, first_name, last_name, tags)
        SELECT {_ids("con")}, 'ws_' || number %% 50, 'c' || number, 'ada' || number || '@example.com', 'Ada',
            'Lovelace ' || number %% 997, ARRAY['vip', 'Tag ' || number %% 31] {FROM}""",
    "jobs": f"""
        INSERT INTO jobs (id, workspace_id, token_id, kind, status, resource_id, trace_id, due_at, finished_at)
        SELECT {_ids("job")}, 'ws_' || number %% 50, 'tok_1', 'contacts.upsert',
            CASE WHEN number %% 100 = 0 THEN 'failed' ELSE 'succeeded' END, {_ids("con")}, 'trace' || number,
            NULL, now() {FROM}""",
    "events": f"""
        INSERT INTO events (id, workspace_id, kind, contact_id, job_id, trace_id, body, created_at)
        SELECT {_ids("evt")}, 'ws_' || number %% 50, 'contact.updated', {_ids("con")}, {_ids("job")},
            'trace' || number, convert_to(repeat('x', 200), 'UTF8'), now() {FROM}""",
    "deliveries": f"""
        INSERT INTO deliveries (id, workspace_id, event_id, endpoint_id, kind, contact_id, status, attempts, tries,
            last_error, due_at, delivered_at)
        SELECT {_ids("dlv")}, 'ws_' || number %% 50, {_ids("evt")}, 'whe_' || number %% 200, 'contact.updated',
            {_ids("con")}, state, 1, 1, CASE WHEN state <> 'delivered' THEN 'status 500' END,
            CASE WHEN state = 'pending' THEN now() + interval '1 hour' END, now()
        FROM (SELECT number, CASE WHEN number %% 20 = 0 THEN 'failed' WHEN number %% 50 = 1 THEN 'pending'
            ELSE 'delivered' END AS state {FROM}) AS made""",
    "attempts": f"""
        INSERT INTO attempts (delivery_id, number, at, duration_ms, status, error)
        SELECT {_ids("dlv")}, 1, now(), 20, CASE WHEN is_bad THEN 500 ELSE 200 END,
            CASE WHEN is_bad THEN 'status 500' END
        FROM (SELECT number, number %% 20 = 0 OR number %% 50 = 1 AS is_bad {FROM}) AS made""",
    "conversations": f"""
        INSERT INTO conversations (id, workspace_id, contact_id, channel_id, status, peer)
        SELECT {_ids("cnv")}, 'ws_' || number %% 50, {_ids("con")}, 'chn_' || number %% 50,
            CASE WHEN number %% 3 = 0 THEN 'open' ELSE 'closed' END, 'peer' || number {FROM}""",
    "messages": f"""
        INSERT INTO messages (id, workspace_id, conversation_id, contact_id, channel_id, direction, text, status,
            author)
        SELECT {_ids("msg")}, 'ws_' || number %% 50, {_ids("cnv")}, {_ids("con")}, 'chn_' || number %% 50, 'in',
            'Where is my parcel number ' || number || '?', 'received', '{{"type": "contact"}}' {FROM}""",
    "runs": f"""
        INSERT INTO runs (id, workspace_id, automation_id, version, contact_id, status, step, waits_for, trace_id,
            resume_at, due_at)
        SELECT {_ids("run")}, 'ws_' || number %% 50, 'aut_' || number %% 50, 1, {_ids("con")}, 'waiting', 'pause',
            'time', 'trace', now() + interval '30 days', NULL {FROM}""",
    "notifications": f"""
        INSERT INTO notifications (id, workspace_id, kind, once, detail)
        SELECT {_ids("ntf")}, 'ws_' || number %% 50, 'import_ended', number::text, '{{}}' {FROM}""",
}
