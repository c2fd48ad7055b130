"""The kinds of events that concern runs, and the JSON Schemas of a trigger's `event` and `tag`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.lib import normalization

# Events that happen to a contact, and are not caused by Bellhop's own messages, in plain words.
EVENTS: Mapping[str, str] = {
    "contact.created": "A contact is created",
    "contact.updated": "A contact changes",
    "tag.added": "The contact gets a tag",
    "tag.removed": "The contact loses a tag",
    "sale.recorded": "A sale is recorded",
    "booking.created": "A booking is made",
    "booking.cancelled": "A booking is cancelled",
    "message.received": "The contact writes",
    "conversation.opened": "A conversation is opened",
    "conversation.closed": "A conversation is closed",
    "conversation.assigned": "A conversation is assigned",
    "conversation.labelled": "A conversation gets or loses a label",
    "conversation.snoozed": "A conversation is snoozed",
    "conversation.woken": "A conversation wakes",
    "automation.started": "A run of an automation starts",
    "automation.completed": "A run of an automation is completed",
    "automation.failed": "A run of an automation fails",
    "automation.cancelled": "A run of an automation is cancelled",
}
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
