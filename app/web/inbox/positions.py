"""Positions in lists that are ordered by a time and an identifier, as they stand in addresses."""

from __future__ import annotations

from datetime import datetime

LONGEST = 100


def written(at: datetime, row_id: str) -> str:
    """The position of a row."""
    return f"{at.isoformat()}~{row_id}"


def read(text: str | None) -> tuple[datetime, str] | None:
    """The time and the identifier of a position; None for what is none, which stands for the beginning."""
    if not text or len(text) > LONGEST or not text.isprintable():
        return None
    time, _, row_id = text.partition("~")
    try:
        at = datetime.fromisoformat(time)
    except ValueError:
        return None
    return (at, row_id) if at.tzinfo and row_id else None
