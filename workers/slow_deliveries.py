"""The `slow-deliveries` process: sends to endpoints that are slow or have a backlog."""

from __future__ import annotations

import os

from app.domain.deliveries import lanes
from workers.delivery_sender import serve

# While processors are scarce, mail that is late already must not delay the rest. Threads started later inherit this.
os.setpriority(os.PRIO_PROCESS, 0, 10)

serve(lanes.SLOW)
