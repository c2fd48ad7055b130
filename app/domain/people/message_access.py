"""Message access: who may read the texts of messages.

The API, pages, live updates and web chats all use this module. Texts occur in messages and in other documents:
the bodies of events, runs that keep a reply, and exports.
"""

from __future__ import annotations

from app.domain.people import roles
from app.errors import InsufficientScope
from app.models.conversations import Message

# For API tokens: the restriction that a token needs to read texts in messages, events, runs and exports. Endpoints
# receive events, so managing them needs EVENTS.
MESSAGES = "inbox"
EVENTS = "webhooks"
RUNS = "automations"
EXPORTS = "contacts"

# For members and support staff: the action for pages and live updates with texts, and the action for an export.
SEE = "messages.see"
EXPORT = "contacts.export"

# For visitors of a web chat, in their own conversations: the messages that they wrote or that were sent to them.
_SENT = ("sent", "delivered", "read")
SHOWN_TO_VISITOR = f"(direction = 'in' OR status IN {_SENT})"


def check_member(role: str) -> None:
    """Raises InsufficientScope unless members with this role may read messages."""
    if not roles.may(role, SEE):
        raise InsufficientScope("Your role in this workspace does not include reading messages.")


def is_shown_to_visitor(message: Message) -> bool:
    """Returns whether a visitor may read this message of theirs, like SHOWN_TO_VISITOR in SQL."""
    return message.direction == "in" or message.status in _SENT
