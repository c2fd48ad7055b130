"""The load generator: a process of its own that keeps a few connections busy at little cost.

`python -m bench.load` reads a plan and prints what was accepted; both are JSON. It sends the next request as soon as
one is answered, or at a given rate, or with a window of writes that have not been received yet. With a window, each
byte on its standard input reports that one write was received.
"""

import io
import json
import os
import selectors
import socket
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from bench.wire import Reads, Requests, Starts, is_accepted, is_read, is_whole

PATIENCE_SECONDS = 30


@dataclass(frozen=True)
class Plan:
    """The load to offer. `first` is the number of the first contact.

    With `reads`, reads the contacts with these ids. With `starts`, starts an automation for the contacts with these
    ids; `path` is the automation's.
    """

    port: int
    path: str
    token: str
    first: int
    seconds: float
    connections: int = 12
    keys: bool = False
    rate: float | None = None
    window: int | None = None
    reads: Sequence[str] = ()
    starts: Sequence[str] = ()

    def to_json(self) -> str:
        """Returns the plan as a line for `python -m bench.load`."""
        return json.dumps(asdict(self))


class Connection:
    """One socket with at most one request in flight."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.response = b""
        self.number = 0
        self.sent_at = 0.0


class Load:
    """Carries out a plan once."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._requests: Reads | Requests | Starts
        if plan.reads:
            self._requests, self._is_good = Reads(plan.port, plan.path, plan.token, plan.reads), is_read
        elif plan.starts:
            self._requests, self._is_good = Starts(plan.port, plan.path, plan.token, plan.starts), is_accepted
        else:
            self._requests, self._is_good = Requests(plan.port, plan.path, plan.token, plan.keys), is_accepted
        self._idle = [Connection(plan.port) for _ in range(plan.connections)]
        self._selector = selectors.DefaultSelector()
        for connection in self._idle:
            self._selector.register(connection.socket, selectors.EVENT_READ, connection)
        if plan.window is not None:
            self._selector.register(sys.stdin, selectors.EVENT_READ)
        self._sent = self._received = 0
        self._accepted: list[tuple[int, float, float]] = []

    def run(self) -> dict[str, object]:
        """Runs the plan. Returns the accepted requests: number, when sent, when accepted."""
        self._began = time.time()
        ends = self._began + self._plan.seconds
        while time.time() < ends:
            self._send_due()
            self._take_answers()
        while len(self._accepted) < self._sent:
            if time.time() > ends + PATIENCE_SECONDS:
                sys.exit(f"{self._sent - len(self._accepted)} requests were not answered")
            self._take_answers()
        return {"began": self._began, "ended": ends, "accepted": self._accepted}

    def _send_due(self) -> None:
        due = min(len(self._idle), self._due())
        for _ in range(due):
            connection = self._idle.pop()
            connection.number = self._plan.first + self._sent
            connection.response = b""
            connection.sent_at = time.time()
            connection.socket.sendall(self._requests.make(connection.number))
            self._sent += 1

    def _due(self) -> int:
        if self._plan.rate is not None:
            return int((time.time() - self._began) * self._plan.rate) - self._sent
        if self._plan.window is not None:
            return self._plan.window + self._received - self._sent
        return len(self._idle)

    def _take_answers(self) -> None:
        for key, _ in self._selector.select(0.001 if self._plan.rate is not None else 0.05):
            if key.data is None:
                self._received += len(os.read(sys.stdin.fileno(), 65536))
            else:
                self._read(key.data)

    def _read(self, connection: Connection) -> None:
        connection.response += connection.socket.recv(65536)
        if not connection.response:
            sys.exit("the server closed a connection")
        if is_whole(connection.response):
            if not self._is_good(connection.response):
                sys.exit(f"not accepted: {connection.response.decode(errors='replace')}")
            self._accepted.append((connection.number, connection.sent_at, time.time()))
            self._idle.append(connection)


if __name__ == "__main__":
    # Unbuffered, because what follows the plan is read from the descriptor.
    with io.FileIO(sys.stdin.fileno(), closefd=False) as given:
        plan = Plan(**json.loads(given.readline()))
    print(json.dumps(Load(plan).run()))
