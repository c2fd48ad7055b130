"""The `retries` process: makes retries, replays and channels' requests due at their time. It has no queue."""

from __future__ import annotations

from functools import partial

import dramatiq

from app import mailbox
from app.domain.channels import channel_requests
from app.domain.deliveries import lanes, replays
from workers.middleware.waking import Waking

wake = partial(mailbox.wake_all, lanes.WAITING, replays.WAITING, channel_requests.WAITING)
dramatiq.get_broker().add_middleware(Waking(wake))
