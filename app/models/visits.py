"""Visits: periods in which a member of the support staff may act in a workspace."""

from __future__ import annotations

from peewee import TextField

from app.models.base import OwnedModel, TimeField


class Visit(OwnedModel):
    account_id = TextField()
    reason = TextField()
    ticket = TextField()
    created_at = TimeField()
    expires_at = TimeField()
