"""Locks, inserts, updates and deletes sets of rows of a table, each in one statement."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple

import orjson

from app import sql
from app.database import rows
from app.models.base import OwnedModel


class Key(NamedTuple):
    """The identity of a row in its workspace, made by `key`. `name`: `id`, or one of the KEYS."""

    model: type[OwnedModel]
    workspace_id: str
    name: str
    value: str


def key(model: type[OwnedModel], workspace_id: str, name: str, value: str) -> Key:
    """Returns the key in its normal form, which is unique in a workspace."""
    return Key(model, workspace_id, name, value.lower() if "lower" in model.KEYS.get(name, "") else value)


def keys_of(row: Any) -> Iterator[Key]:
    """Returns every key of the row."""
    yield key(type(row), row.workspace_id, "id", row.id)
    for name in row.KEYS:
        if (value := getattr(row, name)) is not None:
            yield key(type(row), row.workspace_id, name, value)


def lock(model: type[OwnedModel], keys: Sequence[Key]) -> tuple[datetime, list[tuple[Key, Any | None]]]:
    """Locks the rows of `model` that have any of these keys until the transaction ends. Never waits.

    Returns the database's time, which is later than any change to these rows, and the keys that were found. Each has
    its row, or None if another transaction has locked the row. A row that changed just before it was locked may no
    longer have the key.
    """
    arrays = _arrays(
        workspaces=(k.workspace_id for k in keys), names=(k.name for k in keys), values=(k.value for k in keys)
    )
    found = rows(_lock_statement(model, tuple(sorted({k.name for k in keys}))), arrays)
    names = _columns(model)
    locked: dict[str, Any] = {}
    for _, _, _, _, row_id, is_locked, *values in found:
        if row_id not in locked:
            locked[row_id] = model(**dict(zip(names, values, strict=True))) if is_locked else None
    return max(at for at, *_ in found), [
        (Key(model, workspace_id, name, value), locked[row_id])
        for _, workspace_id, name, value, row_id, *_ in found
        if row_id is not None
    ]


def reserve(keys: Sequence[Key]) -> set[Key]:
    """Reserves keys until the transaction ends: no other can create a row with one of them.

    Never waits. Returns the keys that were free. Look them up again afterwards: another transaction may have created a
    row just before. A reservation also keeps others from opening a segment (see `ContactSegment.open_before`).
    """
    texts = {f"{k.model._meta.table_name} {k.workspace_id} {k.name} {k.value}": k for k in keys}
    reserved = rows(
        """
        SELECT key FROM unnest(%(keys)s::text[], %(workspaces)s::text[]) AS sought(key, workspace_id)
        WHERE pg_try_advisory_xact_lock_shared(hashtextextended('contact_segments ' || workspace_id, 0))
            AND pg_try_advisory_xact_lock(hashtextextended(key, 0))
        """,
        _arrays(keys=texts, workspaces=(k.workspace_id for k in texts.values())),
    )
    return {texts[text] for (text,) in reserved}


def insert(model: type[OwnedModel], new: Sequence[Any]) -> None:
    """Inserts the rows; PostgreSQL computes their COMPUTED columns."""
    rows(_insert_statement(model), {"rows": _as_json(new)})


def update(model: type[OwnedModel], changed: Sequence[Any]) -> None:
    """Updates the rows, found by `id`: every column that is neither FIXED nor COMPUTED."""
    rows(_update_statement(model), {"rows": _as_json(changed), "ids": sql.array(row.id for row in changed)})


def delete(model: type[OwnedModel], row_ids: Sequence[str]) -> None:
    """Deletes the rows with these identifiers."""
    rows(f"DELETE FROM {model._meta.table_name} WHERE id = ANY(%s)", (list(row_ids),))


# Not a prepared statement, which would keep its plan: while the table is small, any index that begins with the
# workspace looks as good to the planner as the unique one.
@cache
def _lock_statement(model: type[OwnedModel], names: Sequence[str]) -> str:
    table, columns, forms = model._meta.table_name, _columns(model), {"id": "{}", **model.KEYS}
    lookups = " UNION ALL ".join(
        f"""
        SELECT id FROM {table} WHERE sought.name = '{name}' AND workspace_id = sought.workspace_id
            AND {forms[name].format(name)} = {forms[name].format("sought.value")}
        """
        for name in names
    )
    return f"""
        WITH sought AS (
            SELECT * FROM unnest(%(workspaces)s::text[], %(names)s::text[], %(values)s::text[])
                AS sought(workspace_id, name, value)
        ), wanted AS MATERIALIZED (
            SELECT sought.*, found.id FROM sought CROSS JOIN LATERAL ({lookups}) AS found
        ), locked AS MATERIALIZED (
            SELECT {", ".join(columns)} FROM {table} WHERE id = ANY(ARRAY(SELECT id FROM wanted))
            ORDER BY id FOR NO KEY UPDATE SKIP LOCKED
        )
        SELECT clock_timestamp(), wanted.workspace_id, wanted.name, wanted.value, wanted.id, locked.id IS NOT NULL,
            {", ".join(f"locked.{column}" for column in columns)}
        FROM (SELECT) AS once LEFT JOIN wanted ON true LEFT JOIN locked ON locked.id = wanted.id
    """


@cache
def _insert_statement(model: type[OwnedModel]) -> sql.Prepared:
    table, columns = model._meta.table_name, _columns(model)
    values = [model.COMPUTED.get(column, f"new.{column}") for column in columns]
    return sql.prepared(
        f"insert_{table}",
        f"""
        INSERT INTO {table} ({", ".join(columns)})
        SELECT {", ".join(values)} FROM json_populate_recordset(NULL::{table}, %(rows)s) AS new
        """,
    )


@cache
def _update_statement(model: type[OwnedModel]) -> sql.Prepared:
    table = model._meta.table_name
    unchanged = {"id", "workspace_id", *model.COMPUTED, *model.FIXED}
    changeable = [column for column in _columns(model) if column not in unchanged]
    return sql.prepared(
        f"update_{table}",
        f"""
        UPDATE {table} SET {", ".join(f"{column} = new.{column}" for column in changeable)}
        FROM json_populate_recordset(NULL::{table}, %(rows)s) AS new
        WHERE {table}.id = new.id AND {table}.id = ANY(%(ids)s)
        """,
    )


def _columns(model: type[OwnedModel]) -> list[str]:
    return [field.column_name for field in model._meta.sorted_fields]


def _arrays(**values: Iterable[str]) -> dict[str, str]:
    return {name: sql.array(each) for name, each in values.items()}


def _as_json(written: Sequence[Any]) -> str:
    # app.lib.json would truncate times to milliseconds.
    return orjson.dumps([row.__data__ for row in written], default=str).decode()
