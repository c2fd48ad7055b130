"""Replays, each a mailbox, and the outcomes of the deliveries that they have reached."""

from __future__ import annotations

from peewee import IntegerField, TextField

from app.models.base import BaseModel, TimeField, json_field, page_before
from app.models.controlled_batches import ControlledBatch

STATES = ("canary", "running", "paused", "done", "aborted")
OUTCOMES = ("sent", "skipped")


class Replay(ControlledBatch):
    PREFIX = "rpl"
    NOUN = "replay"

    filter = json_field()
    sent = IntegerField(default=0)
    skipped = IntegerField(default=0)


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
        """Returns up to `limit` rows before number `before`, latest first. `outcome` None: of any."""
        query = cls.select().where(cls.replay_id == replay_id)
        if outcome is not None:
            query = query.where(cls.outcome == outcome)
        return list(page_before(query, cls, [before], limit, ["number"]))
