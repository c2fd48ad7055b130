"""Shared by all models: base classes, field types and pages of a list."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import Any, ClassVar, Self

from peewee import SQL, IntegerField, Model, Select, TextField, Tuple, fn
from playhouse.postgres_ext import ArrayField, BinaryJSONField, DateTimeTZField

from app.database import database
from app.errors import NotFound
from app.lib import ids, json

TimeField = DateTimeTZField


def _table_of(model: type[Model]) -> str:
    name = re.sub(r"(?<!^)(?=[A-Z])", "_", model.__name__).lower()
    return re.sub(r"(?<![aeiou])y$", "ie", name) + "s"


class BaseModel(Model):
    """A table, named by the plural of the model.

    `app/migrations` creates it; the model only describes it. Its rows have an `id`, unless its Meta names another
    primary key, or none.
    """

    id = TextField(primary_key=True)

    class Meta:
        database = database
        table_function = _table_of


class OwnedModel(BaseModel):
    """A table whose rows belong to a workspace, and the filters of its list.

    PREFIX begins the identifiers by which callers find rows. FILTERS are columns. TIME names a time column and its
    filters: `occurred` stands for `occurred_at`, `occurred_since` and `occurred_until`. KEYS are the columns besides
    `id` that are unique in a workspace, each with the SQL form in which it is compared. COMPUTED are columns whose
    value is an SQL expression of the row, `new`, when it is inserted. FIXED are columns that never change after the
    insert.
    """

    PREFIX: ClassVar[str]
    FILTERS: ClassVar[tuple[str, ...]] = ()
    TIME: ClassVar[str | None] = None
    KEYS: ClassVar[Mapping[str, str]] = {}
    COMPUTED: ClassVar[Mapping[str, str]] = {}
    FIXED: ClassVar[frozenset[str]] = frozenset()

    workspace_id = TextField()

    @classmethod
    def in_workspace(cls, workspace_id: str) -> Any:
        """Returns a query for the rows of the workspace."""
        return cls.select().where(cls.workspace_id == workspace_id)

    @classmethod
    def find(cls, workspace_id: str, identifier: str) -> Self:
        """Returns the row. Raises NotFound if the workspace has none, or the identifier lacks the PREFIX."""
        found: Self | None = None
        if ids.is_id(identifier, cls.PREFIX):
            found = cls.in_workspace(workspace_id).where(cls._meta.primary_key == identifier).first()
        if found is None:
            raise NotFound()
        return found

    def altered(self, **columns: Any) -> Self:
        """Returns a copy of the row with these columns changed. Stores nothing."""
        copied = copy(self)
        vars(copied).update(__data__=self.__data__ | columns, _dirty=set(columns))
        return copied

    @classmethod
    def matching(cls, workspace_id: str, filters: Mapping[str, Any]) -> Any:
        """Returns a query for the rows that match all given filters."""
        conditions = [getattr(cls, name) == filters[name] for name in cls.FILTERS if name in filters]
        if (since := f"{cls.TIME}_since") in filters:
            conditions.append(getattr(cls, f"{cls.TIME}_at") >= filters[since])
        # Rows after a cursor are before `until` anyway, and with this condition the index scan would start at `until`.
        if (until := f"{cls.TIME}_until") in filters and "cursor" not in filters:
            conditions.append(getattr(cls, f"{cls.TIME}_at") < filters[until])
        return cls.in_workspace(workspace_id).where(*conditions)

    @classmethod
    def order(cls, filters: Mapping[str, Any]) -> tuple[str, ...]:
        """Returns the columns to sort by, descending: the TIME column if it is filtered by, then `id`."""
        is_by_time = filters.keys() & {f"{cls.TIME}_since", f"{cls.TIME}_until"}
        return (f"{cls.TIME}_at", "id") if is_by_time else ("id",)


class MailModel(OwnedModel):
    """A table whose rows are mail while they have `due_at`: workers claim them with `app/mailbox`."""

    due_at = TimeField(null=True)
    leased_until = TimeField(null=True)
    claim = IntegerField(default=0)


def text_array(**options: Any) -> Any:
    """Returns a field for an array of texts."""
    return ArrayField(TextField, index=False, **options)


def json_field(**options: Any) -> Any:
    """Returns a field for JSON that is serialized by `app.lib.json`."""
    return BinaryJSONField(index=False, dumps=lambda value: json.dumps(value).decode(), **options)


def page_before(query: Any, model: Any, last: Sequence[str | None], limit: int, order: Sequence[str] = ("id",)) -> Any:
    """Returns a query for the `limit` rows after `last` in descending `order`; with None, the first."""
    columns = [getattr(model, name) for name in order]
    if None not in last:
        query = query.where(Tuple(*columns) < Tuple(*last))
    return query.order_by(*(column.desc() for column in columns)).limit(limit)


@dataclass(frozen=True, slots=True)
class Count:
    """How many rows were found. `has_more`: there are rows beyond those examined."""

    number: int
    has_more: bool


def count_newest(query: Any, model: Any, conditions: Sequence[Any], most: int) -> Count:
    """Counts the rows that also meet the conditions, among the query's newest `most` rows."""
    meets = reduce(and_, conditions, SQL("true")).alias("meets")
    newest = query.select(model.id, meets).order_by(model.id.desc()).limit(most + 1).alias("newest")
    counted = Select([newest], [fn.COUNT(SQL("*")), fn.COUNT(SQL("*")).filter(newest.c.meets)])
    [(looked_at, number)] = database.execute(counted)
    return Count(min(number, most), looked_at > most)
