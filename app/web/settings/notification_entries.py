"""Entries of lists of notifications.

An entry about a conversation shows the contact and the last message.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from app.domain.people import notifications
from app.models.conversations import Conversation
from app.models.notifications import Notification
from app.web.inbox import views
from app.web.inbox.views import Row

_SENTENCES = {
    "assigned": "The conversation with {} was assigned to you",
    "contact_wrote": "{} has written",
    "mentioned": "You were mentioned in a note on the conversation with {}",
    "woken": "The conversation with {} is awake",
    "new_conversation": "{} has written, and nobody has the conversation",
}


@dataclass(frozen=True, slots=True)
class Entry:
    """A notification. `row`: its conversation, if it still exists."""

    notification: Notification
    row: Row | None

    @property
    def path(self) -> str:
        """The path of the page about the notification's subject."""
        return notifications.path(self.notification)

    @property
    def plainly(self) -> str:
        """Says what happened, without names and texts."""
        one = self.notification
        return notifications.headline(one.kind, one.detail, one.amount)

    @property
    def around_name(self) -> list[str]:
        """The text before and after the contact's name."""
        return _SENTENCES[self.notification.kind].split("{}")

    @property
    def sentence(self) -> str:
        """Says what happened, with the contact's name."""
        return self.row.name.join(self.around_name) if self.row else self.plainly


def entries_of(found: Iterable[Notification]) -> list[Entry]:
    """Returns the notifications as entries, in their order, in four statements."""
    told = list(found)
    wanted = {each.conversation_id for each in told if each.conversation_id is not None}
    known = Conversation.select().where(Conversation.id.in_(wanted)) if wanted else ()
    rows = {row.conversation.id: row for row in views.rows_of(list(known))}
    return [Entry(each, rows.get(str(each.conversation_id))) for each in told]
