"""Listeners hear of everything exactly once, whatever is killed, restarted or emptied meanwhile."""

from __future__ import annotations

import random
import re
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress

import psycopg2
import pytest
import redis
import requests

from app.lib import ids
from tests.journeys.conftest import serve
from tests.journeys.faults import kill
from tests.journeys.waiting import wait_until
from tests.listening import Ear
from tests.stack.stack import Stack

LISTENERS, WRITERS, MESSAGES = 10, 4, 150
EMAIL, PASSWORD = "ada@shop.example", "correct horse battery"


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    """A service that has what listeners need."""
    yield from serve({"web": 1, "realtime": 1}, {})


def cookie(stack: Stack) -> str:
    """The cookie of a member who has signed in, as a browser does."""
    browser = requests.Session()
    form = browser.get(f"{stack.base_url}/sign-in", timeout=20).text
    found = re.search(r'csrf_token" value="([^"]+)', form)
    assert found
    sent = {"csrf_token": found[1], "email": EMAIL, "password": PASSWORD}
    browser.post(f"{stack.base_url}/sign-in", data=sent, allow_redirects=False, timeout=20)
    return "; ".join(f"{name}={value}" for name, value in browser.cookies.items())


class Writer:
    """Commits messages, or rolls them back, at its own pace; goes on with others after what was interrupted."""

    def __init__(self, stack: Stack, workspace_id: str, seed: int) -> None:
        self._stack, self._workspace_id, self._chance = stack, workspace_id, random.Random(seed)
        self.committed: list[str] = []
        self.thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        while len(self.committed) < MESSAGES:
            with suppress(psycopg2.Error):
                self._write(psycopg2.connect(self._stack.postgres.url))
            time.sleep(0.05)

    def _write(self, connection: psycopg2.extensions.connection) -> None:
        while len(self.committed) < MESSAGES:
            made = [ids.new("msg") for _ in range(self._chance.randint(1, 4))]
            with connection.cursor() as cursor:
                cursor.execute(
                    "INSERT INTO messages (id, workspace_id, conversation_id, contact_id, direction, status, author)"
                    " SELECT i, %s, 'cnv_1', 'con_1', 'in', 'received', '{}' FROM unnest(%s) AS i",
                    (self._workspace_id, made),
                )
                time.sleep(self._chance.choice([0, 0.01, 0.1]))
                if self._chance.random() < 0.2:
                    connection.rollback()
                    continue
                connection.commit()
                self.committed += made


def test_every_listener_hears_everything_once_whatever_is_killed(stack: Stack) -> None:
    workspace_id = stack.command("workspace", "create", "Shop")["workspace"]["id"]
    stack.command("member", "create", workspace_id, EMAIL, "--role", "agent", input=f"{PASSWORD}\n")
    headers = {"Cookie": cookie(stack)}
    ears = [Ear(stack.realtime_port, headers=headers).open().until_placed() for _ in range(LISTENERS)]
    writers = [Writer(stack, workspace_id, seed) for seed in range(WRITERS)]
    for writer in writers:
        writer.thread.start()
    faults = threading.Thread(target=make_trouble, args=(stack,))
    faults.start()

    busy = [faults, *(writer.thread for writer in writers)]
    wait_until(lambda: listen(ears) and not any(each.is_alive() for each in busy), 120, "all is written")

    with psycopg2.connect(stack.postgres.url) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT id FROM messages")
        stored = {id for (id,) in cursor.fetchall()}
    assert {id for writer in writers for id in writer.committed} <= stored
    wait_until(lambda: listen(ears) and all(len(messages(each)) >= len(stored) for each in ears), 60, "all is heard")
    for ear in ears:
        assert {each.kind for each in ear.heard} <= {"message", "presence"}
        assert Counter(messages(ear)) == Counter(stored)


def messages(ear: Ear) -> list[str]:
    return [each.data["id"] for each in ear.heard if each.kind == "message"]


def make_trouble(stack: Stack) -> None:
    for trouble in (kill_realtime, empty_redis, restart_postgres, kill_realtime):
        time.sleep(1)
        trouble(stack)


def kill_realtime(stack: Stack) -> None:
    kill(stack, "realtime")


def empty_redis(stack: Stack) -> None:
    redis.Redis.from_url(stack.redis.url).flushall()


def restart_postgres(stack: Stack) -> None:
    stack.postgres.restart()


def listen(ears: list[Ear]) -> bool:
    """Takes in what has come, and opens streams again that have ended. True."""
    for ear in ears:
        if ear.is_over or ear.status != 200:
            with suppress(OSError, IndexError):
                ear.open()
        ear.listen()
    return True
