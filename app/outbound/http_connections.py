"""HTTP/1.1 on one connection: reads responses within limits, or else closes the connection."""

from __future__ import annotations

import asyncio
import re
import select
from collections.abc import Callable
from typing import cast

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

LONGEST_BODY = 16 * 1024  # the most bytes kept of the body of a delivery's response
LONGEST_HEAD = 64 * 1024  # the most bytes before the body, including 1xx responses
LONGEST_OVERHEAD = 1024 * 1024  # bytes beyond the kept body: chunk sizes, and data already in flight

INTERIM_HEADS = rb"(?:HTTP/1\.[01] 1\d\d[^\r\n]*\r?\n(?:[^\r\n]+\r?\n)*\r?\n)*"
STATUS_LINE = re.compile(INTERIM_HEADS + rb"HTTP/1\.[01] ([2-5]\d\d)(?: [^\r\n]*)?\r?\n")


class NotHttp(Exception):
    """The response is not HTTP."""


class TooLong(Exception):
    """The response, or its head, exceeds a limit."""


class DeadlinePassed(Exception):
    """The response did not come in time."""


class Response:
    """The part of a response received so far, which survives a timeout.

    Keeps at most `most_bytes` of the body. If `headers` is a list, collects (lower-case name, value). `end` is called
    once; then `failure` is None if the response is `complete`.
    """

    __slots__ = (
        *("body", "complete", "compression", "failure", "head", "headers", "is_bodiless", "is_cut"),
        *("location", "most_bytes", "received", "retry_after", "status"),
    )

    def __init__(self, most_bytes: int, headers: list[tuple[str, str]] | None, is_bodiless: bool) -> None:
        self.most_bytes = most_bytes
        self.headers = headers
        self.is_bodiless = is_bodiless  # an answer to HEAD, whatever its Content-Length says
        self.status: int | None = None
        self.location: str | None = None
        self.compression: str | None = None
        self.retry_after: str | None = None
        self.body = bytearray()
        self.is_cut = False
        self.complete = False
        self.failure: Exception | None = None
        self.head = bytearray()  # the head as received, until it is complete
        self.received = 0

    def end(self, failure: Exception | None) -> None:
        """Ends the response. `failure`: why, if it was incomplete."""
        if not self.complete:
            self.failure = failure
        if self.status is None and (found := STATUS_LINE.match(self.head)):
            # The parser reports the status only after the last header, but the status line is enough.
            self.status = int(found[1])

    @property
    def is_compressed(self) -> bool:
        """Whether the body was sent compressed, so that `kept_body` returns a note instead."""
        return bool(self.body and self.compression and self.compression.lower() != "identity")

    @property
    def is_whole(self) -> bool:
        """Whether `kept_body` is all of the body."""
        return self.complete and not self.is_cut and not self.is_compressed

    def kept_body(self) -> bytes:
        """Returns the body, or a note that it was compressed: nothing is decompressed."""
        if self.is_compressed:
            assert self.compression is not None
            return f"(The body is compressed with {_printable(self.compression, 40)} and was not kept.)".encode()
        return bytes(self.body)

    def redirect_target(self) -> str:
        """Returns the Location without its query, which may repeat what we sent; "" if there is none."""
        return _printable((self.location or "").partition("?")[0], 500)


