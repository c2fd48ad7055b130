"""Identities: contacts' accounts on channels. Also pending and suggested merges of contacts."""

from __future__ import annotations

from typing import ClassVar

from peewee import TextField

from app.models.base import OwnedModel, TimeField


class Identity(OwnedModel):
    """A contact's account. `address`: `channel_kind`, a colon, and `external_id`."""

    KEYS: ClassVar[dict[str, str]] = {"address": "{}"}
    FIXED: ClassVar[frozenset[str]] = frozenset({"channel_kind", "external_id", "address", "created_at"})

    contact_id = TextField()
    channel_kind = TextField()
    external_id = TextField()
    address = TextField()
    created_at = TimeField()


class SuggestedMerge(OwnedModel):
    contact_id = TextField()
    other_id = TextField()
    reason = TextField()
    created_at = TimeField()


class PendingMerge(OwnedModel):
    """A merge with rows still to be moved. `id`: the contact that was merged into `kept_id`."""

    kept_id = TextField()
