"""Readiness: whether PostgreSQL and MEDIA_DIR accept writes."""

from __future__ import annotations

import time

import structlog

from app import database
from app.database import DatabaseAway, room
from app.domain.channels import media
from app.errors import first_line

log = structlog.get_logger(__name__)

# Anybody may ask, and each check writes 1 MiB, so its result is reused for this long.
KNOWN_FOR_SECONDS = 2.0

_seen: tuple[float, list[str]] = (-KNOWN_FOR_SECONDS, [])


def refusals() -> list[str]:
    """Returns a sentence for each store that refuses writes; reuses a result for KNOWN_FOR_SECONDS."""
    global _seen
    at, sentences = _seen
    if time.monotonic() - at > KNOWN_FOR_SECONDS:
        sentences = [sentence for sentence in (_of_database(), _of_files()) if sentence]
        _seen = (time.monotonic(), sentences)
    return sentences


def _of_database() -> str | None:
    try:
        room.check()
    except DatabaseAway as error:
        log.warning("ready.database_refuses", error=first_line(error))
        return "PostgreSQL's disk is full." if database.is_full(error) else "PostgreSQL takes no writes."
    return None


def _of_files() -> str | None:
    try:
        media.try_writing()
    except OSError as error:
        log.warning("ready.files_refused", error=str(error))
        cause = error.__cause__
        return f"No file can be written under MEDIA_DIR: {getattr(cause, 'strerror', None) or 'no answer'}."
    return None
