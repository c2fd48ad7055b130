"""The `deliveries` queue: sends due deliveries of endpoints in the fast lane."""

from __future__ import annotations

from app.domain.deliveries import lanes
from workers.delivery_sender import serve

serve(lanes.FAST)
