"""Messages: queued for a contact, and received from one.

Callers of these functions have locked the contact.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, get_args

from marshmallow import fields, validate

from app.channels.base import ChannelKind
from app.database import count, rows
from app.domain.channels import channels, media, outboxes
from app.domain.channels.buttons import ButtonSchema
from app.domain.channels.media import AttachmentSchema
from app.domain.contacts import contacts
from app.domain.conversations import conversations, message_statuses, recipients, replies, sending_checks, snoozes
from app.domain.conversations.message_statuses import Status
from app.domain.people import conversation_notifications
from app.domain.work.changes import Change, Effect
from app.domain.work.events import Recorder
from app.domain.work.units import Unit
from app.errors import Conflict, Fault, Invalid, NotFound
from app.lib import ids, normalization
from app.lib.schemas import ResponseBody, about, time
from app.models import sets
from app.models.contacts import Contact
from app.models.conversations import Conversation, Message
from app.models.runs import Run
from app.models.sets import Key

MOST_CHARACTERS = 4_096
MOST_TEMPLATE_BYTES = 16 * 1024
PAYLOADS_KEPT_DAYS = 30
TEMPLATE_TOO_LONG = f"The texts of the template are longer than {MOST_TEMPLATE_BYTES // 1024} KiB together."


class MessageIds(NamedTuple):
    """The identifiers of a message, and of its workspace, conversation and contact."""

    workspace_id: str
    message_id: str
    conversation_id: str
    contact_id: str

    @property
    def keys(self) -> list[Key]:
        """The keys of the contact, the conversation and the message, in the order to lock them."""
        ids = ((Contact, self.contact_id), (Conversation, self.conversation_id), (Message, self.message_id))
        return [sets.key(model, self.workspace_id, "id", value) for model, value in ids]


def prefetch(unit: Unit, runs: Sequence[Run]) -> None:
    """Reads the rows that the runs' steps need to send messages, in four statements in all."""
    conversations.prefetch(unit, runs)
    sending_checks.prefetch_recent(unit, {run.contact_id for run in runs})


def prefetch_for(unit: Unit, workspace_id: str, contact_ids: Collection[str]) -> None:
    """Reads the rows that are needed to send each contact a message in the most recent conversation."""
    conversations.prefetch_most_recent(unit, workspace_id, contact_ids)
    sending_checks.prefetch_recent(unit, contact_ids)


def check(text: str) -> None:
    """Raises Invalid for a text that cannot be sent on any channel."""
    # Telegram refuses a text without visible characters as empty.
    if not any(not each.isspace() and normalization.is_visible(each) for each in text):
        raise Invalid(Fault("/text", "A message without text cannot be sent."))
    if len(text) > MOST_CHARACTERS:
        detail = f"A message has at most {MOST_CHARACTERS:,} characters; this one has {len(text):,}."
        raise Invalid(Fault("/text", detail))
    if "\0" in text:
        raise Invalid(Fault("/text", "A message cannot contain the character U+0000."))


def check_content(kind: ChannelKind, text: str | None, *, has_template: bool, files: int, buttons: int) -> None:
    """Raises Invalid for content that this kind of channel cannot send, or buttons without a text."""
    if text is not None or buttons or not (has_template or files):
        check(text or "")
    sending_checks.check_size(kind, text or "", files, buttons)


def queue(change: Change, contact: Contact, conversation: Conversation, text: str | None, **content: Any) -> Message:
    """Queues a message to the contact, behind the conversation's others. `content`: as in `draft`.

    The message fails at once if it may not be sent. On a channel without a provider, it is `sent` at once. Raises
    Invalid.
    """
    return queue_draft(change, contact, conversation, draft(change.unit, conversation, text, **content))


def draft(
    unit: Unit,
    conversation: Conversation,
    text: str | None,
    *,
    author: Mapping[str, str],
    template: Mapping[str, Any] | None = None,
    run_id: str | None = None,
    message_id: str | None = None,
    attachments: Sequence[Mapping[str, Any]] = (),
    buttons: Sequence[Mapping[str, str]] = (),
    expires_at: datetime | None = None,
    broadcast_id: str | None = None,
) -> Message:
    """Returns a new message to the contact, without storing it.

    `attachments`: files that the message `message_id` has claimed. Raises Invalid for content that the channel refuses.
    """
    kind = channels.kind_of(channels.seen_by(unit, conversation.channel_id))
    check_content(kind, text, has_template=bool(template), files=len(attachments), buttons=len(buttons))
    sending_checks.check_template(kind, template)
    message = _made(unit, conversation, text, direction="out", status="queued", author=author, run_id=run_id)
    message.expires_at = expires_at
    message.id = message_id or message.id
    message.template, message.attachments, message.buttons = template, list(attachments), list(buttons) or None
    message.broadcast_id = broadcast_id
    message.is_automated = author["type"] in ("automation", "broadcast")
    return message


