"""A replica of a PostgreSQL: a second server that follows the first one."""

from __future__ import annotations

from pathlib import Path

from tests.stack.errors import DidNotStart, last_lines
from tests.stack.postgres import Postgres


class Standby(Postgres):
    """A server that replays what the primary, which runs, has committed. It answers reads only."""

    def __init__(self, directory: Path, primary: Postgres) -> None:
        super().__init__(directory, settings=primary.settings)
        self._primary = primary

    def _initialise(self) -> None:
        command = ["pg_basebackup", "--pgdata", str(self.data), "--write-recovery-conf", "--checkpoint=fast"]
        if self._spawn([*command, "--no-sync", "--dbname", self._primary.database_url("postgres")]).wait() != 0:
            raise DidNotStart("the replica of PostgreSQL", last_lines(self.log))
