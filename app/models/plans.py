"""Subscriptions: from which month on a workspace has which plan."""

from __future__ import annotations

from peewee import CompositeKey, DateField, TextField

from app.models.base import OwnedModel


class Subscription(OwnedModel):
    since = DateField()
    plan = TextField()

    class Meta:
        table_name = "subscriptions"
        primary_key = CompositeKey("workspace_id", "since")
