"""Listeners for tests: clients of live updates."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from app.database import rows
from app.domain.insight import updates
from tests.cast import until


def an_hour_passes() -> None:
    """Moves what the scheduler knows of updates into the past: what runs at this moment has run an hour ago."""
    updates.forget_old()
    rows("UPDATE updates SET created_at = created_at - interval '61 minutes'")
    rows("UPDATE update_horizons SET at = at - interval '61 minutes'")


@dataclass(frozen=True, slots=True)
class Heard:
    """An event, and the place that the listener has with it."""

    kind: str
    data: Any
    place: str


@dataclass
class Ear:
    """One stream. It remembers its place as browsers do."""

    port: int
    path: str = "/live/workspace"
    headers: Mapping[str, str] = field(default_factory=dict)
    place: str = ""
    heard: list[Heard] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.status = 0
        self.head: dict[str, str] = {}
        self.raw = b""
        self.is_over = True
        self._left = b""
        self._socket: socket.socket | None = None

    def open(self, method: str = "GET") -> Ear:
        """Opens the stream, or opens it again behind what was heard last."""
        self.close()
        self.raw = self._left = b""
        self._socket = socket.create_connection(("127.0.0.1", self.port), 20)
        self.is_over = False
        headers = {"Host": "bellhop.test", **self.headers, **({"Last-Event-ID": self.place} if self.place else {})}
        lines = [f"{method} {self.path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
        self._socket.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        until(lambda: b"\r\n\r\n" in self._left or self.is_over or self._receive(), 60)
        head, _, self._left = self._left.partition(b"\r\n\r\n")
        first, *rest = head.decode().split("\r\n")
        self.status = int(first.split(" ")[1])
        self.head = {name.lower(): value for name, _, value in (line.partition(": ") for line in rest)}
        self._socket.settimeout(0.005)
        return self

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        self.is_over = True

    def listen(self) -> Ear:
        """Takes in what has come so far."""
        if not self.is_over:
            self._receive()
        *blocks, self._left = self._left.split(b"\n\n")
        for block in blocks:
            self._take(block.decode())
        return self

    def until(self, condition: Callable[[list[Heard]], Any]) -> Any:
        """Listens until the condition holds for what was heard."""
        return until(lambda: condition(self.listen().heard))

    def until_placed(self) -> Ear:
        """Listens until it knows where it is, so that it misses nothing from then on."""
        until(lambda: self.listen().place)
        return self

    def body(self) -> Any:
        """The document of a refusal."""
        until(lambda: self.is_over or self._receive())
        return json.loads(self._left)

    def _receive(self) -> None:
        assert self._socket is not None
        try:
            data = self._socket.recv(65536)
        except TimeoutError:
            return
        except OSError:
            data = b""
        self.is_over = not data
        self.raw += data
        self._left += data

    def _take(self, block: str) -> None:
        fields = dict(line.split(": ", 1) for line in block.split("\n") if ": " in line and not line.startswith(":"))
        self.place = fields.get("id", self.place)
        if "data" in fields:
            self.heard.append(Heard(fields["event"], json.loads(fields["data"]), self.place))
