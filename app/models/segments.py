"""Segments: named filters of contacts."""

from __future__ import annotations

from peewee import TextField

from app.models.base import OwnedModel, TimeField, json_field


class Segment(OwnedModel):
    PREFIX = "seg"

    id = TextField(primary_key=True)
    name = TextField()
    filter = json_field()
    created_at = TimeField()
