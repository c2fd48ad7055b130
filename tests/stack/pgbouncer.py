"""A real PgBouncer in transaction mode, from the machine's package: it comes in no wheel. Debian: `pgbouncer`."""

import atexit
import shutil
import socket
import subprocess
import time
from pathlib import Path

from app.database import SESSION
from tests.stack.account import unprivileged
from tests.stack.errors import DidNotStart, StackError, last_lines
from tests.stack.ports import free_port
from tests.stack.postgres import Postgres

SETTINGS = """\
[databases]
* = host=127.0.0.1 port={postgres} user=postgres connect_query='{query}'

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = {size}
max_client_conn = 1000
query_timeout = 35
query_wait_timeout = 5
tcp_keepidle = 5
tcp_keepintvl = 3
tcp_keepcnt = 3
tcp_user_timeout = 15000
server_connect_timeout = 2
server_login_retry = 1
"""
# Connections to the server, for all processes together.
POOL_SIZE = 20


class PgBouncer:
    """A pooler in front of one PostgreSQL."""

    def __init__(self, directory: Path, postgres: Postgres) -> None:
        self.directory = directory.resolve()
        self.log = self.directory / "pgbouncer.log"
        self.port, self._postgres = free_port(), postgres
        self._process: subprocess.Popen[bytes] | None = None
        atexit.register(self.stop)

    @property
    def url(self) -> str:
        """The address of the database `bellhop` behind it."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/bellhop"

    def start(self) -> None:
        """Start and wait until it listens. Raises DidNotStart, and StackError if it is not installed."""
        program = shutil.which("pgbouncer")
        if program is None:
            raise StackError("PgBouncer is not there. Install it: apt-get install pgbouncer")
        self.directory.mkdir(parents=True, exist_ok=True)
        query = "; ".join(f"SET {name} TO ''{value}''" for name, value in SESSION.items())
        settings = self.directory / "pgbouncer.ini"
        settings.write_text(SETTINGS.format(port=self.port, postgres=self._postgres.port, query=query, size=POOL_SIZE))
        account = unprivileged()
        if account is not None:
            account.own(self.directory)
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [program, str(settings)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                **(account.popen_arguments() if account else {}),
            )
        deadline = time.monotonic() + 20
        while not self._listens():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise DidNotStart("PgBouncer", last_lines(self.log))
            time.sleep(0.05)

    def stop(self) -> None:
        """End it and wait. Safe to repeat."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0
