"""Positions in lists that are ordered by time and identifier: how addresses encode them."""

from __future__ import annotations

from datetime import datetime

LONGEST = 100


def written(at: datetime, row_id: str) -> str:
    """Writes the position of a row."""
    return f"{at.isoformat()}~{row_id}"


def read(text: str | None) -> tuple[datetime, str] | None:
    """Reads a position as (time, identifier); None for the beginning, or if it is invalid."""
    if not text or len(text) > LONGEST or not text.isprintable():
        return None
    time, _, row_id = text.partition("~")
    try:
        at = datetime.fromisoformat(time)
    except ValueError:
        return None
    return (at, row_id) if at.tzinfo and row_id else None
