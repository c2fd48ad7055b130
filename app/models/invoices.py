"""Invoices, and the workspaces that have no invoice yet for a closed month."""

from __future__ import annotations

from peewee import BigIntegerField, CompositeKey, DateField, DecimalField, TextField

from app.models.base import OwnedModel, TimeField, json_field


class Invoice(OwnedModel):
    PREFIX = "inv"

    number = BigIntegerField()
    status = TextField(default="open")
    plan = TextField()
    currency = TextField()
    period_start = TimeField()
    period_end = TimeField()
    lines = json_field()
    total = DecimalField(max_digits=14, decimal_places=2)
    created_at = TimeField()


class Unbilled(OwnedModel):
    month = DateField()

    class Meta:
        table_name = "unbilled"
        primary_key = CompositeKey("month", "workspace_id")
