"""Who leads: a lease in Postgres, by its clock, with an epoch that grows with every change of leader.

The lease only saves work. Every pass is harmless if two schedulers run it at once.
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
    """This process's claim to lead; others take over within LEASE_SECONDS of its death."""

    def __init__(self) -> None:
        self._holder = f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"
        self._epoch: int | None = None
        self._asked = -LEASE_SECONDS  # when the lease was last asked for, on the monotonic clock

    def is_held(self) -> bool:
        """Takes or renews the lease, three times in its length. False where another leads, or the database is away."""
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
        """Lets another lead at once."""
        try:
            rows("UPDATE leases SET expires_at = now() WHERE name = %s AND holder = %s", (_NAME, self._holder))
        except DatabaseAway as error:
            log.warning("scheduler.lease_not_given_up", error=str(error).strip())
