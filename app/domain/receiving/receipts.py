"""Receipts: a provider's reports on messages that were sent."""

from __future__ import annotations

from datetime import timedelta

from app.channels.inbound import Receipt
from app.domain.channels import provider_messages
from app.domain.contacts import contacts
from app.domain.conversations import message_statuses, messages
from app.domain.work.changes import Change
from app.errors import NotFound
from app.models.channels import Channel
from app.models.conversations import Message

# How long a receipt waits for its message.
KEPT = timedelta(days=1)


def apply(change: Change, channel: Channel, receipt: Receipt) -> bool:
    """Raises the message's status to the receipt's, also from `unknown`, and records the event.

    Opts the contact out if the receipt says so. Does nothing if the contact was deleted. Returns False if
    the message is not known yet. Raises Busy.
    """
    unit = change.unit
    message = provider_messages.find(unit, channel, receipt.provider_id, receipt.message_id)
    if message is None:
        return False
    try:
        contact, conversation = provider_messages.contact_and_conversation(unit, message)
    except NotFound:
        return True
    if receipt.is_opt_out:
        contact = contacts.set_fields(change, contact, opted_out=True)
    if message_statuses.may_rise(message, receipt.status):
        raised = unit.put(_raised(message, receipt))
        messages.tell(change.events, contact, conversation, raised)
    return True


def _raised(message: Message, receipt: Receipt) -> Message:
    failure = None
    if receipt.status == "failed":
        failure = {"code": receipt.code or "provider", "detail": receipt.detail}
    provider_id = message.provider_id or receipt.provider_id
    return message.altered(status=receipt.status, failure=failure, provider_id=provider_id)
