"""The `read-receipts` queue: tells providers what members have read."""

from __future__ import annotations

from app.domain.conversations import read_receipts
from workers.mailboxes import serve_by
from workers.requester import Requester

serve_by(Requester(read_receipts))
