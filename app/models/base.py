"""What every table shares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

from peewee import Model, TextField, Tuple
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
    """A table whose rows belong to a workspace, and the filters of its list.

    FILTERS are columns. TIME is `occurred` where `occurred_since` and `occurred_until` are a range of `occurred_at`.
    """

    FILTERS: ClassVar[tuple[str, ...]] = ()
    TIME: ClassVar[str | None] = None

    workspace_id = TextField()

    @classmethod
    def in_workspace(cls, workspace_id: str) -> Any:
        return cls.select().where(cls.workspace_id == workspace_id)

    @classmethod
    def get_in(cls, workspace_id: str, identifier: str, prefix: str) -> Self:
        """The row with that identifier. Raises NotFound, also for what is no identifier with that prefix."""
        found: Self | None = None
        if ids.is_id(identifier, prefix):
            found = cls.in_workspace(workspace_id).where(cls._meta.primary_key == identifier).first()
        if found is None:
            raise NotFound()
        return found

    @classmethod
    def matching(cls, workspace_id: str, filters: Mapping[str, Any]) -> Any:
        """The query behind the list: what matches all the filters that are given."""
        conditions = [getattr(cls, name) == filters[name] for name in cls.FILTERS if name in filters]
        if (since := f"{cls.TIME}_since") in filters:
            conditions.append(getattr(cls, f"{cls.TIME}_at") >= filters[since])
        # What comes after a cursor is before that time all the same, and an index would begin at it instead.
        if (until := f"{cls.TIME}_until") in filters and "cursor" not in filters:
            conditions.append(getattr(cls, f"{cls.TIME}_at") < filters[until])
        return cls.in_workspace(workspace_id).where(*conditions)

    @classmethod
    def order(cls, filters: Mapping[str, Any]) -> tuple[str, ...]:
        """The columns that the list is ordered by, the greatest first: the time where a range of it is asked for."""
        is_by_time = filters.keys() & {f"{cls.TIME}_since", f"{cls.TIME}_until"}
        return (f"{cls.TIME}_at", "id") if is_by_time else ("id",)


def text_array(**options: Any) -> Any:
    return ArrayField(TextField, index=False, **options)


def json_field(**options: Any) -> Any:
    return BinaryJSONField(index=False, dumps=lambda value: json.dumps(value).decode(), **options)


def page_before(query: Any, model: Any, last: Sequence[str | None], limit: int, order: Sequence[str] = ("id",)) -> Any:
    """By the columns of `order`, the greatest first, after the row that has `last` there, up to so many."""
    columns = [getattr(model, name) for name in order]
    if None not in last:
        query = query.where(Tuple(*columns) < Tuple(*last))
    return query.order_by(*(column.desc() for column in columns)).limit(limit)
