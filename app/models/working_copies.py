"""Working copies of automations, their states, and clipboards."""

from __future__ import annotations

from peewee import BooleanField, CompositeKey, IntegerField, TextField

from app.models.base import OwnedModel, TimeField, json_field, text_array


class WorkingCopy(OwnedModel):
    """The draft that editors share. `seen`: the fingerprint of the automation's own definition."""

    automation_id = TextField()
    state = IntegerField()
    revision = IntegerField()
    seen = TextField()
    updated_at = TimeField()

    class Meta:
        primary_key = CompositeKey("automation_id")


class WorkingCopyState(OwnedModel):
    """The state of a working copy after a change. `actor_id` is null if no editor made the change."""

    automation_id = TextField()
    number = IntegerField()
    definition = json_field()
    bytes = IntegerField()
    actor_id = TextField(null=True)
    done = TextField()
    steps = text_array(default=list)
    made_at = TimeField()

    class Meta:
        primary_key = CompositeKey("automation_id", "number")


class StepClipboard(OwnedModel):
    """The step that an editor last copied or cut."""

    actor_id = TextField()
    step = json_field()
    source_id = TextField()
    is_cut = BooleanField()
    updated_at = TimeField()

    class Meta:
        primary_key = CompositeKey("workspace_id", "actor_id")
