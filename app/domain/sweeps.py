"""Sweeps: long changes over the deliveries of an endpoint, in small transactions, exact and resumable."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial

from app import mailbox
from app.database import count, database
from app.lib import ids
from app.mailbox import Mail

MAIL = Mail(table="sweeps", owner="endpoint_id", queue="sweeps", order="id", in_order=True)


def begin(
    workspace_id: str,
    endpoint_id: str,
    action: str,
    statuses: Sequence[str],
    trace_id: str,
    *,
    kinds: Sequence[str] | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    job_id: str | None = None,
) -> str:
    """Writes down, in the present transaction, what is to be done; a worker does it when that commits. Its identifier.

    It is about the deliveries that were made before it.
    """
    sweep_id = ids.new("swp")
    count(
        """
        INSERT INTO sweeps (id, workspace_id, endpoint_id, action, statuses, kinds, since, until, job_id, trace_id)
        VALUES (%s, %s, %s, %s, %s::text[], %s::text[], %s, %s, %s, %s)
        """,
        (sweep_id, workspace_id, endpoint_id, action, list(statuses), kinds, since, until, job_id, trace_id),
    )
    database.after_commit(partial(mailbox.ring, MAIL, endpoint_id))
    return sweep_id
