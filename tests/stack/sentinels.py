"""Three Redis servers and three Sentinels that watch them, from the machine's package. Debian: `redis-server`."""

from __future__ import annotations

import atexit
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import redis
from redis.sentinel import Sentinel

from tests.stack.certificates import Certificates
from tests.stack.errors import DidNotStart, StackError, last_lines
from tests.stack.ports import free_port

NAME = "bellhop"
# How long a server has to be silent before the Sentinels take it for dead.
DOWN_AFTER_SECONDS = 2.0
COUNT = 3


class Sentinels:
    """The servers, of which one is the primary, and their Sentinels; with certificates, over TLS in all directions."""

    def __init__(self, directory: Path, certificates: Certificates | None = None) -> None:
        self.directory = directory.resolve()
        self._certificates = certificates
        self._servers = [free_port() for _ in range(COUNT)]
        self._watchers = [free_port() for _ in range(COUNT)]
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        atexit.register(self.stop)

    @property
    def url(self) -> str:
        """The address for `REDIS_URL`."""
        hosts = ",".join(f"127.0.0.1:{port}" for port in self._watchers)
        scheme, options = "redis", ""
        if files := self._certificates:
            scheme = "rediss"
            options = f"?ssl_ca_certs={files.ca_file}&ssl_certfile={files.server_file}&ssl_keyfile={files.server_file}"
        return f"{scheme}+sentinel://{hosts}/{NAME}/0{options}"

    def start(self) -> None:
        """Start and wait until each Sentinel knows all. Raises DidNotStart, and StackError if it is not installed."""
        self.directory.mkdir(parents=True, exist_ok=True)
        for port in self._servers:
            self._start(port, f"replicaof 127.0.0.1 {self._servers[0]}" if port != self._servers[0] else "")
        for port in self._watchers:
            self._start(port, WATCHING.format(port=self._servers[0], ms=int(DOWN_AFTER_SECONDS * 1000)), "--sentinel")
        deadline = time.monotonic() + 30
        while not all(self._knows_all(port) for port in self._watchers):
            if time.monotonic() > deadline:
                raise DidNotStart("Sentinel", last_lines(self._log(self._watchers[0])))
            time.sleep(0.1)

    def stop(self) -> None:
        """Kill all. Safe to repeat."""
        for process in self._processes.values():
            process.kill()
        for process in self._processes.values():
            process.wait()
        self._processes.clear()

    def primary(self) -> int:
        """The port of the primary, as the Sentinels say. Raises redis.RedisError while none lives."""
        asked = [("127.0.0.1", port) for port in self._watchers]
        return int(Sentinel(asked, sentinel_kwargs=self._options()).discover_master(NAME)[1])

    def kill_primary(self) -> None:
        """Kill it for good."""
        process = self._processes[self.primary()]
        process.kill()
        process.wait()

    def fail_over(self) -> None:
        """Have another become the primary while the one so far lives on as its replica."""
        redis.Redis(port=self._watchers[0], **self._options()).execute_command("SENTINEL", "FAILOVER", NAME)

    def _start(self, port: int, further: str, *arguments: str) -> None:
        program = shutil.which("redis-server")
        if program is None:
            raise StackError("Redis is not there. Install it: apt-get install redis-server")
        home = self.directory / str(port)
        home.mkdir()
        settings = home / "redis.conf"  # Sentinel keeps its state in it
        settings.write_text(f'bind 127.0.0.1\ndir {home}\nsave ""\n{self._listening(port)}\n{further}\n')
        with self._log(port).open("ab") as log:
            self._processes[port] = subprocess.Popen(
                [program, str(settings), *arguments, "--set-proc-title", "no"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _listening(self, port: int) -> str:
        if not self._certificates:
            return f"port {port}"
        return TLS.format(port=port, ca=self._certificates.ca_file, own=self._certificates.server_file)

    def _options(self) -> dict[str, Any]:
        if not (files := self._certificates):
            return {}
        own = str(files.server_file)
        return {"ssl": True, "ssl_ca_certs": str(files.ca_file), "ssl_certfile": own, "ssl_keyfile": own}

    def _knows_all(self, port: int) -> bool:
        try:
            state: Any = redis.Redis(port=port, **self._options()).sentinel_master(NAME)
        except redis.RedisError:
            return False
        return bool(state["num-slaves"] == state["num-other-sentinels"] == COUNT - 1)

    def _log(self, port: int) -> Path:
        return self.directory / f"{port}.log"


WATCHING = """\
sentinel monitor bellhop 127.0.0.1 {port} 2
sentinel down-after-milliseconds bellhop {ms}
sentinel failover-timeout bellhop 10000
"""
TLS = """\
port 0
tls-port {port}
tls-ca-cert-file {ca}
tls-cert-file {own}
tls-key-file {own}
tls-replication yes
tls-auth-clients yes
"""
