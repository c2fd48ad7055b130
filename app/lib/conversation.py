"""HTTP/1.1 over one connection: what was asked for is read, within limits, and whatever else comes ends it."""

from __future__ import annotations

import asyncio
import re
import select
from collections.abc import Callable, Mapping
from typing import cast

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

LONGEST_BODY = 16 * 1024
LONGEST_HEAD = 64 * 1024  # everything before the body, with any 1xx answers
LONGEST_ANSWER = 1024 * 1024  # on the wire: chunk sizes and extensions count, and what was sent before we could stop it

INTERIM_HEADS = rb"(?:HTTP/1\.[01] 1\d\d[^\r\n]*\r?\n(?:[^\r\n]+\r?\n)*\r?\n)*"
STATUS_LINE = re.compile(INTERIM_HEADS + rb"HTTP/1\.[01] ([2-5]\d\d)(?: [^\r\n]*)?\r?\n")

# Each may be replaced by one of the request's own, of just the same name.
HEADERS = {"Accept": "*/*", "Accept-Encoding": "identity", "User-Agent": "Bellhop"}


class NotHttp(Exception):
    """Something else came."""


class TooLong(Exception):
    """An answer, or its head, goes on and on."""


class Deadline(Exception):
    """The answer did not come in time."""


def request(start: str, headers: Mapping[str, str], body: bytes) -> bytes:
    """The bytes of a request. `start` is its first line and its Host header."""
    headers = {**HEADERS, **headers, "Content-Length": str(len(body))}
    lines = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
    if lines.count("\r") != len(headers) or lines.count("\n") != len(headers) or "\0" in lines:
        raise ValueError("A header contains a line break or a NUL.")
    return b"%b%b\r\n%b" % (start.encode(), lines.encode(), body)


class Reply:
    """What is known of an answer so far, so that running out of time loses nothing that came.

    `end` is called when nothing more will come. `failure` is then why, if that was before the end of the answer.
    """

    __slots__ = ("body", "complete", "compression", "failure", "head", "location", "received", "status")

    def __init__(self) -> None:
        self.status: int | None = None
        self.location: str | None = None
        self.compression: str | None = None
        self.body = bytearray()
        self.complete = False
        self.failure: Exception | None = None
        self.head = bytearray()  # as it came, until its end
        self.received = 0

    def end(self, failure: Exception | None) -> None:
        if not self.complete:
            self.failure = failure
        if self.status is None and (found := STATUS_LINE.match(self.head)):
            # The parser tells nothing of an answer before its last header, but it is the status line that decides.
            self.status = int(found[1])


class Conversation(asyncio.Protocol):
    """A connection. Once its answer has been read to the end, and nothing else came, it can be asked again.

    `gone` is called as soon as it is of no more use, perhaps more than once. The on_… methods are for the parser.
    """

    def __init__(self, gone: Callable[[Conversation], None]) -> None:
        self.idle_since = 0.0
        self._gone = gone
        self._transport: asyncio.Transport | None = None
        self._news = select.poll()
        self._reply: Reply | None = None
        self._clogged = False
        self._keep_alive = False
        self._parser = HttpResponseParser(self)
        # None of these can blur where an answer ends as long as there is never a second one on the way.
        self._parser.set_dangerous_leniencies(
            lenient_headers=True, lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
        )

    def ask(self, request: bytes, reply: Reply) -> None:
        """Sends the request. What comes of it goes into `reply`."""
        self._reply = reply
        self._keep_alive = False
        if self._transport is None:
            self._end(ConnectionResetError())
        else:
            self._transport.write(request)

    def stop_at_deadline(self) -> None:
        self._end(Deadline())

    def abort(self) -> None:
        # Not close(): a polite end of TLS waits for the other side's, and a silent one would hold the socket that long.
        transport, self._transport = self._transport, None
        if transport is not None:
            transport.abort()
        self._gone(self)  # also if it never was connected, which a transport may fail to tell
        self._end(ConnectionAbortedError())

    def usable(self) -> bool:
        """Whether it can be asked now."""
        # What has come and is not read yet can only be its end, or an answer to nothing; a request sent after it would
        # be lost, and that looks like a failed one.
        return self._transport is not None and not self._transport.is_closing() and not self._news.poll(0)

    # What the transport calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is none by inheritance
        self._news.register(transport.get_extra_info("socket").fileno(), select.POLLIN)

    def data_received(self, data: bytes) -> None:
        reply = self._reply
        if reply is None:
            # Unasked for, like the 408 some balancers send before they hang up; the next request would get it.
            self.abort()
            return
        reply.received += len(data)
        if reply.status is None:
            reply.head += data[:LONGEST_HEAD]
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade):
            self._keep_alive = False
            self._end(NotHttp())
            return
        if reply.complete or len(reply.body) >= LONGEST_BODY:
            self._end(None)
        elif reply.received > LONGEST_ANSWER or (reply.status is None and len(reply.head) > LONGEST_HEAD):
            self._end(TooLong())

    def eof_received(self) -> None:
        self.abort()

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self._gone(self)
        self._end(error or ConnectionResetError())

    def pause_writing(self) -> None:
        self._clogged = True

    def resume_writing(self) -> None:
        self._clogged = False

    # What the parser calls

    def on_message_begin(self) -> None:
        if self._reply is None or self._reply.complete:
            raise NotHttp

    def on_header(self, name: bytes, value: bytes) -> None:
        reply = self._reply
        if reply is None or reply.status is not None:
            return
        match name.lower():
            case b"location":
                reply.location = reply.location or value.decode(errors="surrogateescape")
            case b"content-encoding":
                reply.compression = reply.compression or value.decode(errors="surrogateescape")

    def on_headers_complete(self) -> None:
        assert self._reply is not None
        status = self._parser.get_status_code()
        if 100 <= status < 200 and status != 101:
            self._reply.location = self._reply.compression = None
        else:
            self._reply.status = status

    def on_body(self, part: bytes) -> None:
        reply = self._reply
        if reply is not None and len(reply.body) < LONGEST_BODY:
            reply.body += part[: LONGEST_BODY - len(reply.body)]

    def on_message_complete(self) -> None:
        if self._reply is not None and self._reply.status is not None:
            self._reply.complete = True
            # A server may answer before it has read the request, and may never read the rest.
            self._keep_alive = self._parser.should_keep_alive() and not self._clogged

    def _end(self, failure: Exception | None) -> None:
        reply, self._reply = self._reply, None
        if reply is not None:
            if not (reply.complete and self._keep_alive):
                self.abort()
            reply.end(failure)  # last: it may be asked again at once
