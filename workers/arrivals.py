"""The `arrivals` and `fetches` queues: process what comes in over channels, and fetch the files that it names."""

from __future__ import annotations

from functools import partial

import dramatiq

from app import mailbox
from app.domain.channels import arrivals, fetches
from app.domain.receiving import arrival_processing
from workers.fetcher import Fetcher
from workers.mailboxes import serve_by, serve_together
from workers.middleware.waking import Waking

serve_together(arrivals.MAIL, arrival_processing.work)
serve_by(Fetcher())
dramatiq.get_broker().add_middleware(Waking(partial(mailbox.wake_all, arrivals.WAITING, fetches.WAITING)))