def queue_draft(change: Change, contact: Contact, conversation: Conversation, message: Message) -> Message:
    """Queues the message, as `queue` does; returns it as stored."""
    unit = change.unit
    queued = _set_off(change, contact, conversations.touch(unit, conversation), message)
    if message.text is not None:
        sending_checks.add_recent(unit, contact.id, message.text)
    return queued


def create(change: Change) -> Effect:
    """Queues the payload's message. A member's message holds the contact's runs.

    Raises NotFound, Invalid, Conflict, Busy.
    """
    contact, conversation = recipients.find(change)
    if change.author["type"] == "member":
        conversation = conversations.hold_runs(change.unit, conversation)
    message = queue_draft(change, contact, conversation, drafted(change, conversation))
    return Effect("made", "message", message.id)


def drafted(change: Change, conversation: Conversation) -> Message:
    """Returns a draft of the payload's message, and attaches the files to it. Raises Invalid, Busy."""
    payload, expires_at = change.payload, change.payload.get("expires_at")
    return draft(
        change.unit,
        conversation,
        payload.get("text"),
        author=change.author,
        template=payload.get("template"),
        message_id=change.target,
        attachments=media.claim_uploads(
            change.unit, change.workspace_id, recipients.upload_ids(payload), change.target
        ),
        buttons=payload.get("buttons", ()),
        expires_at=None if expires_at is None else datetime.fromisoformat(expires_at),
    )


def resend(change: Change) -> Effect:
    """Queues a failed or `unknown` message again. The message fails at once if it may not be sent.

    Raises NotFound, Busy, and Conflict for a message with another status.
    """
    unit = change.unit
    message = unit.get(Message, change.workspace_id, "id", change.target)
    if message is None:
        raise NotFound
    contact, conversation = conversations.hold(change, message.conversation_id)
    if not message_statuses.may_be_sent_again(message):
        raise Conflict("Only a message that failed, or whose outcome is unknown, can be sent again.")
    anew = dict.fromkeys(("failure", "provider_id", "provider_time", "put_off_at"))
    _set_off(change, contact, conversation, message.altered(**anew))
    return Effect("changed", "message", message.id)


def tell(recorder: Recorder, contact: Contact, conversation: Conversation, message: Message) -> None:
    """Records the event for the message's status, if there is one."""
    if (kind := message_statuses.EVENTS.get(message.status)) is not None:
        data = {
            "contact": contacts.represent(contact),
            "conversation": conversations.represent(conversation),
            "message": represent(message),
        }
        recorder.record(kind, data, contact.id)


def receive(
    change: Change,
    contact: Contact,
    channel_id: str,
    text: str | None,
    *,
    conversation: Conversation | None = None,
    **fields: Any,
) -> Message:
    """Stores a message from the contact, and gives it to the run that waits for it, if any.

    Without a `conversation`, reopens the contact's latest one on the channel, or opens a new one. Ends a snooze,
    notifies members, and records the event. `fields` are columns of the message. Raises Busy.
    """
    unit = change.unit
    conversation = conversation or conversations.open_for(change, contact, channel_id)
    woken = snoozes.wake(change, contact, conversation)
    conversation_notifications.contact_wrote(unit, woken)
    conversation = conversations.touch(unit, woken, waiting_since=woken.waiting_since or unit.now, broadcast_id=None)
    author = {"type": "contact", "id": contact.id}
    received = _made(unit, conversation, text, direction="in", status="received", author=author)
    message = unit.put(replies.take(unit, conversation, received.altered(**fields)))
    tell(change.events, contact, conversation, message)
    return message


def erase(message_ids: Sequence[str]) -> None:
    """Removes the messages' content; their time, direction and author stay.

    Unsent messages fail. A message that is being sent becomes `unknown`, and its outcome is not recorded.
    """
    rows(
        f"""
        UPDATE messages SET text = NULL, template = NULL, attachments = '[]', buttons = NULL, button_id = NULL,
            provider_id = NULL, provider_payload = NULL, data = NULL, album = NULL,
            failure = CASE WHEN {message_statuses.IS_ENDED_BY_IT} THEN %s::json
                WHEN failure IS NOT NULL THEN json_build_object('code', failure->'code', 'detail', NULL) END,
            {message_statuses.ENDING}
        WHERE id = ANY(%s)
        """,
        (message_statuses.ERASED, list(message_ids)),
    )


