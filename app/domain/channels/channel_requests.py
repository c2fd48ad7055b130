"""Channel requests: what providers are to be asked about channels, as mail of their workspace."""

from __future__ import annotations

from functools import partial
from typing import Literal, NamedTuple

from app import mailbox
from app.database import database, rows
from app.mailbox import Mail, Waiting

Action = Literal["connect", "disconnect"]


class Carried(NamedTuple):
    """What a claimed request brings along. `revision`: grows when something else is asked; `tries`: made before."""

    action: Action
    revision: int
    tries: int


MAIL = Mail(table="channel_requests", owner="workspace_id", queue="channel-requests", carries=Carried)
WAITING = Waiting(MAIL, "next_attempt_at")


def ask(workspace_id: str, channel_id: str, action: Action) -> None:
    """Has the provider asked soon after the present transaction; replaces what it was to be asked about the channel.

    The lease of an attempt under way stays, so that no provider gets two requests about a channel at once.
    """
    rows(
        """
        INSERT INTO channel_requests AS request (id, workspace_id, action, due_at) VALUES (%s, %s, %s, now())
        ON CONFLICT (id) DO UPDATE
        SET action = excluded.action, revision = request.revision + 1, tries = 0, due_at = now(), next_attempt_at = NULL
        """,
        (channel_id, workspace_id, action),
    )
    database.after_commit(partial(mailbox.ring, MAIL, workspace_id))
