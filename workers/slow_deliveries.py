"""The `slow-deliveries` queue: sends to endpoints that are slow or have a backlog, in processes of their own."""

from __future__ import annotations

import os

from app.domain.deliveries import lanes
from workers.lane import serve

# Mail that is late already must not delay the rest while processors are scarce. Threads started later inherit this.
os.setpriority(os.PRIO_PROCESS, 0, 10)

serve(lanes.SLOW)
