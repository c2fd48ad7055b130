"""The `messages` process: sends messages over channels, and processes arrivals.

It also wakes fetches when their retry is due, and receipts that came before the messages they are about.

Its queues are `messages`, `read-receipts` (tell providers which messages members have read), `arrivals`, and `fetches`
(download files of arrivals and for runs).
"""

from __future__ import annotations

from app.domain.channels import arrivals, fetches
from app.domain.conversations import read_receipts
from app.domain.receiving import arrival_processing
from workers.file_fetcher import FileFetcher
from workers.mailboxes import serve_by, serve_together
from workers.message_sender import MessageSender
from workers.middleware import add
from workers.middleware.waking import Waking
from workers.request_sender import RequestSender

serve_by(MessageSender())
serve_by(RequestSender(read_receipts))
serve_by(FileFetcher(fetches))
serve_together(arrivals.MAIL, arrival_processing.work)
add(Waking(arrivals.WAITING, fetches.WAITING))
