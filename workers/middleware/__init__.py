"""Dramatiq middleware: what a worker does besides running actors, from its start to its end."""

from __future__ import annotations

import dramatiq
from dramatiq import Middleware


def add(middleware: Middleware) -> None:
    """Adds the middleware. Unlike `add_middleware`, does not warn of another one of its type."""
    dramatiq.get_broker().middleware.append(middleware)
