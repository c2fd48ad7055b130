"""Mailing: a thread that sends e-mail, so that a slow server delays no pass.

Every scheduler has such a thread, whether or not it leads.
"""

from __future__ import annotations

import threading

import structlog

from app.database import DatabaseAway, database
from app.domain.people import emails
from app.lib import vitals

log = structlog.get_logger(__name__)

EVERY_SECONDS = 2.0


def start(stopping: threading.Event) -> threading.Thread | None:
    """Starts a thread that sends due e-mail until `stopping` is set.

    Returns the thread, or None without SMTP_URL.
    """
    if not emails.can_be_sent():
        return None
    return vitals.start(_run, "mailing", stopping)


def _run(stopping: threading.Event) -> None:
    while not stopping.is_set():
        if not _send():
            stopping.wait(EVERY_SECONDS)
    database.close()


def _send() -> int:
    try:
        database.freshen()
        return emails.send_due()
    except DatabaseAway as error:
        log.warning("mailing.interrupted", error=str(error).strip())
    except Exception:
        log.exception("mailing.failed")
    return 0
