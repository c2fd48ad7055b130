"""Selections: conversations chosen for one change, in parts, and the progress of the change."""

from __future__ import annotations

from peewee import CompositeKey, IntegerField, TextField

from app.models.base import BaseModel, OwnedModel, TimeField, json_field, text_array


class Selection(OwnedModel):
    """A selection. `total` is null until the conversations of a whole view are stored."""

    PREFIX = "sel"

    job_id = TextField()
    choice = json_field()
    action = json_field()
    total = IntegerField(null=True)
    changed = IntegerField(default=0)
    unchanged = IntegerField(default=0)
    refused = IntegerField(default=0)
    passed_over = IntegerField(default=0)
    created_at = TimeField()
    finished_at = TimeField(null=True)

    @property
    def done(self) -> int:
        """How many conversations the change has handled so far."""
        return int(self.changed + self.unchanged + self.refused + self.passed_over)


class SelectionPart(BaseModel):
    """A part of the conversations that the change has not handled yet."""

    selection_id = TextField()
    number = IntegerField()
    conversation_ids = text_array()

    class Meta:
        primary_key = CompositeKey("selection_id", "number")
