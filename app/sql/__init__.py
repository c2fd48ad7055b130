"""Queries that peewee expresses badly: one per file, named and described."""

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

_PARAMETER = re.compile(r"%\((\w+)\)s")


@cache
def load(name: str) -> str:
    """The query in the file of that name."""
    return (Path(__file__).parent / f"{name}.sql").read_text()


def array(values: Iterable[object]) -> str:
    """A PostgreSQL array literal of texts and numbers, cheaper on both sides than the ARRAY[…] that psycopg2 writes."""
    return "{" + ",".join([_element(value) for value in values]) + "}"


def _element(value: object) -> str:
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    return "NULL" if value is None else str(value)


class Prepared(str):
    """The EXECUTE statement of a prepared query, with the parameters of the query."""

    query: str
    preparation: str


@cache
def prepared(name: str, query: str | None = None) -> Prepared:
    """The file's query, or the one given, prepared once per connection. For frequent queries only.

    Parsing and planning are a quarter of the cost of a short query. A generic plan does not know its values: it prunes
    partitions only where a condition compares with single values, as `id >= %(first_id)s` does.
    """
    query = query or load(name)
    names = list(dict.fromkeys(_PARAMETER.findall(query)))
    numbered = _PARAMETER.sub(lambda found: f"${names.index(found[1]) + 1}", query)
    execute = Prepared(f"EXECUTE {name}" + (f" ({', '.join(f'%({each})s' for each in names)})" if names else ""))
    execute.query = query
    execute.preparation = f"PREPARE {name} AS {numbered}"
    return execute
