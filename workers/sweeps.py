"""The `sweeps` queue: holds, releases, cancels and resends the deliveries of an endpoint."""

from __future__ import annotations

from app.domain.deliveries import sweep_batches, sweeps
from workers.mailboxes import serve

serve(sweeps.MAIL, sweep_batches.work)
