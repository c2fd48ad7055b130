"""A `realtime` server in a thread of the tests, and people who listen."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
import uvloop
from flask import Flask

from app import bells
from app.lib import vitals
from app.live.server import Server
from tests import pages
from tests.cast import Api, apply, one, until
from tests.listening import Ear

Listen = Callable[..., Ear]
DESCRIPTORS = 1_024


@dataclass
class Running:
    server: Server
    port: int
    loop: asyncio.AbstractEventLoop


@pytest.fixture
def realtime(empty: None) -> Iterator[Running]:
    """The server, on a port of its own."""
    loop, started, made = uvloop.new_event_loop(), threading.Event(), []

    async def serve() -> None:
        server = Server(loop, DESCRIPTORS)
        listening = await loop.create_server(server.connection, "127.0.0.1", 0)
        server.hub.start()
        made.append(Running(server, listening.sockets[0].getsockname()[1], loop))
        started.set()

    def run() -> None:
        loop.run_until_complete(serve())
        loop.run_forever()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert started.wait(20)
    yield made[0]
    made[0].server.hub.stop()
    loop.call_soon_threadsafe(loop.stop)
    thread.join(20)
    loop.close()


@pytest.fixture
def signs(realtime: Running) -> None:
    """The server hears who is typing, and whose streams are to be checked."""
    vitals.start(realtime.server.hub.hear_signs, "signs")
    until(lambda: bells.flags().pubsub_numsub("live")[0][1])


@pytest.fixture
def listen(app: Flask, realtime: Running) -> Iterator[Listen]:
    """Opens a stream for a new member of the workspace."""
    ears: list[Ear] = []

    def listen(api: Api, email: str = "owner@shop.example", place: str = "", role: str = "owner") -> Ear:
        headers = {"Cookie": cookie(pages.member(app, api.workspace_id, role, email))}
        ears.append(Ear(realtime.port, headers=headers, place=place).open())
        return ears[-1] if place else ears[-1].until_placed()

    yield listen
    for ear in ears:
        ear.close()


def cookie(person: pages.Person) -> str:
    """The Cookie header that the person's browser sends."""
    found = person.client.get_cookie("__Host-bellhop") or person.client.get_cookie("bellhop")
    assert found is not None
    return f"{found.key}={found.value}"


@pytest.fixture
def contact_id(api: Api) -> str:
    api.post("contacts", {"email": "ada@example.com"})
    apply(api.workspace_id)
    return str(one("SELECT id FROM contacts WHERE workspace_id = %s", api.workspace_id))
