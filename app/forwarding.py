"""Counts the proxies that requests passed (`X-Forwarded-For`), to check TRUSTED_PROXIES."""

from __future__ import annotations

from app import process_registry

# The process reports the median of this many requests, because anybody can send some with a false header.
LOOKED_AT = 20

_numbers: list[int] = []


def note(forwarded_for: str) -> None:
    """Counts the proxies in a request's header. Announces the median of every LOOKED_AT requests."""
    _numbers.append(forwarded_for.count(",") + 1 if forwarded_for else 0)
    if len(_numbers) < LOOKED_AT:
        return
    seen = sorted(_numbers)
    _numbers.clear()
    if seen:  # another thread may have reported and cleared the numbers first
        process_registry.tell("forwarded", seen[len(seen) // 2])
