"""The `messages` process: sends channels' outbound messages, and processes what comes in.

Its queues are `messages`, `read-receipts` (tell providers what members have read), `arrivals`, and `fetches` (files
that arrivals name).
"""

from __future__ import annotations

from functools import partial

from app import mailbox
from app.domain.channels import arrivals, fetches
from app.domain.conversations import read_receipts
from app.domain.receiving import arrival_processing
from workers.courier import Courier
from workers.fetcher import Fetcher
from workers.mailboxes import serve_by, serve_together
from workers.middleware import add
from workers.middleware.waking import Waking
from workers.requester import Requester

serve_by(Courier())
serve_by(Requester(read_receipts))
serve_by(Fetcher(fetches))
serve_together(arrivals.MAIL, arrival_processing.work)
add(Waking(partial(mailbox.wake_all, arrivals.WAITING, fetches.WAITING)))
