"""Copies of all rows: what takes seconds to make is made once for a module, and put back for each of its tests."""

from __future__ import annotations

from app import database
from tests.cast import all_of, one, tables, written


class Copy:
    """All rows of the database as they are now, until the next copy is made or the connection ends."""

    def __init__(self) -> None:
        emptying = [f"DELETE FROM {table}" for table in tables()]
        filling = [self._keep(table) for table in reversed(tables()) if one(f"SELECT EXISTS (SELECT FROM {table})")]
        # No trigger is to change a row that is put back, and no foreign key to follow one that goes.
        self._statements = "; ".join(["SET LOCAL session_replication_role = replica", *emptying, *filling])
        self._state = written()

    def _keep(self, table: str) -> str:
        columns = ", ".join(
            all_of(
                "SELECT column_name FROM information_schema.columns WHERE table_schema = 'public' AND table_name = %s"
                " AND is_generated = 'NEVER'",
                table,
            )
        )
        database.rows(
            f"DROP TABLE IF EXISTS pg_temp.copy_of_{table};"
            f"CREATE TEMP TABLE copy_of_{table} AS SELECT {columns} FROM {table}"
        )
        return f"INSERT INTO {table} ({columns}) OVERRIDING SYSTEM VALUE SELECT * FROM copy_of_{table}"

    def put_back(self) -> None:
        """Makes the rows of all tables those that were copied. Costs little while nothing has been written."""
        if written() != self._state:
            with database.transaction():
                database.rows(self._statements)
            self._state = written()
