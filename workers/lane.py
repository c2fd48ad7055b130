"""Sets up the process of a lane: one sender, woken by the bells of the lane's queue."""

from __future__ import annotations

import gc

from app.mailbox import Mail
from workers.delivery_sender import DeliverySender
from workers.mailboxes import serve_by


def serve(lane: Mail) -> None:
    """Declares the lane's actor in this process."""
    serve_by(DeliverySender(lane))
    # Objects that exist now live as long as the process, and attempts create hardly any reference cycles. By default,
    # the collector would run five times a second and free nothing.
    gc.freeze()
    gc.set_threshold(10_000)
