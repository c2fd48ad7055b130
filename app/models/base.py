"""What every table shares."""

from __future__ import annotations

from typing import Any

from peewee import Model, TextField
from playhouse.postgres_ext import ArrayField, BinaryJSONField, DateTimeTZField

from app.database import database
from app.lib import json

__all__ = ["BaseModel", "OwnedModel", "TimeField", "json_field", "page_before", "text_array"]

TimeField = DateTimeTZField


class BaseModel(Model):
    """A table of Bellhop. `app/migrations` makes it; the models only describe it."""

    class Meta:
        database = database
        legacy_table_names = False


class OwnedModel(BaseModel):
    """A table whose rows belong to a workspace."""

    workspace_id = TextField()

    @classmethod
    def in_workspace(cls, workspace_id: str) -> Any:
        return cls.select().where(cls.workspace_id == workspace_id)


def text_array(**options: Any) -> Any:
    return ArrayField(TextField, index=False, **options)


def json_field(**options: Any) -> Any:
    return BinaryJSONField(index=False, dumps=lambda value: json.dumps(value).decode(), **options)


def page_before(query: Any, model: Any, last_id: str | None, limit: int) -> Any:
    """Newest first, after `last_id`, up to so many."""
    if last_id is not None:
        query = query.where(model.id < last_id)
    return query.order_by(model.id.desc()).limit(limit)
