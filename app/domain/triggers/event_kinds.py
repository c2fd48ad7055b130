"""The kinds of events that concern runs, and the JSON Schemas of a trigger's `event` and `tag`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.lib import normalization

# Events that happen to a contact, and are not caused by Bellhop's own messages.
EVENTS = (
    *("contact.created", "contact.updated", "tag.added", "tag.removed"),
    *("sale.recorded", "booking.created", "booking.cancelled"),
    *("message.received", "conversation.opened", "conversation.closed", "conversation.assigned"),
    *("conversation.labelled", "conversation.snoozed", "conversation.woken"),
    *("automation.started", "automation.completed", "automation.failed", "automation.cancelled"),
)
TAG_EVENTS = ("tag.added", "tag.removed")

FIELDS: Mapping[str, Mapping[str, Any]] = {
    "event": {"type": "string", "enum": list(EVENTS), "description": "The kind of the event."},
    "tag": {
        "type": "string",
        "minLength": 1,
        "maxLength": 100,
        "pattern": f"^{normalization.TAG}$",
        "x-form": "a tag of 1 to 100 characters",
        "description": f"Only this tag. For {' and '.join(TAG_EVENTS)}.",
    },
}
