"""The `retries` process: makes retries due when their time has come. It has no queue of its own."""

from __future__ import annotations

import dramatiq

from app.domain import lanes
from workers.middleware.waking import Waking

dramatiq.get_broker().add_middleware(Waking(lanes.wake_retries))
