"""Leadership: a lease in PostgreSQL, on its clock. Its epoch grows when the leader changes.

The lease only saves work: every pass is harmless if two schedulers run it at once.
"""

from __future__ import annotations

import os
import socket
import time
import uuid

import structlog

from app import sql
from app.database import DatabaseAway, database, rows

log = structlog.get_logger(__name__)

LEASE_SECONDS = 5.0
_NAME = "scheduler"


class Leadership:
    """This process's claim to lead. If it dies, another process takes over within LEASE_SECONDS."""

    def __init__(self) -> None:
        self._holder = f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"
        self._epoch: int | None = None
        self._asked = -LEASE_SECONDS  # when the lease was last requested, on the monotonic clock

    def is_held(self) -> bool:
        """Returns whether this process leads. Takes or renews the lease three times per LEASE_SECONDS.

        Returns False if another process leads, or the database is away.
        """
        if time.monotonic() - self._asked < LEASE_SECONDS / 3:
            return self._epoch is not None
        self._asked = time.monotonic()
        try:
            database.freshen()
            held = rows(sql.load("take_lease"), {"name": _NAME, "holder": self._holder, "seconds": LEASE_SECONDS})
        except DatabaseAway as error:
            log.warning("scheduler.waits_for_database", error=str(error).strip())
            self._epoch = None
            return False
        epoch = held[0][0] if held else None
        if epoch != self._epoch:
            log.info("scheduler.leads" if held else "scheduler.stands_by", epoch=epoch)
        self._epoch = epoch
        return bool(held)

    def give_up(self) -> None:
        """Ends the lease, so that another process can lead at once."""
        try:
            rows("UPDATE leases SET expires_at = now() WHERE name = %s AND holder = %s", (_NAME, self._holder))
        except DatabaseAway as error:
            log.warning("scheduler.lease_not_given_up", error=str(error).strip())
