"""Message access: who may read what messages say. The API, pages, live updates and web chats decide by this module.

Texts are read as messages, and as a part of other documents: the bodies of events, runs that keep a reply, exports.
"""

from __future__ import annotations

from app.domain.people import roles
from app.errors import InsufficientScope
from app.models.conversations import Message

# Tokens of the API: the restriction that includes a document. An endpoint, which gets events, needs that of events.
MESSAGES = "inbox"
EVENTS = "webhooks"
RUNS = "automations"
EXPORTS = "contacts"

# Members and support staff: the action of all pages that show texts, and of live updates; and that of an export.
SEE = "messages.see"
EXPORT = "contacts.export"

# Visitors of a web chat: in conversations of their own, what they wrote and what was sent to them.
_SENT = ("sent", "delivered", "read")
SHOWN_TO_VISITOR = f"(direction = 'in' OR status IN {_SENT})"


def check_member(role: str) -> None:
    """Raises InsufficientScope unless members with this role may read messages."""
    if not roles.may(role, SEE):
        raise InsufficientScope("Your role in this workspace does not include reading messages.")


def is_shown_to_visitor(message: Message) -> bool:
    """Whether a visitor may read this message of their own conversation: SHOWN_TO_VISITOR, for a row that was read."""
    return message.direction == "in" or message.status in _SENT
