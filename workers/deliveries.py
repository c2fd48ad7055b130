"""The `deliveries` queue: sends what is due to an endpoint."""

from __future__ import annotations

from app.domain.deliveries import lanes
from workers.lane import serve

serve(lanes.FAST)
