"""Deaths: marks a row while it is worked on alone. A worker that dies leaves the mark."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import structlog

from app.database import DatabaseAway, count, rows
from app.mailbox.claims import LEASE_SECONDS
from app.mailbox.mail import Claimed, Mail

log = structlog.get_logger(__name__)

# How long a worker tries to remove its mark while the database is away, and the pause between two tries.
PATIENCE_SECONDS, PAUSE_SECONDS = 30.0, 0.5


@contextmanager
def in_progress(mail: Mail, claimed: Claimed, batch: Sequence[Claimed]) -> Iterator[None]:
    """Adds one to the row's `deaths` while the block runs. First renews the leases of its batch.

    The mark stays only if the process dies, or the database is away for PATIENCE_SECONDS after the block. An error, a
    lost connection or an expired lease does not leave it.
    """
    ids = [row.id for row in batch]
    held = rows(
        f"""
        UPDATE {mail.table} mail
        SET deaths = mail.deaths + CASE mail.id WHEN %s THEN 1 ELSE 0 END,
            leased_until = now() + %s * interval '1 second'
        FROM unnest(%s::text[], %s::int[]) AS held(id, claim)
        WHERE mail.id = held.id AND mail.claim = held.claim AND mail.due_at IS NOT NULL AND mail.id = ANY(%s)
        RETURNING mail.id
        """,
        (claimed.id, LEASE_SECONDS, ids, [row.claim for row in batch], ids),
    )
    try:
        yield
    finally:
        if (claimed.id,) in held:
            _take_back(mail, claimed)


def _take_back(mail: Mail, claimed: Claimed) -> None:
    ends = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            count(f"UPDATE {mail.table} SET deaths = deaths - 1 WHERE id = %s AND deaths > 0", (claimed.id,))
        except DatabaseAway as error:
            if time.monotonic() > ends:
                log.warning("mailbox.mark_left", table=mail.table, id=claimed.id, error=str(error).strip())
                return
            time.sleep(PAUSE_SECONDS)
        else:
            return
