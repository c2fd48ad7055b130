"""The statements of a page."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from app.database import Database

MOST_STATEMENTS = 12


@contextmanager
def counted_statements() -> Iterator[list[str]]:
    """Everything that the database is asked in the block."""
    seen: list[str] = []
    real = Database._execute

    def execute(self: Database, sql: Any, parameters: Any) -> Any:
        seen.append(str(sql))
        return real(self, sql, parameters)

    Database._execute = execute  # type: ignore[method-assign]
    try:
        yield seen
    finally:
        Database._execute = real  # type: ignore[method-assign]
