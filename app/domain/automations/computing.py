"""Computing in requests: one thread of a `web` process at a time computes for long, as each delays all the others."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from app import bounds
from app.errors import TooMuchComputing

_LOCK = threading.Lock()


@contextmanager
def alone(workspace_id: str) -> Iterator[None]:
    """Runs the block while no other one runs here. Raises TooMuchComputing if too many wait for that."""
    with bounds.waiting(workspace_id) as has_place:
        if not has_place:
            raise TooMuchComputing()
        with _LOCK:
            yield
