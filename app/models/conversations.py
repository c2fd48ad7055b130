"""Conversations with contacts, and their messages."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any, ClassVar

from peewee import SQL, BooleanField, CompositeKey, IntegerField, TextField, Tuple, fn

from app.models.base import MailModel, OwnedModel, TimeField, json_field, page_before, text_array

# The time of a position in a list: a datetime from a row, text from a cursor, or None for the beginning.
At = datetime | str | None
# The most conversations of a view that are searched for a label or a channel.
MOST_LOOKED_AT = 5_000
# The SQL condition that the conversation has a label. Ignores case, and differences that a reader does not see. `{}` is
# replaced by the label's parameter.
HAS_LABEL = """EXISTS (
    SELECT FROM unnest(labels) AS each WHERE plain_search(lower(each)) = plain_search(lower({})))"""
# The same condition for a row of ConversationLabel. Its left side is the expression in the table's indexes.
_IS_LABEL = 'plain_search(lower(label COLLATE "default")) = plain_search(lower(%s))'


class Conversation(OwnedModel):
    """A conversation. It changes only in a transaction that has locked its contact.

    `waiting_run_id`: the run that last began to wait for a reply in the conversation; the wait may have ended since.
    Because the column names one run, no two runs wait in one conversation.
    """

    PREFIX = "cnv"
    # `paced_until` does change, but only the sender sets it, without the contact's lock. So no unit may overwrite it.
    FIXED: ClassVar[frozenset[str]] = frozenset({"channel_id", "created_at", "paced_until"})
    FILTERS: ClassVar[tuple[str, ...]] = ("status", "channel_id", "contact_id")

    contact_id = TextField()
    channel_id = TextField()
    peer = TextField(null=True)
    status = TextField(default="open")
    assignee_id = TextField(null=True)
    held_at = TimeField(null=True)
    waiting_run_id = TextField(null=True)
    labels = text_array(default=list)
    snoozed_until = TimeField(null=True)
    unread = IntegerField(default=0)
    window_ends_at = TimeField(null=True)
    paced_until = TimeField(null=True)
    waiting_since = TimeField(null=True)
    asked_at = TimeField(null=True)
    referral = json_field(null=True)
    first_answered_at = TimeField(null=True)
    scheduled = IntegerField(default=0)
    broadcast_id = TextField(null=True)
    last_message_at = TimeField(null=True)
    created_at = TimeField()

    def is_window_open(self, at: datetime) -> bool:
        """Whether the contact wrote recently enough at `at` for free text on channels with such a window."""
        return self.window_ends_at is not None and self.window_ends_at > at

    @classmethod
    def newest(
        cls, workspace_id: str, filters: Mapping[str, Any], last_id: str | None, limit: int
    ) -> list[Conversation]:
        """Returns the first `limit` conversations after `last_id` that match every filter, newest first.

        Filters: `status`, `channel_id`, `contact_id`, `assignee_id` (a member, or `none`), `label`, `snoozed` (a
        boolean).
        """
        query = cls.matching(workspace_id, filters)
        if "label" in filters:
            query = query.where(cls.id.in_(_labelled(workspace_id, filters, last_id, limit)))
        return list(page_before(query, cls, [last_id], limit))

    @classmethod
    def latest_on_each(cls, contact_id: str, channel_ids: Collection[str]) -> list[Conversation]:
        """Returns the contact's latest conversation on each of the channels, the latest of all first."""
        at = fn.COALESCE(cls.last_message_at, cls.created_at)
        theirs = cls.select().where(cls.contact_id == contact_id, cls.channel_id.in_(list(channel_ids)))
        found = theirs.distinct(cls.channel_id).order_by(cls.channel_id, at.desc(), cls.id.desc())
        return sorted(found, key=lambda each: (each.last_message_at or each.created_at, each.id), reverse=True)

    @classmethod
    def longest_waiting(
        cls, workspace_id: str, filters: Mapping[str, Any], last_at: At, last_id: str | None, limit: int
    ) -> list[Conversation]:
        """Returns up to `limit` waiting conversations after the position, the longest waiting first.

        Filters: as for `newest`; at most MOST_LOOKED_AT conversations are compared with them.
        """
        return cls._earliest(cls.waiting_since, workspace_id, filters, last_at, last_id, limit)

    @classmethod
    def awake(
        cls, workspace_id: str, filters: Mapping[str, Any], last_at: At, last_id: str | None, limit: int
    ) -> list[Conversation]:
        """Returns up to `limit` open, not snoozed conversations after the position, latest first.

        Each has `at`: when the latest message was added, or else the conversation was created. Filters: as for
        `newest`. All but `assignee_id` are compared with at most MOST_LOOKED_AT conversations.
        """
        at = fn.COALESCE(cls.last_message_at, cls.created_at).alias("at")
        of_assignee = {"assignee_id": filters["assignee_id"]} if "assignee_id" in filters else {}
        looked_at = cls.matching(workspace_id, {"status": "open", "snoozed": False, **of_assignee})
        looked_at = looked_at.select(cls, at)
        if last_at is not None:
            looked_at = looked_at.where(Tuple(at.unalias(), cls.id) < Tuple(last_at, last_id))
        looked_at = looked_at.order_by(at.unalias().desc(), cls.id.desc()).limit(MOST_LOOKED_AT).alias("looked_at")
        return list(_among(looked_at, filters).order_by(SQL("at DESC, id DESC")).limit(limit))

    @classmethod
    def snoozed(
        cls, workspace_id: str, filters: Mapping[str, Any], last_at: At, last_id: str | None, limit: int
    ) -> list[Conversation]:
        """Returns up to `limit` snoozed conversations after the position, the next to wake first.

        Filters: `channel_id`, `assignee_id`, `label`; at most MOST_LOOKED_AT conversations are compared with them.
        """
        return cls._earliest(cls.snoozed_until, workspace_id, filters, last_at, last_id, limit)

    @classmethod
    def _earliest(
        cls, time: Any, workspace_id: str, filters: Mapping[str, Any], last_at: At, last_id: str | None, limit: int
    ) -> list[Conversation]:
        """Returns up to `limit` conversations after the position that have a `time`, earliest first."""
        looked_at = cls.in_workspace(workspace_id).where(time.is_null(False))
        if last_at is not None:
            looked_at = looked_at.where(Tuple(time, cls.id) > Tuple(last_at, last_id))
        looked_at = looked_at.order_by(time, cls.id).limit(MOST_LOOKED_AT).alias("looked_at")
        return list(_among(looked_at, filters).order_by(SQL(f"{time.name}, id")).limit(limit))

    @classmethod
    def latest_of_contacts(cls, workspace_id: str, contact_ids: Collection[str]) -> dict[str, Conversation]:
        """Returns each contact's conversation with the latest message, by contact, if there is one."""
        if not contact_ids:
            return {}
        one = """
            SELECT latest.id FROM unnest(%s::text[]) AS wanted(id) CROSS JOIN LATERAL (
                SELECT id FROM conversations WHERE contact_id = wanted.id
                ORDER BY coalesce(last_message_at, created_at) DESC, id DESC LIMIT 1) AS latest
        """
        found = cls.in_workspace(workspace_id).where(cls.id.in_(SQL(f"({one})", (list(contact_ids),))))
        return {conversation.contact_id: conversation for conversation in found}

    @classmethod
    def of_contact(cls, workspace_id: str, contact_id: str, limit: int) -> list[Conversation]:
        """Returns up to `limit` conversations of the contact, open or closed, latest message first."""
        at = fn.COALESCE(cls.last_message_at, cls.created_at)
        query = cls.in_workspace(workspace_id).where(cls.contact_id == contact_id)
        return list(query.order_by(at.desc(), cls.id.desc()).limit(limit))

    @classmethod
    def matching(cls, workspace_id: str, filters: Mapping[str, Any]) -> Any:
        """Returns a query for the conversations that match all filters but `label`."""
        query = super().matching(workspace_id, filters)
        if "assignee_id" in filters:
            assignee_id = filters["assignee_id"]
            query = query.where(cls.assignee_id.is_null() if assignee_id == "none" else cls.assignee_id == assignee_id)
        if "snoozed" in filters:
            query = query.where(cls.snoozed_until.is_null(not filters["snoozed"]))
        return query


