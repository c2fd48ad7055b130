"""The `arrivals` queue: processes what has come in over channels, and wakes receipts that look for their message."""

from __future__ import annotations

from functools import partial

import dramatiq

from app import mailbox
from app.domain import arrivals, receptions
from workers.mailboxes import serve_together
from workers.middleware.waking import Waking

serve_together(arrivals.MAIL, receptions.work)
dramatiq.get_broker().add_middleware(Waking(partial(mailbox.wake_and_ring, arrivals.WAITING)))
