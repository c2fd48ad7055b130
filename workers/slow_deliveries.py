"""The `slow-deliveries` queue: the same for endpoints that are slow or have a backlog, in processes of their own."""

from __future__ import annotations

import os

from app.domain import lanes
from workers.lane import serve

# What is late already lets what is not go first where processors are scarce. For the threads that are yet to begin.
os.setpriority(os.PRIO_PROCESS, 0, 10)

serve(lanes.SLOW)
