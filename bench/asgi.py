"""The live updates of workspaces as an ASGI application: what `realtime` does, behind another server.

The hub, its reader and its frames are those of the service. Only HTTP is the server's: each listener has a task that
waits for its frames and sends them.
"""

import asyncio
import gc
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import parse_qsl

from app import database, logs
from app.live import signs
from app.live.hub import Hub, Stream
from app.live.listeners import Listener

HEADERS = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"cache-control", b"no-store")]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class Application:
    """Answers `GET /live/workspace`; `/healthz` says whether it serves."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["path"] == "/healthz":
            await send({"type": "http.response.start", "status": 204, "headers": []})
            await send({"type": "http.response.body"})
        else:
            await self._stream(scope, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        logs.configure("asgi")
        database.connect()
        self._hub = Hub(asyncio.get_running_loop())
        self._hub.start()
        signs.start(self._hub)
        # As `realtime` does.
        gc.collect()
        gc.freeze()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        self._hub.stop()
        await send({"type": "lifespan.shutdown.complete"})

    async def _stream(self, scope: Scope, send: Send) -> None:
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        query = dict(parse_qsl(scope["query_string"].decode("latin-1")))
        admitted = await self._hub.admit(scope["path"], (headers, query), "")
        assert admitted is not None
        frames: asyncio.Queue[bytes | None] = asyncio.Queue()
        place = headers.get("last-event-id", "")
        listener = Listener(admitted, frames.put_nowait, lambda: frames.put_nowait(None))
        stream = Stream(scope["path"], (headers, query), "", listener, place)
        await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
        self._hub.open(stream)
        try:
            while (frame := await frames.get()) is not None:
                await send({"type": "http.response.body", "body": frame, "more_body": True})
        finally:
            self._hub.close(stream)
        await send({"type": "http.response.body"})


application = Application()
