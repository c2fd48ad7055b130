"""Waiting for a condition, with a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable


def wait_until(condition: Callable[[], object], seconds: float, what: str = "") -> float:
    """Waits until the condition is true; returns the seconds it took. Raises AssertionError if it takes too long."""
    began = time.monotonic()
    while not condition():
        if time.monotonic() - began > seconds:
            raise AssertionError(f"In {seconds} seconds this did not happen: {what or condition}")
        time.sleep(0.01)
    return time.monotonic() - began
