"""`send_message`: queues a message in the run's conversation, which it opens if the contact has none."""

from __future__ import annotations

from typing import Any

from app.domain.automations.steps import templated_values
from app.domain.automations.steps.base import Done, Kind, Moment, Outcome, StepFailed, Wait
from app.domain.channels import channels
from app.domain.conversations import conversations, messages, quiet_hours
from app.errors import Invalid
from app.lib.json import timestamp
from app.models.conversations import Conversation

# Identical texts that a contact can get in five minutes.
MOST_IDENTICAL = 20
MOST_TEMPLATE_BYTES = 16 * 1024


def begin(moment: Moment) -> Outcome:
    """Queues the message, unless the contact has opted out, or the run has to wait for a member or a later hour."""
    if moment.contact.opted_out:
        raise StepFailed("opted_out", "The contact has opted out of messages.")
    if moment.is_simulated:
        text = _text(moment)
        return Done("The message would be sent.", input={"text": text})
    conversation = conversations.of_run(moment.unit, moment.run)
    if conversation is not None and conversation.held_at is not None and not moment.run.is_released:
        held = "A member has written in the conversation. The run goes on when it is closed or the run is resumed."
        return Wait("member", held, run_fields={"conversation_id": conversation.id})
    if (ends := _quiet_until(moment)) is not None:
        return Wait("quiet_hours", f"The message waits for the end of quiet hours at {timestamp(ends)}.", until=ends)
    return _send(moment, conversation or _opened(moment))


def _quiet_until(moment: Moment) -> Any:
    if moment.step.fields.get("quiet_hours") == "ignore":
        return None
    return quiet_hours.end_for(moment.unit, moment.contact)


def _opened(moment: Moment) -> Conversation:
    channel_id = conversations.channel_for(moment.unit, moment.contact)
    if channel_id is None:
        raise StepFailed("no_channel", "There is no connected channel on which to reach the contact.")
    opened = conversations.open_on(moment.change({}), moment.contact, channel_id)
    kind, phone = channels.kind_of(channels.seen_by(moment.unit, channel_id)), moment.contact.phone
    if kind.may_open and phone is not None:
        return conversations.alter(moment.unit, opened, peer=kind.recipient(phone))
    return opened


def _send(moment: Moment, conversation: Conversation) -> Outcome:
    text, run = _text(moment), moment.run
    if messages.recent(moment.unit, run.contact_id, text) >= MOST_IDENTICAL:
        raise StepFailed("limit", f"The contact was sent this text {MOST_IDENTICAL} times within five minutes.")
    try:
        message = messages.queue(
            moment.change({}),
            moment.contact,
            conversation,
            text,
            author={"type": "automation", "id": run.automation_id},
            template=_template(moment),
            run_id=run.id,
        )
    except Invalid as error:
        # Its channel takes less than others.
        raise StepFailed("template", error.faults[0].detail) from error
    return Done(
        "The message was queued.",
        input={"text": text},
        output={"message_id": message.id, "conversation_id": conversation.id},
        run_fields={"conversation_id": conversation.id, "prompted": message.id},
    )


def _text(moment: Moment) -> str:
    text = moment.render(moment.step.fields["text"])
    try:
        messages.check(text)
    except Invalid as error:
        raise StepFailed("template", error.faults[0].detail) from error
    return text


def _template(moment: Moment) -> Any:
    """The channel's template with its texts rendered, at any depth."""
    try:
        return templated_values.rendered(moment, moment.step.fields.get("template"), MOST_TEMPLATE_BYTES)
    except templated_values.TooLong as error:
        detail = f"The texts of the template are longer than {MOST_TEMPLATE_BYTES // 1024} KiB together."
        raise StepFailed("template", detail) from error


KIND = Kind(
    description="Sends a message in the contact's most recent conversation.",
    fields={
        "text": {"type": "string", "minLength": 1, "description": "The text of the message."},
        "template": {
            "type": "object",
            "description": "The template that channels such as WhatsApp require outside their window.",
        },
        "quiet_hours": {
            "enum": ["ignore"],
            "description": "Sends the message at once, during the workspace's quiet hours too.",
        },
    },
    required=("text",),
    templates=("text", "template"),
    talks=True,
    begin=begin,
    example={"text": "Hello {{ contact.first_name }}!"},
)
