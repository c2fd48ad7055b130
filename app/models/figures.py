"""Figures: attempts, failures, writes and queues by minute and hour, groups of failures, and how far all is counted."""

from __future__ import annotations

from peewee import BigAutoField, BigIntegerField, CompositeKey, IntegerField, TextField
from playhouse.postgres_ext import ArrayField

from app.models.base import OwnedModel, TimeField


class DeliveryMinute(OwnedModel):
    """Attempts of a minute; an empty `endpoint_id` stands for the workspace, an empty `workspace_id` for all."""

    endpoint_id = TextField()
    starts_at = TimeField()
    attempts = IntegerField()
    delivered = IntegerField()
    final = IntegerField()
    duration_ms = BigIntegerField()
    buckets = ArrayField(IntegerField, index=False)

    class Meta:
        primary_key = CompositeKey("workspace_id", "endpoint_id", "starts_at")


class FailureGroup(OwnedModel):
    """Failures with one cause. `subject` is an endpoint, a kind of job or an automation; `status` is 0 without one."""

    id = BigAutoField()
    kind = TextField()
    subject = TextField()
    code = TextField()
    status = IntegerField()
    first_seen_at = TimeField()
    last_seen_at = TimeField()
