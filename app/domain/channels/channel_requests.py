"""Channel requests: ask providers to connect or disconnect channels; mail of the workspace."""

from __future__ import annotations

from functools import partial
from typing import Literal, NamedTuple

from app import mailbox
from app.database import database, rows
from app.mailbox import Mail, Waiting

Action = Literal["connect", "disconnect"]


class Carried(NamedTuple):
    """Columns loaded with a claim. `revision` counts replacements. `tries`: the attempts so far."""

    action: Action
    revision: int
    tries: int


MAIL = Mail(table="channel_requests", owner="workspace_id", queue="channel-requests", carries=Carried)
WAITING = Waiting(MAIL, "next_attempt_at")


def ask(workspace_id: str, channel_id: str, action: Action) -> None:
    """Queues a request about the channel, and replaces any earlier one. Rings after the commit.

    The lease of an attempt in progress stays, so that no provider gets two requests about a channel at once.
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
