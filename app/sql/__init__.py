"""Queries that peewee says badly: each file holds one, named and described."""

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

_PARAMETER = re.compile(r"%\((\w+)\)s")


@cache
def load(name: str) -> str:
    return (Path(__file__).parent / f"{name}.sql").read_text()


def array(values: Iterable[object]) -> str:
    """An array of texts and numbers as PostgreSQL writes one: what psycopg2 writes, ARRAY[…], costs both sides more."""
    return "{" + ",".join([_element(value) for value in values]) + "}"


def _element(value: object) -> str:
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    return "NULL" if value is None else str(value)


class Prepared(str):
    """The EXECUTE of a query that the connection has prepared, with the same parameters."""

    preparation: str


@cache
def prepared(name: str, query: str | None = None) -> Prepared:
    """The file's query, or the one given, where it is run so often that connections prepare it.

    To read and plan a short one is a quarter of its cost. What the planner does not see are the values: of a table in
    partitions it finds theirs only where a condition compares with single values, as `id >= %(first_id)s` does.
    """
    query = query or load(name)
    names = list(dict.fromkeys(_PARAMETER.findall(query)))
    numbered = _PARAMETER.sub(lambda found: f"${names.index(found[1]) + 1}", query)
    execute = Prepared(f"EXECUTE {name} ({', '.join(f'%({each})s' for each in names)})")
    execute.preparation = f"PREPARE {name} AS {numbered}"
    return execute
