"""Broadcasts, each a mailbox, and the outcomes of the contacts that were handled."""

from __future__ import annotations

from peewee import BooleanField, IntegerField, TextField

from app.models.base import BaseModel, TimeField, json_field, page_before
from app.models.controlled_batches import ControlledBatch

STATES = ("scheduled", "canary", "running", "paused", "done", "aborted")
UNFINISHED = STATES[:4]
TIME_ZONES = ("workspace", "contact")
OUTCOMES = ("sent", "started", "skipped")
# The reasons for which contacts are skipped.
REASONS = (
    *("opted_out", "no_channel", "window_closed", "duplicate", "erased", "limit"),
    *("template", "reentry", "error"),
)


class Broadcast(ControlledBatch):
    """A broadcast. `app/migrations/0087_baseline.sql` describes the columns."""

    PREFIX = "bct"
    NOUN = "broadcast"

    name = TextField()
    segment_id = TextField(null=True)
    filter = json_field(null=True)
    channel_id = TextField(null=True)
    message = json_field(null=True)
    automation_id = TextField(null=True)
    send_at = TimeField(null=True)
    time_zone = TextField(default="workspace")
    canary = BooleanField(default=False)
    reached = TextField(null=True, default="")
    handled = IntegerField(default=0)
    problem = TextField(null=True)
    started_at = TimeField(null=True)


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
        return list(page_before(query, cls, [before], limit, ["number"]))
