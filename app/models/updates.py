"""Updates: which resources have changed, noted by triggers for live listeners."""

from __future__ import annotations

from peewee import BigIntegerField, BooleanField, TextField

from app.models.base import BaseModel, OwnedModel, TimeField


class Update(OwnedModel):
    id = BigIntegerField()
    transaction_id = TextField()
    kind = TextField()
    subject_id = TextField()
    actor_id = TextField(null=True)
    created_at = TimeField()

    class Meta:
        table_name = "updates"
        primary_key = False


class UpdatesForgotten(BaseModel):
    is_only = BooleanField(primary_key=True)
    until = TextField()

    class Meta:
        table_name = "updates_forgotten"


class UpdateHorizon(BaseModel):
    at = TimeField(primary_key=True)
    oldest = TextField()
    next = TextField()

    class Meta:
        table_name = "update_horizons"
