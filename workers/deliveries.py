"""The `deliveries` queue: sends due deliveries of endpoints in the fast lane."""

from __future__ import annotations

from app.domain.deliveries import lanes
from workers.lane import serve

serve(lanes.FAST)
