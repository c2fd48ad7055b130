"""A real RabbitMQ on loopback, from the machine's package: it comes in no wheel. Debian: `rabbitmq-server`."""

import atexit
import os
import signal
import subprocess
import time
from contextlib import closing, suppress
from pathlib import Path

import pika
import psutil
from dramatiq import Broker
from pika.exceptions import AMQPError

from app.bells.brokers import QuorumBroker
from tests.stack.errors import DidNotStart, StackError, last_lines
from tests.stack.freezing import freeze
from tests.stack.ports import free_port

# The program behind the package's wrapper, which only root and a user of its own may call.
PROGRAM = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
CONTROL = PROGRAM.with_name("rabbitmqctl")


class RabbitMQ:
    """One node with its own Erlang port mapper. Restarting it keeps queues and their messages."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory.resolve()
        self.log = self.directory / "rabbitmq.log"
        self.port, self._mapper_port, self._distribution_port = free_port(), free_port(), free_port()
        self._process: subprocess.Popen[bytes] | None = None
        atexit.register(self.kill)

    @property
    def url(self) -> str:
        """The address of its default virtual host."""
        return f"amqp://guest:guest@127.0.0.1:{self.port}/%2F"

    def start(self) -> None:
        """Start and wait until it answers. Raises DidNotStart, and StackError if it is not installed."""
        if not PROGRAM.exists():
            raise StackError(f"{PROGRAM} is not there. Install RabbitMQ: apt-get install rabbitmq-server")
        self.directory.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [str(PROGRAM)], env=self._environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        deadline = time.monotonic() + 120  # it needs six seconds of a core
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise DidNotStart("RabbitMQ", last_lines(self.log))
            time.sleep(0.1)

    def stop(self) -> None:
        """Shut it down and wait. Safe to repeat."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Kill it. Safe to repeat."""
        self._end(signal.SIGKILL)

    def empty(self) -> None:
        """Forget all messages that no consumer has fetched."""
        listing = [str(CONTROL), "--quiet", "list_queues", "--no-table-headers", "name"]
        done = subprocess.run(listing, env=self._environment(), capture_output=True, text=True, check=True)
        with closing(pika.BlockingConnection(pika.URLParameters(self.url))) as connection:
            channel = connection.channel()
            for name in done.stdout.split():
                channel.queue_purge(name)

    def broker(self) -> Broker:
        """A Dramatiq broker on it."""
        return QuorumBroker(url=self.url, middleware=[])

    def waiting(self, queue: str) -> int:
        """How many messages no consumer has fetched yet."""
        with closing(pika.BlockingConnection(pika.URLParameters(self.url))) as connection:
            return int(connection.channel().queue_declare(queue, passive=True).method.message_count)

    def freeze(self) -> None:
        """Make it hang until `thaw`: connections stay open without a response."""
        for process in self._family():
            freeze(process)

    def thaw(self) -> None:
        """Resume after `freeze`. Safe to repeat."""
        for process in self._family():
            with suppress(psutil.NoSuchProcess):
                process.resume()

    def _environment(self) -> dict[str, str]:
        own = {name: str(self.directory / name.lower()) for name in ("HOME", "RABBITMQ_MNESIA_BASE")}
        Path(own["HOME"]).mkdir(exist_ok=True)
        return {
            **own,
            "PATH": os.environ.get("PATH", os.defpath),
            "RABBITMQ_NODENAME": f"bellhop{self.port}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_DIST_PORT": str(self._distribution_port),
            "RABBITMQ_LOGS": "-",
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self.directory / "no-plugins"),
            "RABBITMQ_CONFIG_FILE": str(self.directory / "none"),
            "ERL_EPMD_PORT": str(self._mapper_port),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
        }

    def _answers(self) -> bool:
        try:
            pika.BlockingConnection(pika.URLParameters(self.url)).close()
        except (AMQPError, OSError):
            return False
        return True

    def _end(self, how: int) -> None:
        if self._process is not None:
            family = self._family()
            self._process.send_signal(how)
            if how == signal.SIGTERM:
                self._process.wait(timeout=60)
            for process in family:
                with suppress(psutil.NoSuchProcess):
                    process.kill()
            psutil.wait_procs(family, timeout=20)
            self._process = None

    def _family(self) -> list[psutil.Process]:
        """The script, the virtual machine and the port mapper, which leaves the others."""
        assert self._process is not None
        found = psutil.Process(self._process.pid)
        mapper = [each for each in psutil.process_iter() if self._is_mapper(each)]
        return [found, *found.children(recursive=True), *mapper]

    def _is_mapper(self, process: psutil.Process) -> bool:
        try:
            return process.name() == "epmd" and process.environ().get("ERL_EPMD_PORT") == str(self._mapper_port)
        except psutil.Error:
            return False
