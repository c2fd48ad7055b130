"""Whether PostgreSQL has room for what is written."""

from __future__ import annotations

from app.database import rows, transaction


def check() -> None:
    """Raises DatabaseAway where PostgreSQL does not take writes: on a standby, and while its disk is full.

    Tables have free room within their pages, so a row that fits proves nothing: a result that is too large for the
    memory of the query goes to the disk, and leaves nothing behind there.
    """
    with transaction():
        rows("SELECT pg_current_xact_id()")
        rows("SELECT set_config('work_mem', '64kB', true), set_config('temp_tablespaces', '', true)")
        rows("SELECT count(*) FROM generate_series(1, 60000)")  # a mebibyte
