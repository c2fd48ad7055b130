"""The `retries` process: makes retries, replays and channels' requests due at their time. It has no queue."""

from __future__ import annotations

import dramatiq

from app import mailbox
from app.domain.channels import channel_requests
from app.domain.deliveries import lanes, replays
from workers.middleware.waking import Waking


def wake() -> int:
    """Makes what has come to its time due, a batch of each kind at most; returns the size of the largest."""
    return max(
        lanes.wake_retries(),
        mailbox.wake_and_ring(replays.WAITING),
        mailbox.wake_and_ring(channel_requests.WAITING),
    )


dramatiq.get_broker().add_middleware(Waking(wake))
