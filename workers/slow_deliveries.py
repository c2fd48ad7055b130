"""The `slow-deliveries` queue: the same for endpoints that were slow of late, in processes of their own."""

from __future__ import annotations

from app.domain import lanes
from workers.lane import serve

serve(lanes.SLOW)
