"""Broadcasts, each a mailbox, and the outcomes of the contacts that were handled."""

from __future__ import annotations

from peewee import BooleanField, IntegerField, TextField

from app.models.base import BaseModel, MailModel, TimeField, json_field

STATES = ("scheduled", "canary", "running", "paused", "done", "aborted")
UNFINISHED = STATES[:4]
TIME_ZONES = ("workspace", "contact")
OUTCOMES = ("sent", "started", "skipped")
# The reasons for which contacts are skipped.
REASONS = (
    *("opted_out", "no_channel", "window_closed", "duplicate", "erased", "limit"),
    *("template", "reentry", "error"),
)


class Broadcast(MailModel):
    """A broadcast. `app/migrations/0087_baseline.sql` describes the columns."""

    PREFIX = "bct"

    name = TextField()
    state = TextField()
    segment_id = TextField(null=True)
    filter = json_field(null=True)
    channel_id = TextField(null=True)
    message = json_field(null=True)
    automation_id = TextField(null=True)
    send_at = TimeField(null=True)
    time_zone = TextField(default="workspace")
    per_second = IntegerField(null=True)
    canary = BooleanField(default=False)
    created_by = TextField(null=True)
    trace_id = TextField()
    reached = TextField(null=True, default="")
    count = IntegerField(default=0)
    handled = IntegerField(default=0)
    problem = TextField(null=True)
    paced_until = TimeField(null=True)
    wakes_at = TimeField(null=True)
    created_at = TimeField()
    started_at = TimeField(null=True)
    finished_at = TimeField(null=True)

    @property
    def is_finished(self) -> bool:
        """Whether the broadcast is done or aborted."""
        return self.state not in UNFINISHED


class BroadcastRow(BaseModel):
    broadcast_id = TextField()
    number = IntegerField()
    contact_id = TextField()
    outcome = TextField()
    reason = TextField(null=True)
    message_id = TextField(null=True)
    run_id = TextField(null=True)
    replied_at = TimeField(null=True)
    at = TimeField()

    class Meta:
        primary_key = False

    @classmethod
    def newest(
        cls, broadcast_id: str, outcome: str | None, replied: bool | None, before: str | None, limit: int
    ) -> list[BroadcastRow]:
        """Returns up to `limit` rows before number `before`, latest first. A None filter matches all."""
        query = cls.select().where(cls.broadcast_id == broadcast_id)
        if outcome is not None:
            query = query.where(cls.outcome == outcome)
        if replied is not None:
            query = query.where(cls.replied_at.is_null(not replied))
        if before is not None:
            query = query.where(cls.number < int(before))
        return list(query.order_by(cls.number.desc()).limit(limit))
