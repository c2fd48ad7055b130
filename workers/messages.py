"""The `messages` queue: sends the outbound messages of channels."""

from __future__ import annotations

import dramatiq

from app.domain.channels import outboxes
from workers.courier import Courier
from workers.mailboxes import serve_together
from workers.middleware.closing import Closing

courier = Courier()
serve_together(outboxes.MAIL, courier.wake)
dramatiq.get_broker().add_middleware(Closing(courier.stop))
