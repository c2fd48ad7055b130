"""The actors of mail queues: they empty the mailboxes that their bells name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dramatiq
import structlog

from app.database import DatabaseAway
from app.mailbox import Mail
from workers.dispatcher import Dispatcher
from workers.middleware import add
from workers.middleware.beside import Closing

log = structlog.get_logger(__name__)


def serve(mail: Mail, work: Callable[[str], None]) -> None:
    """Declares the mail's actor in this process. The actor calls `work` with each owner in turn.

    If `work` raises for one owner, the others are still served.
    """

    @dramatiq.actor(queue_name=mail.queue, actor_name=mail.queue)
    def empty(*owners: str) -> None:
        for owner in owners:
            _empty(mail, work, owner)


def serve_together(mail: Mail, work: Callable[..., None]) -> None:
    """Declares the actor of shared mail: it calls `work` with all owners of a message at once."""

    @dramatiq.actor(queue_name=mail.queue, actor_name=mail.queue)
    def empty(*owners: str) -> None:
        _empty(mail, work, *owners)


def serve_by(dispatcher: Dispatcher[Any, Any]) -> None:
    """Declares the actor of the dispatcher's mail. The process ends only after the dispatcher."""
    serve_together(dispatcher.mail, dispatcher.wake)
    add(Closing(dispatcher))


def _empty(mail: Mail, work: Callable[..., None], *owners: str) -> None:
    try:
        work(*owners)
    except DatabaseAway as error:  # the scheduler rings again
        log.warning("mailbox.interrupted", queue=mail.queue, owners=owners, error=str(error).strip())
    except Exception:
        log.exception("mailbox.broke", queue=mail.queue, owners=owners)
