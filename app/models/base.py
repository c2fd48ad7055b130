"""What every table shares."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from peewee import Model, TextField
from playhouse.postgres_ext import ArrayField, BinaryJSONField, DateTimeTZField

from app.database import database
from app.errors import NotFound
from app.lib import ids, json

__all__ = ["BaseModel", "OwnedModel", "TimeField", "json_field", "page_before", "text_array"]

TimeField = DateTimeTZField


class BaseModel(Model):
    """A table of Bellhop. `app/migrations` makes it; the models only describe it."""

    class Meta:
        database = database
        legacy_table_names = False


class OwnedModel(BaseModel):
    """A table whose rows belong to a workspace."""

    # The columns that a list may be filtered by.
    FILTERS: ClassVar[tuple[str, ...]] = ()

    workspace_id = TextField()

    @classmethod
    def in_workspace(cls, workspace_id: str) -> Any:
        return cls.select().where(cls.workspace_id == workspace_id)

    @classmethod
    def matching(cls, workspace_id: str, filters: dict[str, Any]) -> Any:
        """The query behind a list: rows that are as all the filters say that are given."""
        query = cls.in_workspace(workspace_id)
        for name in cls.FILTERS:
            if name in filters:
                query = query.where(getattr(cls, name) == filters[name])
        return query

    @classmethod
    def get_in(cls, workspace_id: str, identifier: str, prefix: str) -> Self:
        """The row with that identifier. Raises NotFound, also for what is no identifier with that prefix."""
        found: Self | None = None
        if ids.is_id(identifier, prefix):
            found = cls.in_workspace(workspace_id).where(cls._meta.primary_key == identifier).first()
        if found is None:
            raise NotFound()
        return found


def text_array(**options: Any) -> Any:
    return ArrayField(TextField, index=False, **options)


def json_field(**options: Any) -> Any:
    return BinaryJSONField(index=False, dumps=lambda value: json.dumps(value).decode(), **options)


def page_before(query: Any, model: Any, last_id: str | None, limit: int) -> Any:
    """Newest first, after `last_id`, up to so many."""
    if last_id is not None:
        query = query.where(model.id < last_id)
    return query.order_by(model.id.desc()).limit(limit)
