"""The `retries` process: makes retries, and replays with a limit, due when their time has come. It has no queue."""

from __future__ import annotations

import dramatiq

from app import mailbox
from app.domain import lanes, replays
from workers.middleware.waking import Waking


def wake() -> int:
    """Makes retries and replays whose time has come due, a batch of each at most; returns the size of the larger."""
    return max(lanes.wake_retries(), mailbox.wake_and_ring(replays.WAITING))


dramatiq.get_broker().add_middleware(Waking(wake))
