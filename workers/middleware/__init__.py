"""What happens around the actors: one middleware a file."""

from __future__ import annotations

import dramatiq
from dramatiq import Middleware


def add(middleware: Middleware) -> None:
    """Adds it to the broker, which may have more of its type: `add_middleware` would warn of these."""
    dramatiq.get_broker().middleware.append(middleware)