class Connection(asyncio.Protocol):
    """One connection. It can be reused once a response has been read completely and nothing followed.

    `gone` is called as soon as the connection cannot be reused, perhaps more than once.
    """

    def __init__(self, gone: Callable[[Connection], None]) -> None:
        self.idle_since = 0.0
        self._gone = gone
        self._transport: asyncio.Transport | None = None
        self._incoming = select.poll()
        self._response: Response | None = None
        self._is_clogged = False
        self._keep_alive = False
        self._parser = HttpResponseParser(self)
        # Safe, because only one response is in flight at a time, so the end of a response stays unambiguous.
        self._parser.set_dangerous_leniencies(
            lenient_headers=True, lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
        )

    def ask(self, request: bytes, response: Response) -> None:
        """Sends the request. Stores the outcome in `response`."""
        self._response = response
        self._keep_alive = False
        if self._transport is None:
            self._end(ConnectionResetError())
        else:
            self._transport.write(request)

    def stop_at_deadline(self) -> None:
        """Ends the response with the part received so far."""
        self._end(DeadlinePassed())

    def abort(self) -> None:
        """Closes the connection at once. Safe to repeat."""
        # Not close(): a clean TLS shutdown waits for the other side, so a silent server would hold the socket.
        transport, self._transport = self._transport, None
        if transport is not None:
            transport.abort()
        self._gone(self)  # needed if the connection was never made: no transport may report its end
        self._end(ConnectionAbortedError())

    def usable(self) -> bool:
        """Whether a request can be sent now."""
        # Unread data can only be the end of the connection or an unsolicited answer. A request sent after it would be
        # lost and recorded as failed.
        return self._transport is not None and not self._transport.is_closing() and not self._incoming.poll(0)

    # Called by the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's transport is not a subclass
        self._incoming.register(transport.get_extra_info("socket").fileno(), select.POLLIN)

    def data_received(self, data: bytes) -> None:
        response = self._response
        if response is None:
            # Unsolicited, like the 408 that some load balancers send before closing. The next request would get it.
            self.abort()
            return
        response.received += len(data)
        if response.status is None:
            response.head += data[:LONGEST_HEAD]
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade):
            self._keep_alive = False
            self._end(NotHttp())
            return
        if response.complete or (response.status is not None and len(response.body) >= response.most_bytes):
            self._end(None)
        elif response.received > response.most_bytes + LONGEST_OVERHEAD or (
            response.status is None and len(response.head) > LONGEST_HEAD
        ):
            self._end(TooLong())

    def eof_received(self) -> None:
        self.abort()

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self._gone(self)
        self._end(error or ConnectionResetError())

    def pause_writing(self) -> None:
        self._is_clogged = True

    def resume_writing(self) -> None:
        self._is_clogged = False

    # Called by the parser

    def on_message_begin(self) -> None:
        if self._response is None or self._response.complete:
            raise NotHttp

    def on_header(self, name: bytes, value: bytes) -> None:
        response = self._response
        if response is None or response.status is not None:
            return
        name = name.lower()
        if response.headers is not None:
            response.headers.append((name.decode("latin-1"), value.decode("latin-1")))
        match name:
            case b"location":
                response.location = response.location or value.decode(errors="surrogateescape")
            case b"content-encoding":
                response.compression = response.compression or value.decode(errors="surrogateescape")
            case b"retry-after":
                response.retry_after = response.retry_after or value.decode("latin-1")

    def on_headers_complete(self) -> None:
        response = self._response
        assert response is not None
        status = self._parser.get_status_code()
        if 100 <= status < 200 and status != 101:
            response.location = response.compression = response.retry_after = None
            if response.headers is not None:
                response.headers.clear()
        else:
            response.status = status
            response.complete = response.is_bodiless

    def on_body(self, part: bytes) -> None:
        response = self._response
        if response is not None:
            room = response.most_bytes - len(response.body)
            response.is_cut |= len(part) > room
            response.body += part[:room]

    def on_message_complete(self) -> None:
        response = self._response
        if response is not None and response.status is not None:
            response.complete = True
            # After a response to HEAD, the parser would read further data as a body. A server may also answer before it
            # has read the whole request, and never read the rest.
            self._keep_alive = self._parser.should_keep_alive() and not self._is_clogged and not response.is_bodiless

    def _end(self, failure: Exception | None) -> None:
        response, self._response = self._response, None
        if response is not None:
            if not (response.complete and self._keep_alive):
                self.abort()
            response.end(failure)  # last, because the connection may be reused at once


def _printable(text: str, longest: int) -> str:
    return "".join(character if character.isprintable() else "?" for character in text[:longest])
