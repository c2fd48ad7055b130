"""Sweeps: long changes to the deliveries of an endpoint, in a mailbox of the endpoint."""

from __future__ import annotations

from peewee import IntegerField, TextField

from app.models.base import MailModel, TimeField, text_array


class Sweep(MailModel):
    PREFIX = "swp"
    FILTERS = ("endpoint_id", "action")

    endpoint_id = TextField()
    action = TextField()
    statuses = text_array()
    kinds = text_array(null=True)
    since = TimeField(null=True)
    until = TimeField(null=True)
    position = TextField(default="")
    last_id = TextField()
    matched = IntegerField(null=True)
    changed = IntegerField(default=0)
    skipped = IntegerField(default=0)
    job_id = TextField(null=True)
    trace_id = TextField()
    created_at = TimeField()
    finished_at = TimeField(null=True)
