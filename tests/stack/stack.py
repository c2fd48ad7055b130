"""The whole service on loopback: servers, settings and processes."""

import json
import os
import secrets
import shlex
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.stack.certificates import Certificates
from tests.stack.commands import Commands
from tests.stack.errors import StackError
from tests.stack.pgbouncer import PgBouncer
from tests.stack.ports import free_port
from tests.stack.postgres import Postgres
from tests.stack.processes import PROCFILE, SMALL, Processes
from tests.stack.rabbitmq import RabbitMQ
from tests.stack.redis import Redis

# Settings of the caller's environment that must not reach the processes.
FOREIGN = {
    "BROKER_URL",
    "DATABASE_POOLING",
    "RETRY_SCHEDULE",
    "STOP_AFTER_FAILURES",
    "WEBHOOK_TIMEOUT_SECONDS",
    "PROBE_PAUSE_SECONDS",
    "RATE_LIMIT",
    "BODY_RETENTION_DAYS",
    "HISTORY_RETENTION_DAYS",
    "LOG_FORMAT",
    "LISTEN_HOST",
    "METRICS_HOST",
    "METRICS_PORT",
    "REALTIME_PORT",
    "REALTIME_URL",
    "SMTP_URL",
    "MAIL_FROM",
    "TRUSTED_PROXIES",
    "MEDIA_DIR",
    "TELEGRAM_API_URL",
    "WHATSAPP_API_URL",
    "OTEL_EXPORTER_OTLP_ENDPOINT",
}