class ConversationLabel(OwnedModel):
    """A label of a conversation, for lists. A database trigger writes it."""

    label = TextField()
    conversation_id = TextField()
    status = TextField()

    class Meta:
        primary_key = CompositeKey("workspace_id", "label", "conversation_id")


class Message(MailModel):
    """A message. The database sets `sent_at` when the message is first known to be sent."""

    PREFIX = "msg"
    FIXED: ClassVar[frozenset[str]] = frozenset(
        {
            *("channel_id", "direction", "buttons", "button_id", "author", "sent_at", "expires_at", "cancel_on_reply"),
            *("broadcast_id", "provider_payload", "data", "album"),
        }
    )

    conversation_id = TextField()
    contact_id = TextField()
    channel_id = TextField(null=True)
    direction = TextField()
    text = TextField(null=True)
    template = json_field(null=True)
    attachments = json_field(default=list)
    buttons = json_field(null=True)
    button_id = TextField(null=True)
    status = TextField()
    failure = json_field(null=True)
    author = json_field()
    run_id = TextField(null=True)
    provider_id = TextField(null=True)
    provider_time = TimeField(null=True)
    provider_payload = json_field(null=True)
    data = json_field(null=True)
    album = TextField(null=True)
    edited_at = TimeField(null=True)
    sent_at = TimeField(null=True)
    is_automated = BooleanField(default=False)
    is_behind = BooleanField(default=False)
    put_off_at = TimeField(null=True)
    expires_at = TimeField(null=True)
    send_at = TimeField(null=True)
    cancel_on_reply = BooleanField(default=False)
    broadcast_id = TextField(null=True)
    created_at = TimeField()

    @classmethod
    def last_of(cls, conversation_ids: Collection[str]) -> dict[str, Message]:
        """Returns a few columns of each conversation's last message, by conversation, if there is one.

        The last message has the latest `at` (see `latest`). Scheduled messages do not count.
        """
        if not conversation_ids:
            return {}
        one = """
            SELECT last.id FROM unnest(%s::text[]) AS wanted(id) CROSS JOIN LATERAL (
                SELECT id FROM messages WHERE conversation_id = wanted.id AND send_at IS NULL
                ORDER BY coalesce(provider_time, created_at) DESC, id DESC LIMIT 1) AS last
        """
        shown = (cls.id, cls.conversation_id, cls.direction, cls.text, cls.attachments, cls.template)
        found = cls.select(*shown).where(cls.id.in_(SQL(f"({one})", (list(conversation_ids),))))
        return {message.conversation_id: message for message in found}

    @classmethod
    def latest(
        cls, conversation_id: str, last_at: At, last_id: str | None, limit: int, *, with_scheduled: bool = True
    ) -> list[Message]:
        """Returns the conversation's first `limit` messages after (`last_at`, `last_id`), newest first.

        Sorts by `at`, the provider's time or, without one, the time of creation. `last_at` None: from the newest.
        """
        at = fn.COALESCE(cls.provider_time, cls.created_at)
        query = cls.select(cls, at.alias("at")).where(cls.conversation_id == conversation_id)
        if not with_scheduled:
            query = query.where(cls.send_at.is_null())
        if last_at is not None:
            query = query.where(Tuple(at, cls.id) < Tuple(last_at, last_id))
        return list(query.order_by(at.desc(), cls.id.desc()).limit(limit))

    @classmethod
    def scheduled(cls, filters: Mapping[str, Any], last_at: At, last_id: str | None, limit: int) -> list[Message]:
        """Returns the first `limit` scheduled messages after (`last_at`, `last_id`), the next first.

        `last_at` None: from the first. `filters`: values by column.
        """
        named = [getattr(cls, name) == value for name, value in filters.items()]
        query = cls.select().where(cls.send_at.is_null(False), *named)
        if last_at is not None:
            query = query.where(Tuple(cls.send_at, cls.id) > Tuple(last_at, last_id))
        return list(query.order_by(cls.send_at, cls.id).limit(limit))


