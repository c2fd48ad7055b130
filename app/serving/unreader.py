"""The received part of a request to `web`, and how fast it arrives."""

from __future__ import annotations

import io
import socket
import time
from collections.abc import Callable
from enum import Enum, auto

from gunicorn.http.unreader import SocketUnreader

from app.serving import cookies

# A client that sends too little for this long has stopped sending, or means harm.
STALL_SECONDS = 10
# Bytes that one connection may keep in memory. Larger heads are left to the parser, which refuses most of them.
_HEAD_BYTES, _BODY_BYTES, _PART_BYTES = 32 * 1024, 64 * 1024, 16 * 1024
# Bytes that a client may send while its connection is being closed, as in gunicorn.
_LINGER_BYTES = 64 * 1024


class Arrived(Enum):
    """How much of a request has arrived."""

    PART = auto()
    ALL = auto()
    LARGE = auto()  # the request is incomplete, and a thread has to read the rest


def arrived(data: bytes) -> tuple[Arrived, int]:
    """Returns how much of a request has arrived, and how many bytes are missing; -1 if unknown.

    `data`: the bytes of the connection so far.
    """
    end = data.find(b"\r\n\r\n")
    if end < 0:
        # A head with a bare LF would never end here. gunicorn refuses it at once.
        is_hopeless = len(data) > _HEAD_BYTES or data.count(b"\n") != data.count(b"\r\n")
        return (Arrived.LARGE if is_hopeless else Arrived.PART), -1
    head = data[: end + 2].lower()
    if b"\r\ntransfer-encoding" in head:
        return Arrived.LARGE, -1
    _, name, rest = head.partition(b"\r\ncontent-length:")
    try:
        length = int(rest.partition(b"\r\n")[0]) if name else 0
    except ValueError:
        return Arrived.ALL, 0  # gunicorn refuses the request
    missing = end + 4 + length - len(data)
    if missing <= 0:
        return Arrived.ALL, 0
    # A client that expects a 100 waits for that before it sends its body.
    is_for_thread = length > _BODY_BYTES or b"\r\nexpect:" in head
    return (Arrived.LARGE if is_for_thread else Arrived.PART), missing


class Unreader(SocketUnreader):  # type: ignore[misc]
    """The bytes of a connection, and how fast the bytes of the current request arrive."""

    buf: io.BytesIO

    def __init__(self, sock: socket.socket, address: str, leave: Callable[[], None]) -> None:
        super().__init__(sock)
        self.address = address
        self.has_place = False  # whether a thread may read the request, and wait for its client
        self.begun = time.monotonic()
        self.is_waiting = False
        self._leave = leave
        self._received = self._missing = 0
        self._waited = 0.0

    def renew(self) -> None:
        """Begins the next request, with the bytes of it that have arrived already."""
        self.begun, self._received, self._waited = time.monotonic(), self.buf.getbuffer().nbytes, 0.0

    def gather(self) -> Arrived:
        """Reads the bytes that have arrived, without waiting.

        If the client has closed the connection, nothing more can arrive: the result is ALL.
        """
        data = self.buf.getvalue()
        while True:
            state, self._missing = arrived(data) if data else (Arrived.PART, 0)
            if state is not Arrived.PART:
                break
            try:
                part = self.sock.recv(_PART_BYTES, socket.MSG_DONTWAIT)
            except BlockingIOError:
                break
            if not part:
                state = Arrived.ALL
                break
            if not data:
                self.begun = time.monotonic()
            self._received += len(part)
            data += part
        self.buf = io.BytesIO()
        self.buf.write(data)
        return state

    def caller(self) -> str:
        """Returns the caller: a session's token that we signed, or the Authorization header's; else "".

        Nothing else that a client puts into these headers makes it count as another caller.
        """
        lines = self.buf.getvalue().partition(b"\r\n\r\n")[0].decode("latin-1").split("\r\n")
        session = cookies.of_settings().token(_field(lines, "cookie"))
        return session or " ".join(_field(lines, "authorization").split()[1:])

    def take_place(self) -> None:
        """Lets a thread read the rest of the request."""
        self.has_place, self._received = True, 0

    def chunk(self, size_hint: int | None = None) -> bytes:
        """Waits for more of the request, in a thread. Gives the place back once the body is complete."""
        self.begun, self.is_waiting = time.monotonic() - self._waited, True
        try:
            data: bytes = super().chunk(size_hint)
        finally:
            self._waited, self.is_waiting = time.monotonic() - self.begun, False
        self._received += len(data)
        if self.has_place and 0 <= self._missing <= self._received:
            self._leave()
        return data

    def drain(self) -> bool:
        """Drops what has arrived. Returns whether closing the connection would lose no response."""
        try:
            part = self.sock.recv(_PART_BYTES, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except OSError:
            return True
        self._received += len(part)
        return not part or self._received > _LINGER_BYTES

    def linger(self) -> bool:
        """Ends the response. Returns whether the client still has to close the connection."""
        self._received = 0
        try:
            self.sock.shutdown(socket.SHUT_WR)
        except OSError:
            return False
        return not self.drain()

    def is_late(self, now: float, least_per_second: int) -> bool:
        """Whether the client sends slower than `least_per_second`, allowing one stall of STALL_SECONDS.

        A client that has sent nothing is not late.
        """
        has_begun = self.is_waiting or self._received > 0
        return has_begun and now - self.begun > STALL_SECONDS + self._received / least_per_second


def _field(lines: list[str], name: str) -> str:
    """Returns a header's value; repeated headers are joined with commas, as gunicorn passes them on."""
    fields = [line.partition(":") for line in lines]
    return ",".join(value.strip(" \t") for key, _, value in fields if key.lower() == name)
