"""Mailboxes for tests, of every kind of mail."""

from __future__ import annotations

from app.database import rows
from app.domain.deliveries import lanes
from app.domain.jobs import jobs
from app.domain.triggers import run_states
from app.lib import ids
from app.mailbox import Mail

IN_ORDER, SHARED = jobs.MAIL, lanes.FAST
RUNS = run_states.MAIL


def post(mail: Mail, owner: str, count: int = 1, due_in: float = -1) -> list[str]:
    """Puts mail into the owner's mailbox, in order, each a little later due than the one before."""
    identifiers = [ids.new("xyz") for _ in range(count)]
    columns = {
        "jobs": "workspace_id, kind, trace_id",
        "deliveries": "endpoint_id, workspace_id, event_id, kind",
        "runs": "workspace_id, automation_id, version, contact_id, trace_id",
    }
    values = {
        "jobs": "%s, 'contacts.upsert', 'trace'",
        "deliveries": "%s, 'ws', 'evt', 'contact.created'",
        "runs": "%s, 'aut', 1, 'con', 'trace'",
    }
    for number, identifier in enumerate(identifiers):
        rows(
            f"INSERT INTO {mail.table} (id, due_at, {columns[mail.table]})"
            f" VALUES (%s, now() + %s * interval '1 second', {values[mail.table]})",
            (identifier, due_in + number * 0.001, owner),
        )
    return identifiers


def open_mailbox(name: str) -> str:
    rows("INSERT INTO workspaces (id, name) VALUES (%s, 'Box')", (name,))
    rows(
        "INSERT INTO endpoints (id, workspace_id, address, events, secret) VALUES (%s, %s, 'https://a/', '{*}', 'x')",
        (name, name),
    )
    return name


def end_leases(mail: Mail, seconds_ago: float = 1) -> None:
    rows(
        f"UPDATE {mail.table} SET leased_until = now() - %s * interval '1 second' WHERE leased_until > now()",
        (seconds_ago,),
    )
