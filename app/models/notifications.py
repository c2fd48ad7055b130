"""Notifications of a workspace, and e-mail to be sent."""

from __future__ import annotations

from peewee import BooleanField, IntegerField, TextField

from app.models.base import BaseModel, OwnedModel, TimeField, json_field


class Notification(OwnedModel):
    id = TextField(primary_key=True)
    kind = TextField()
    once = TextField()
    detail = json_field()
    is_announced = BooleanField(default=False)
    created_at = TimeField()


class Email(BaseModel):
    id = TextField(primary_key=True)
    kind = TextField()
    subject_id = TextField(null=True)
    address = TextField(null=True)
    attempts = IntegerField(default=0)
    due_at = TimeField()
    created_at = TimeField()
