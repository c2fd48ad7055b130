"""Rounds: ring for owners whose mail is overdue, a capped batch at a time, so that an outage ends without a flood."""

from __future__ import annotations

from app import mailbox
from app.mailbox import Mail

MOST_RUNG = 500


class Round:
    """Goes through the owners in turn; where more are overdue than it may ring for, the next one goes on from there."""

    def __init__(self, mail: Mail, overdue_seconds: float) -> None:
        self._mail = mail
        self._overdue_seconds = overdue_seconds
        self._after = ""

    def __call__(self) -> int:
        """Rings, and returns for how many. A bell that is ringing already is not rung again."""
        owners = mailbox.overdue(self._mail, self._overdue_seconds, MOST_RUNG, self._after)
        for owner in owners:
            mailbox.ring(self._mail, owner)
        self._after = owners[-1] if len(owners) == MOST_RUNG else ""
        return len(owners)
