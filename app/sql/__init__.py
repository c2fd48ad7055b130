"""Queries that peewee expresses badly: one per file, named and described."""

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

_PARAMETER = re.compile(r"%\((\w+)\)s")


@cache
def load(name: str) -> str:
    """Returns the query in the file of that name."""
    return (Path(__file__).parent / f"{name}.sql").read_text()


def array(values: Iterable[object]) -> str:
    """Returns an array literal of texts and numbers, which costs less than psycopg2's ARRAY[…]."""
    return "{" + ",".join([_element(value) for value in values]) + "}"


def _element(value: object) -> str:
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    return "NULL" if value is None else str(value)


class Prepared(str):
    """The EXECUTE statement of a prepared `query`, with its parameters. `preparation`: its PREPARE."""

    query: str
    preparation: str


@cache
def prepared(name: str, query: str | None = None) -> Prepared:
    """Returns the file's query, or `query`, to be prepared once per connection.

    For frequent queries only: parsing and planning are a quarter of the cost of a short query. A generic plan does not
    know the values: it prunes partitions only if a condition compares with a single value, as `id >= %(first_id)s`.
    """
    query = query or load(name)
    names = list(dict.fromkeys(_PARAMETER.findall(query)))
    numbered = _PARAMETER.sub(lambda found: f"${names.index(found[1]) + 1}", query)
    execute = Prepared(f"EXECUTE {name}" + (f" ({', '.join(f'%({each})s' for each in names)})" if names else ""))
    execute.query = query
    execute.preparation = f"PREPARE {name} AS {numbered}"
    return execute
