"""The `read-receipts` queue: tells providers what members have read."""

from __future__ import annotations

import dramatiq

from app.domain.conversations import read_receipts
from workers.mailboxes import serve_together
from workers.middleware.closing import Closing
from workers.read_receipt_sender import Reader

reader = Reader()
serve_together(read_receipts.MAIL, reader.wake)
dramatiq.get_broker().add_middleware(Closing(reader.stop))