class Stack:
    """PostgreSQL, Redis and the given number of each process type, with their data in one directory.

    Without processes it is just the servers and the settings. `settings` are the service's and override those made
    here. `ports` are preferences for `web`, `realtime`, `postgres` and `redis`; taken ones are replaced by free ones.
    As a context manager it is migrated and ready inside the block, and stopped with all its processes outside. With
    `BROKER=rabbitmq` in the environment, RabbitMQ carries the bells; with `POOLER=pgbouncer`, PgBouncer stands between
    the processes and PostgreSQL; with `PROCFILE=small`, the processes are those of Procfile.small.
    The code is in the folder of `procfile`. `host` is the address on which PostgreSQL and Redis listen.
    """

    def __init__(
        self,
        directory: Path,
        processes: Mapping[str, int] | None = None,
        settings: Mapping[str, str] | None = None,
        ports: Mapping[str, int] | None = None,
        postgres_settings: Mapping[str, str] | None = None,
        on_line: Callable[[str, str], None] | None = None,
        on_end: Callable[[str, int], None] | None = None,
        procfile: Path | None = None,
        host: str = "127.0.0.1",
    ) -> None:
        self.directory = directory.resolve()
        self.directory.mkdir(parents=True, exist_ok=True)
        wishes = ports or {}
        self.port = free_port(wishes.get("web"))
        self.realtime_port = free_port(wishes.get("realtime"))
        self.postgres = Postgres(
            self.directory / "postgres", free_port(wishes.get("postgres")), postgres_settings, host
        )
        self.redis = Redis(self.directory / "redis", free_port(wishes.get("redis")), host)
        self.pooler: PgBouncer | None = None
        if os.environ.get("POOLER") == "pgbouncer":
            self.pooler = PgBouncer(self.directory / "pgbouncer", self.postgres)
        self.broker: Redis | RabbitMQ = self.redis
        if os.environ.get("BROKER") == "rabbitmq":
            self.broker = RabbitMQ(self.directory / "rabbitmq")
        self.certificates = Certificates(self.directory / "certificates")
        self.environment = self._environment(settings or {})
        self.processes = Processes(
            processes or {},
            self.environment,
            self.directory / "logs",
            on_line=on_line,
            on_end=on_end,
            procfile=procfile or (SMALL if os.environ.get("PROCFILE") == "small" else PROCFILE),
        )
        self._commands = Commands(self.processes.root, self.environment)

    @property
    def base_url(self) -> str:
        """The address of the web process."""
        return self.environment["BASE_URL"]

    @property
    def bell_servers(self) -> list[Redis | RabbitMQ]:
        """Redis, and the broker if that is another."""
        return [self.redis] if self.broker is self.redis else [self.redis, self.broker]

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start the servers, migrate, then start the processes. Raises DidNotStart."""
        self.start_servers()
        if self.processes.names:
            self.processes.upgrade()
            self.processes.start()
            self.processes.wait_ready()

    def start_servers(self) -> None:
        """Start PostgreSQL and Redis, and PgBouncer and RabbitMQ if they are wanted. Raises DidNotStart."""
        self.postgres.start()
        if self.pooler:
            self.pooler.start()
        self.redis.start()
        if self.broker is not self.redis:
            self.broker.start()

    def stop(self) -> None:
        """Stop everything, the processes first. Safe to repeat."""
        self._commands.stop()
        self.processes.stop()
        for server in self.bell_servers:
            server.stop()
        if self.pooler:
            self.pooler.stop()
        self.postgres.stop()

    def command(self, *arguments: str, input: str | None = None) -> Any:
        """The output of `python -m app …`, parsed as JSON; None if it is empty. Raises StackError if it fails."""
        code, output, errors = self._commands.run(arguments, input or "")
        if code != 0:
            raise StackError(f"python -m app {' '.join(arguments)} failed:\n{output}{errors}")
        return _read(output)

    def write_settings(self) -> Path:
        """Write the settings to a file that a shell can source, so that `python -m app …` uses this service."""
        path = self.directory / "settings.sh"
        names = (
            "DATABASE_URL",
            "REDIS_URL",
            "SECRET_KEY",
            "BASE_URL",
            "PORT",
            "WEBHOOK_ALLOWED_NETWORKS",
            "WEBHOOK_CA_FILE",
        )
        path.touch(mode=0o600)
        path.write_text("".join(f"export {name}={shlex.quote(self.environment[name])}\n" for name in names))
        return path

    def _environment(self, settings: Mapping[str, str]) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if name not in FOREIGN}
        runtime = {
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]),
            "PYTHONUNBUFFERED": "1",
        }
        self._made = {
            "DATABASE_URL": self.postgres.url,
            "REDIS_URL": self.redis.url,
            "SECRET_KEY": _kept_secret(self.directory / "secret-key"),
            "BASE_URL": f"http://127.0.0.1:{self.port}",
            "PORT": str(self.port),
            "REALTIME_PORT": str(self.realtime_port),
            "REALTIME_URL": f"http://127.0.0.1:{self.realtime_port}",
            "WEBHOOK_ALLOWED_NETWORKS": "127.0.0.0/8",
            "WEBHOOK_CA_FILE": str(self.certificates.ca_file),
            "MEDIA_DIR": str(self.directory / "media"),
            # Nobody answers there.
            "TELEGRAM_API_URL": "https://127.0.0.1:9",
            "WHATSAPP_API_URL": "https://127.0.0.1:9/v23.0",
        }
        if self.broker is not self.redis:
            self._made["BROKER_URL"] = self.broker.url
        if self.pooler:
            self._made |= {"DATABASE_URL": self.pooler.url, "DATABASE_POOLING": "transaction"}
        return inherited | runtime | self._made | dict(settings)


def _kept_secret(path: Path) -> str:
    if not path.exists():
        # Written under another name first: a truncated key would make the data unreadable forever.
        unfinished = path.with_suffix(".new")
        unfinished.touch(mode=0o600)
        unfinished.write_text(secrets.token_hex(32))
        unfinished.rename(path)
    return path.read_text().strip()


def _read(output: str) -> Any:
    try:
        return json.loads(output) if output.strip() else None
    except ValueError as error:
        raise StackError(f"Not JSON: {output}") from error