def forget_payloads(limit: int = 1_000) -> int:
    """Deletes up to `limit` provider documents older than PAYLOADS_KEPT_DAYS. Returns how many."""
    return count(
        """
        UPDATE messages SET provider_payload = NULL
        WHERE id = ANY(ARRAY(
            SELECT id FROM messages
            WHERE provider_payload IS NOT NULL AND created_at < now() - %s * interval '1 day'
            ORDER BY created_at LIMIT %s FOR NO KEY UPDATE SKIP LOCKED))
        """,
        (PAYLOADS_KEPT_DAYS, limit),
    )


class AuthorSchema(ResponseBody):
    type = fields.String(
        metadata=about(
            "`contact`, `member`, `api`, `automation`, `broadcast` or `provider`; more may be added.", example="contact"
        )
    )
    id = fields.String(metadata=about("The author's identifier."))


class MessageSchema(ResponseBody):
    id = fields.String()
    conversation_id = fields.String()
    direction = fields.String(validate=validate.OneOf(["in", "out"]))
    text = fields.String(allow_none=True, metadata={"example": "Yes, please."})
    attachments = fields.List(fields.Nested(AttachmentSchema))
    buttons = fields.List(fields.Nested(ButtonSchema), metadata=about("The answers that it offers."))
    button_id = fields.String(
        allow_none=True,
        metadata=about("The button that the contact pressed, whose label is the text.", example=None),
    )
    status = fields.String(validate=validate.OneOf(get_args(Status)))
    failure = fields.Dict(allow_none=True, metadata=about("Why it was not sent: `code` and `detail`."))
    author = fields.Nested(AuthorSchema)
    run_id = fields.String(
        allow_none=True, metadata=about("The run that sent it, or that took it as the reply it waited for.")
    )
    expires_at = time("From when on it is not sent any more; null: it always is.", allow_none=True)
    send_at = time("When it is to be sent; null: it is not scheduled.", allow_none=True)
    cancel_on_reply = fields.Boolean(metadata=about("Whether it fails if the contact writes while it is scheduled."))
    provider_time = time("When the provider took it, by its clock; null: it is not known.", allow_none=True)
    data = fields.Dict(
        allow_none=True, metadata=about("The answers of a form (WhatsApp Flows) that the contact filled in; else null.")
    )
    provider_payload = fields.Dict(
        allow_none=True,
        metadata=about(
            "The provider's document of a message that Bellhop cannot show in full, such as an order, for"
            f" {PAYLOADS_KEPT_DAYS} days; else null."
        ),
    )
    created_at = time("When the message was received or queued; of one that is scheduled: written.")


def represent(message: Message) -> dict[str, Any]:
    """Returns the message as in the API."""
    return MessageSchema.of(message, attachments=media.shown(message.attachments), buttons=message.buttons or [])


def _set_off(change: Change, contact: Contact, conversation: Conversation, message: Message) -> Message:
    """Stores the message as queued, as failed if it is refused, or as sent if there is no provider."""
    unit = change.unit
    channel = channels.seen_by(unit, conversation.channel_id)
    kind = channels.kind_of(channel)
    is_answer = sending_checks.is_answer(message.author, conversation.asked_at, unit.now)
    refusal = sending_checks.refusal(
        kind,
        has_template=bool(message.template),
        opted_out=contact.opted_out and not is_answer,
        is_open=conversation.is_window_open(unit.now),
        is_expired=message.expires_at is not None and message.expires_at <= unit.now,
        is_deleted=channel.deleted_at is not None,
    )
    if refusal is None and not kind.has_provider and conversation.peer is None:
        refusal = sending_checks.NO_ADDRESS  # channels with a provider report this when the message is sent
    if refusal is None and not message.is_automated:
        conversation = conversations.answer(unit, conversation)
    fields: Mapping[str, Any]
    if refusal is not None:
        fields = {"status": "failed", "failure": {"code": refusal.code, "detail": refusal.detail}}
    elif kind.has_provider:
        fields = outboxes.place(unit, conversation)
    else:
        fields = {"status": "sent"}
    placed = unit.put(message.altered(**fields))
    tell(change.events, contact, conversation, placed)
    return placed


def _made(unit: Unit, conversation: Conversation, text: str | None, **fields: Any) -> Message:
    return Message(
        id=ids.new("msg"),
        workspace_id=conversation.workspace_id,
        conversation_id=conversation.id,
        contact_id=conversation.contact_id,
        channel_id=conversation.channel_id,
        text=text,
        created_at=unit.now,
        **fields,
    )
