"""Waiting for what will happen, with a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable


def wait_until(condition: Callable[[], object], seconds: float, what: str = "") -> float:
    """Returns after how many seconds the condition became true. Raises AssertionError if it did not in time."""
    began = time.monotonic()
    while not condition():
        if time.monotonic() - began > seconds:
            raise AssertionError(f"In {seconds} seconds this did not happen: {what or condition}")
        time.sleep(0.01)
    return time.monotonic() - began
