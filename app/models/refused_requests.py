"""Requests that the API refused: the latest of each problem in a workspace."""

from __future__ import annotations

from peewee import IntegerField, TextField

from app.models.base import OwnedModel, TimeField, text_array


class RefusedRequest(OwnedModel):
    PREFIX = "ref"

    token_id = TextField()
    trace_id = TextField()
    method = TextField()
    path = TextField()
    status = IntegerField()
    problem = TextField()
    pointers = text_array()
    created_at = TimeField()
