"""All queues in one process, with the scheduler and live updates: `worker` in `Procfile.small`."""

from __future__ import annotations

from app.domain.deliveries import lanes
from app.live.__main__ import run as stream
from scheduler.__main__ import run as schedule
from workers import automations, deliveries, messages, retries, writes  # noqa: F401
from workers.delivery_sender import serve
from workers.middleware import add
from workers.middleware.beside import Beside

# Does not import `slow_deliveries`, because that module lowers the priority of its whole process.
serve(lanes.SLOW)
add(Beside("scheduler", schedule))
add(Beside("realtime", stream))
