"""The server of the `realtime` process: decides how each request is answered."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from urllib.parse import urlsplit

import redis
import structlog

from app import bells, bounds
from app.config import settings
from app.database import DatabaseAway, rows
from app.errors import BellhopError, NotFound, Unavailable
from app.lib import json, versions
from app.lib.addresses import client_address, network_of
from app.live.admissions import Crowd
from app.live.http import Connection, Heads, Request
from app.live.hub import DOORS, Hub, Stream
from app.problems import problem_document, problem_of_error

log = structlog.get_logger(__name__)

_STREAM = {
    "Content-Type": "text/event-stream; charset=utf-8",
    "Cache-Control": "no-store",
    "X-Accel-Buffering": "no",  # otherwise nginx would hold events back
    "X-Content-Type-Options": "nosniff",
}
_ALLOWED = "GET, OPTIONS"
_ASKED_HEADERS = "authorization, last-event-id, cache-control"
RETRY_SECONDS = 2


class Server:
    """Answers the connections of an event loop. `descriptors`: the process's limit of open files."""

    def __init__(self, loop: asyncio.AbstractEventLoop, descriptors: int) -> None:
        self._loop = loop
        self.hub = Hub(loop)
        self.crowd = Crowd(descriptors)
        # Behind proxies, all connections come from the proxies' addresses, so a bound by address would hit everybody.
        self._heads = Heads(self.crowd.most_heads, by_address=settings().trusted_proxies == 0)
        self._tasks: set[asyncio.Task[None]] = set()
        self._readiness: asyncio.Task[object] | None = None
        parts = urlsplit(settings().base_url)
        self._own_origin = f"{parts.scheme}://{parts.netloc}"

    def connection(self) -> Connection:
        """Returns a protocol for a new connection."""
        return Connection(self._loop, self._handle, self._heads)

    def _handle(self, connection: Connection, request: Request) -> None:
        if request.path in DOORS and request.method == "OPTIONS":
            asked = {"Access-Control-Allow-Methods": "GET", "Access-Control-Allow-Headers": _ASKED_HEADERS}
            connection.answer(204, {**self._shared(request), **asked, "Access-Control-Max-Age": "7200"}, b"")
        elif request.method != "GET":
            connection.answer(405, {"Allow": _ALLOWED}, b"")
        else:
            # Keeps a reference to the task, because the loop does not.
            task = self._loop.create_task(self._respond(connection, request))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _respond(self, connection: Connection, request: Request) -> None:
        if connection.is_lost:  # `at_end` has run already, so places taken now would never be given back
            return
        try:
            if request.path == "/healthz":
                self._say(connection, {"status": "alive", "version": versions.running()})
            elif request.path == "/readyz":
                connection.at_end.append(self.crowd.ask_readiness())
                self._say(connection, await self._ready())
            elif request.path in DOORS:
                await self._stream(connection, request)
            else:
                raise NotFound
        except BellhopError as error:
            document = problem_of_error(error, base_url=settings().base_url)
            self._refuse(connection, request, document, getattr(error, "retry_after_seconds", None))
        except DatabaseAway:
            self._refuse(connection, request, problem_document("unavailable", None, base_url=settings().base_url))
        except Exception:
            log.exception("live.request_failed", path=request.path)
            self._refuse(connection, request, problem_document("internal-error", None, base_url=settings().base_url))

    async def _stream(self, connection: Connection, request: Request) -> None:
        forwarded_for = request.headers.get("x-forwarded-for", "")
        address = network_of(client_address(connection.peer, forwarded_for, settings().trusted_proxies))
        self.crowd.count_opening(address, DOORS[request.path].credential(request.headers))
        connection.at_end.append(self.crowd.enter())
        connection.at_end.append(self.crowd.take(bounds.LIVE_STREAMS_PER_ADDRESS, address, "Your address"))
        asked = request.headers, request.query
        admitted = await self.hub.admit(request.path, asked, address, lambda: connection.is_lost)
        if admitted is None or connection.is_lost:
            return
        of_workspace = self.crowd.take(bounds.LIVE_STREAMS_PER_WORKSPACE, admitted.workspace_id, "The workspace")
        connection.at_end.append(of_workspace)
        # Scripts that read the stream themselves cannot always set the header, so the query may name the place.
        place = request.headers.get("last-event-id") or request.query.get("last_event_id", "")
        stream = Stream(
            admitted, connection.send, connection.end, door=request.path, asked=asked, address=address, place=place
        )
        connection.at_end.append(lambda: self.hub.close(stream))
        connection.begin(200, {**_STREAM, **self._shared(request)})
        self.hub.open(stream)

    async def _ready(self) -> object:
        """Checks once for all requests that arrive during the check. Raises Unavailable."""
        if self._readiness is None or self._readiness.done():
            self._readiness = self._loop.create_task(self.hub.checks.run("", _ready))
        return await asyncio.shield(self._readiness)

    def _say(self, connection: Connection, document: object) -> None:
        connection.answer(200, {"Content-Type": "application/json"}, json.dumps(document))

    def _refuse(
        self,
        connection: Connection,
        request: Request,
        document: Mapping[str, object],
        retry_after_seconds: int | None = None,
    ) -> None:
        headers = {"Content-Type": "application/problem+json", "Cache-Control": "no-store", **self._shared(request)}
        if document["status"] == 503 or retry_after_seconds is not None:
            headers["Retry-After"] = str(retry_after_seconds or RETRY_SECONDS)
        connection.answer(int(str(document["status"])), headers, json.dumps(document))

    def _shared(self, request: Request) -> dict[str, str]:
        """Returns the headers that let a page read the response across origins.

        A visitor's token is the permission for a chat; the page's origin is checked with the token. The stream of a
        workspace is authenticated by a cookie, so only our own pages may read it.
        """
        origin = request.headers.get("origin")
        shared = {"Vary": "Origin"}
        if origin is not None and request.path == "/live/chat":
            shared["Access-Control-Allow-Origin"] = origin
        elif origin == self._own_origin:
            shared |= {"Access-Control-Allow-Origin": origin, "Access-Control-Allow-Credentials": "true"}
        return shared


def _ready() -> dict[str, str]:
    """Checks the database and Redis. Raises Unavailable if the database does not answer."""
    try:
        rows("SELECT 1")
    except DatabaseAway as error:
        raise Unavailable("No response from the database.") from error
    try:
        bells.flags().ping()
    except redis.RedisError as error:
        log.info("ready.redis_away", error=str(error))  # only the signs `typing` and `presence` need Redis
    return {"status": "ready"}
