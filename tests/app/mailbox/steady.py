"""Steady work on one mailbox, and the blocks that PostgreSQL reads for it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from app import mailbox
from app.database import Database, database, rows
from app.domain.channels import arrivals, outboxes
from app.domain.conversations import sendings
from app.domain.deliveries import fan_out, lanes
from app.domain.jobs import jobs
from app.domain.triggers import run_states
from app.lib import ids
from app.mailbox import Mail, serving

ROOM = 20
# The kinds of mail of which a mailbox may have much.
KINDS = (jobs.MAIL, run_states.MAIL, lanes.FAST, outboxes.MAIL, arrivals.MAIL, fan_out.MAIL)
# What a row has besides its identifier, its owner and the time since when it is due.
_FURTHER = {
    "jobs": {"kind": "'contacts.upsert'", "trace_id": "''"},
    "runs": {"automation_id": "'aut'", "version": "1", "contact_id": "'con'", "trace_id": "''"},
    "deliveries": {"workspace_id": "'ws'", "event_id": "'evt'", "kind": "'contact.created'"},
    "messages": {
        **{"workspace_id": "'ws'", "conversation_id": "md5(id)", "contact_id": "'con'", "direction": "'out'"},
        **{"status": "'queued'", "author": """'{"type": "api"}'"""},
    },
    "arrivals": {"workspace_id": "'ws'", "channel_id": "'ch'", "key": "id", "kind": "'received'", "trace_id": "''"},
    "events": {"kind": "'contact.created'", "trace_id": "''", "body": "''", "created_at": "now()"},
}
_FINISHED = {"jobs": ", finished_at = now()", "deliveries": ", status = 'delivered'", "messages": ", status = 'sent'"}


def open_mailbox(mail: Mail, workspace_id: str) -> str:
    """Makes an owner of such mail in the workspace; returns its identifier."""
    name = ids.new("box")
    if mail.table == "deliveries":
        columns = "endpoints (id, workspace_id, address, events, secret) VALUES (%s, %s, 'https://a/', '{*}', 'x')"
    elif mail.table == "messages":
        columns = "channels (id, workspace_id, kind, name) VALUES (%s, %s, 'web_chat', 'Box')"
    else:
        return workspace_id
    rows(f"INSERT INTO {columns}", (name, workspace_id))
    return name


def post(mail: Mail, owner: str, number: int) -> None:
    """Puts so many rows into the mailbox."""
    columns = {"id": "id", mail.owner: "%s", "due_at": "clock_timestamp()", **_FURTHER[mail.table]}
    rows(
        f"INSERT INTO {mail.table} ({', '.join(columns)})"
        f" SELECT {', '.join(columns.values())} FROM unnest(%s::text[]) AS id",
        (owner, [ids.new("xyz") for _ in range(number)]),
    )


def claim(mail: Mail, owner: str, room: int = ROOM) -> list[str]:
    """Looks and claims as a worker does."""
    if mail is outboxes.MAIL:
        found = sendings.claim({owner: room})
        return [each.claimed.id for each in found.dispatches] + [each.claimed.id for each in found.settled]
    batch = serving._take(mail, owner, room) if mail.exclusive else mailbox.claim(mail, {owner: room}, 60)
    return [each.id for each in batch]


def finish(mail: Mail, claimed: list[str]) -> None:
    """Records that the rows are done."""
    further = _FINISHED.get(mail.table, "")
    rows(f"UPDATE {mail.table} SET due_at = NULL, leased_until = NULL{further} WHERE id = ANY(%s)", (claimed,))


def take(mail: Mail, owner: str, room: int = ROOM) -> int:
    """Looks, claims and finishes as a worker does; returns the blocks read by the look and the claim."""
    before = _blocks()
    claimed = claim(mail, owner, room)
    read = _blocks() - before
    assert len(claimed) == room
    finish(mail, claimed)
    return read


def go_on(mail: Mail, owner: str, number: int) -> None:
    """Accepts and finishes so many rows."""
    for _ in range(number // 200):
        post(mail, owner, 200)
        take(mail, owner, 200)


def blocks_of_claims(mail: Mail, owner: str, claims: int = 10, pause_seconds: float = 0.0) -> float:
    """The blocks of tables and indexes that a look and a claim of ROOM rows read, on average of the last half."""
    read = []
    for _ in range(claims):
        post(mail, owner, ROOM)
        read.append(take(mail, owner))
        time.sleep(pause_seconds)
    last = read[claims // 2 :]
    return sum(last) / len(last)


def blocks_of_pass(mail: Mail) -> int:
    """The blocks that the scheduler's pass over overdue mail reads."""
    before = _blocks()
    mailbox.overdue(mail, 1, 1000)
    return _blocks() - before


@contextmanager
def snapshot_held() -> Iterator[None]:
    """Another connection has taken a snapshot, in a transaction that only reads."""
    other = Database(None)
    other.init(**{"database": database.database, **database.connect_params})
    other.execute_sql("SET idle_in_transaction_session_timeout = 0")
    other.execute_sql("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    other.execute_sql("SELECT 1 FROM pg_class LIMIT 1")
    try:
        yield
    finally:
        other.close()


def _blocks() -> int:
    rows("SELECT pg_stat_force_next_flush()")
    read = """
        SELECT sum(coalesce(heap_blks_hit, 0) + coalesce(heap_blks_read, 0) + coalesce(idx_blks_hit, 0)
            + coalesce(idx_blks_read, 0)) FROM pg_statio_user_tables
    """
    return int(rows(read)[0][0])
