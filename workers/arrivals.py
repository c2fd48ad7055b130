"""The `arrivals` and `fetches` queues: process what comes in over channels, and fetch the files that it names."""

from __future__ import annotations

import dramatiq

from app import mailbox
from app.domain.channels import arrivals, fetches
from app.domain.receiving import arrival_processing
from workers.fetcher import Fetcher
from workers.mailboxes import serve_by, serve_together
from workers.middleware.waking import Waking


def wake() -> int:
    """Makes receipts and files whose time has come due, a batch of each at most; returns the size of the larger."""
    return max(mailbox.wake_and_ring(arrivals.WAITING), mailbox.wake_and_ring(fetches.WAITING))


serve_together(arrivals.MAIL, arrival_processing.work)
serve_by(Fetcher())
dramatiq.get_broker().add_middleware(Waking(wake))
