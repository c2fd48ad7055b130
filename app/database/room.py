"""Checks that PostgreSQL has disk space for writes."""

from __future__ import annotations

from app.database import rows, transaction


def check() -> None:
    """Raises DatabaseAway if PostgreSQL accepts no writes: on a standby, or while its disk is full.

    Inserting a row would prove nothing, because tables have free space within their pages. Instead, this runs a query
    whose result exceeds `work_mem`: PostgreSQL writes it to disk and deletes it again.
    """
    with transaction():
        rows("SELECT pg_current_xact_id()")
        rows("SELECT set_config('work_mem', '64kB', true), set_config('temp_tablespaces', '', true)")
        rows("SELECT count(*) FROM generate_series(1, 60000)")  # about 1 MiB
