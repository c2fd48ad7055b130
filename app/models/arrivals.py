"""Arrivals: messages and receipts that came over channels, in a mailbox for each sender."""

from __future__ import annotations

from peewee import BigIntegerField, IntegerField, TextField

from app.models.base import MailModel, TimeField, json_field


class Arrival(MailModel):
    position = BigIntegerField()
    channel_id = TextField()
    sender_key = TextField()
    key = TextField()
    kind = TextField()
    payload = json_field(null=True)
    trace_id = TextField()
    errors = IntegerField(default=0)
    deaths = IntegerField(default=0)
    problem = TextField(null=True)
    next_attempt_at = TimeField(null=True)
    created_at = TimeField()

    @classmethod
    def batch(cls, ids: list[str]) -> list[Arrival]:
        """Returns the arrivals with these `ids`, in the order in which they arrived."""
        return list(cls.select().where(cls.id.in_(ids)).order_by(cls.position))

    @classmethod
    def failed(cls, last_id: str | None, limit: int) -> list[Arrival]:
        """Returns the arrivals that were given up, oldest first, up to `limit` after `last_id`."""
        query = cls.select().where(cls.problem.is_null(False), cls.id > (last_id or ""))
        return list(query.order_by(cls.id).limit(limit))
