"""Awaited files: files that runs wait for, to send them with a message."""

from __future__ import annotations

from collections.abc import Iterable

from app.database import count


def hurry(run_ids: Iterable[str | None]) -> None:
    """Makes the waiting runs check their files now, not only when their wait ends."""
    if wanted := [run_id for run_id in run_ids if run_id is not None]:
        is_early = "id = ANY(%s) AND waits_for = 'file' AND resume_at > now()"
        count(f"UPDATE runs SET resume_at = now() WHERE {is_early}", (wanted,))
