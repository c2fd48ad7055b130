"""Replays, each a mailbox; their deliveries still to be sent, and the outcomes of the rest."""

from __future__ import annotations

from peewee import IntegerField, TextField
from playhouse.postgres_ext import ArrayField

from app.models.base import BaseModel, MailModel, TimeField, json_field, page_before, text_array

STATES = ("canary", "running", "paused", "done", "aborted")
OUTCOMES = ("sent", "skipped")


class Replay(MailModel):
    PREFIX = "rpl"

    state = TextField(default="running")
    filter = json_field()
    count = IntegerField()
    sent = IntegerField(default=0)
    skipped = IntegerField(default=0)
    per_second = IntegerField(null=True)
    created_by = TextField(null=True)
    trace_id = TextField()
    paced_until = TimeField(null=True)
    wakes_at = TimeField(null=True)
    created_at = TimeField()
    finished_at = TimeField(null=True)

    @classmethod
    def newest(cls, workspace_id: str, state: str | None, last_id: str | None, limit: int) -> list[Replay]:
        """Returns the first `limit` replays after `last_id`, newest first; in any state if None."""
        query = cls.in_workspace(workspace_id)
        if state is not None:
            query = query.where(cls.state == state)
        return list(page_before(query, cls, [last_id], limit))

    @property
    def is_finished(self) -> bool:
        """Whether the replay is done or aborted."""
        return self.state in ("done", "aborted")


class ReplayPart(BaseModel):
    replay_id = TextField()
    number = IntegerField()
    delivery_ids = text_array()
    claims = ArrayField(IntegerField, index=False)

    class Meta:
        primary_key = False


class ReplayRow(BaseModel):
    replay_id = TextField()
    number = IntegerField()
    delivery_id = TextField()
    outcome = TextField()
    reason = TextField(null=True)
    sent_as = TextField(null=True)
    at = TimeField()

    class Meta:
        primary_key = False

    @classmethod
    def first_sent(cls, replay_id: str) -> ReplayRow | None:
        """Returns the row of the first delivery that the replay has sent; None if it has sent none."""
        sent = cls.select().where(cls.replay_id == replay_id, cls.outcome == "sent")
        found: ReplayRow | None = sent.order_by(cls.number).first()
        return found

    @classmethod
    def newest(cls, replay_id: str, outcome: str | None, before: str | None, limit: int) -> list[ReplayRow]:
        """Returns up to `limit` rows before number `before`, latest first; of any outcome if None."""
        query = cls.select().where(cls.replay_id == replay_id)
        if outcome is not None:
            query = query.where(cls.outcome == outcome)
        if before is not None:
            query = query.where(cls.number < int(before))
        return list(query.order_by(cls.number.desc()).limit(limit))
