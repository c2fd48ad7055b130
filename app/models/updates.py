"""Updates: which resources have changed, noted by triggers for live listeners."""

from __future__ import annotations

from peewee import BigIntegerField, TextField

from app.models.base import OwnedModel, TimeField


class Update(OwnedModel):
    id = BigIntegerField()
    transaction_id = TextField()
    kind = TextField()
    subject_id = TextField()
    actor_id = TextField(null=True)
    created_at = TimeField()

    class Meta:
        primary_key = False
