"""The server of the `realtime` process: which request gets which answer."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from urllib.parse import urlsplit

import redis
import structlog

from app import bells
from app.config import settings
from app.database import DatabaseAway, rows
from app.errors import BellhopError, NotFound, Unavailable
from app.lib import json
from app.lib.problems import problem_document, problem_of_error
from app.live.http import Connection, Request
from app.live.hub import DOORS, Hub, Stream
from app.live.listeners import Listener

log = structlog.get_logger(__name__)

_STREAM = {
    "Content-Type": "text/event-stream; charset=utf-8",
    "Cache-Control": "no-store",
    "X-Accel-Buffering": "no",  # or nginx would keep events back
    "X-Content-Type-Options": "nosniff",
}
_ALLOWED = "GET, OPTIONS"
_ASKED_HEADERS = "authorization, last-event-id, cache-control"
LONGEST_PLACE = 8_000


class Server:
    """Answers the connections of one event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.hub = Hub(loop)
        self._tasks: set[asyncio.Task[None]] = set()
        parts = urlsplit(settings().base_url)
        self._own_origin = f"{parts.scheme}://{parts.netloc}"

    def connection(self) -> Connection:
        """A protocol for a new connection."""
        return Connection(self._loop, self._handle)

    def _handle(self, connection: Connection, request: Request) -> None:
        if request.path in DOORS and request.method == "OPTIONS":
            asked = {"Access-Control-Allow-Methods": "GET", "Access-Control-Allow-Headers": _ASKED_HEADERS}
            connection.answer(204, {**self._shared(request), **asked, "Access-Control-Max-Age": "7200"}, b"")
        elif request.method != "GET":
            connection.answer(405, {"Allow": _ALLOWED}, b"")
        else:
            # Kept, as the loop holds no reference to its tasks.
            task = self._loop.create_task(self._respond(connection, request))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _respond(self, connection: Connection, request: Request) -> None:
        try:
            if request.path in DOORS:
                await self._stream(connection, request)
            elif request.path == "/healthz":
                self._say(connection, {"status": "alive"})
            elif request.path == "/readyz":
                self._say(connection, await self.hub.run(_ready))
            else:
                raise NotFound
        except BellhopError as error:
            self._refuse(connection, request, problem_of_error(error, base_url=settings().base_url))
        except DatabaseAway:
            self._refuse(connection, request, problem_document("unavailable", None, base_url=settings().base_url))
        except Exception:
            log.exception("live.request_failed", path=request.path)
            self._refuse(connection, request, problem_document("internal-error", None, base_url=settings().base_url))

    async def _stream(self, connection: Connection, request: Request) -> None:
        admitted = await self.hub.admit(request.path, request.headers, request.query)
        # Scripts that read the stream themselves cannot always set the header.
        place = request.headers.get("last-event-id") or request.query.get("last_event_id", "")
        listener = Listener(admitted, place[:LONGEST_PLACE], connection.send, connection.end)
        stream = Stream(request.path, (request.headers, request.query), listener)
        if connection.is_lost:
            return
        connection.on_end = lambda: self.hub.close(stream)
        connection.begin(200, {**_STREAM, **self._shared(request)})
        self.hub.open(stream)

    def _say(self, connection: Connection, document: object) -> None:
        connection.answer(200, {"Content-Type": "application/json"}, json.dumps(document))

    def _refuse(self, connection: Connection, request: Request, document: Mapping[str, object]) -> None:
        headers = {"Content-Type": "application/problem+json", "Cache-Control": "no-store", **self._shared(request)}
        if document["status"] == 503:
            headers["Retry-After"] = "2"
        connection.answer(int(str(document["status"])), headers, json.dumps(document))

    def _shared(self, request: Request) -> dict[str, str]:
        """Lets the page read the response that asked for it.

        A visitor's token is the permission for a chat, whose origins are checked with it. The stream of a workspace
        goes by a cookie, so only our own pages may read it.
        """
        origin = request.headers.get("origin")
        shared = {"Vary": "Origin"}
        if origin is not None and request.path == "/live/chat":
            shared["Access-Control-Allow-Origin"] = origin
        elif origin == self._own_origin:
            shared |= {"Access-Control-Allow-Origin": origin, "Access-Control-Allow-Credentials": "true"}
        return shared


def _ready() -> dict[str, str]:
    """Raises Unavailable, naming what does not answer."""
    try:
        rows("SELECT 1")
    except DatabaseAway as error:
        raise Unavailable("No response from the database.") from error
    try:
        bells.flags().ping()
    except redis.RedisError as error:
        log.info("ready.redis_away", error=str(error))  # only `typing` and `presence` need it
    return {"status": "ready"}
