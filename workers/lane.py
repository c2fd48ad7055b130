"""Sets up the process of a lane: one sender, woken by the bells of the lane's queue."""

from __future__ import annotations

import gc

from app.mailbox import Mail
from workers.mailboxes import serve_by
from workers.sender import Sender


def serve(lane: Mail) -> None:
    """Declares the lane's actor in this process."""
    serve_by(Sender(lane))
    # Everything that exists now stays, and attempts leave hardly any cycles. By default, the collector would run five
    # times a second for nothing.
    gc.freeze()
    gc.set_threshold(10_000)