def _among(looked_at: Any, filters: Mapping[str, Any]) -> Any:
    """Returns a query for the rows of `looked_at` that match all filters."""
    query = Conversation.select(SQL("*")).from_(looked_at)
    for name in Conversation.FILTERS:
        if name in filters:
            query = query.where(getattr(looked_at.c, name) == filters[name])
    if "snoozed" in filters:
        query = query.where(looked_at.c.snoozed_until.is_null(not filters["snoozed"]))
    if filters.get("assignee_id") == "none":
        query = query.where(looked_at.c.assignee_id.is_null())
    elif "assignee_id" in filters:
        query = query.where(looked_at.c.assignee_id == filters["assignee_id"])
    if "label" in filters:
        query = query.where(SQL(HAS_LABEL.format("%s"), (filters["label"],)))
    return query


def _labelled(workspace_id: str, filters: Mapping[str, Any], last_id: str | None, limit: int) -> Any:
    """Returns a query for the ids of conversations with the label, before `last_id`.

    Without filters other than `status`, returns only the ids of one page. Other filters are applied later, so then the
    query has no limit.
    """
    listed = ConversationLabel
    # Distinct, because a conversation may have two labels that `_IS_LABEL` takes as equal: they were added before
    # labels were compared in this way.
    query = listed.select(listed.conversation_id).distinct()
    query = query.where(listed.workspace_id == workspace_id, SQL(_IS_LABEL, (filters["label"],)))
    if "status" in filters:
        query = query.where(listed.status == filters["status"])
    if filters.keys() & {"channel_id", "contact_id", "assignee_id", "snoozed"}:
        return query if last_id is None else query.where(listed.conversation_id < last_id)
    # Without the limit, the planner might read all newer conversations until it finds some with the label.
    return page_before(query, listed, [last_id], limit, ("conversation_id",))
