"""The `replays` queue: sends chosen deliveries again."""

from __future__ import annotations

from app.domain.deliveries import replay_batches, replays
from workers.mailboxes import serve

serve(replays.MAIL, replay_batches.work)
