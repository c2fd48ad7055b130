"""One visitor of a web chat opens live streams without end: a member of another workspace, and health checks."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import re
import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection
from urllib.parse import urlsplit

import psycopg2
import requests

from app.lib import ids
from tests.doors.services import Tenant, service, tenant
from tests.doors.victims import victim
from tests.listening import Ear
from tests.stack.stack import Stack

Tell = Callable[[str], None]
PROCESSES = {"web": 1, "realtime": 1, "writes": 1, "messages": 1, "scheduler": 1}
# Two processes, as each may have 20,000 files open.
ATTACKERS, OPENED_BY_EACH, AT_ONCE = 2, 10_100, 100
ATTACKERS_ADDRESS = "127.0.0.9"
ORIGIN, PASSWORD = "https://shop.example", "correct horse battery staple"


def measure(tell: Tell) -> None:
    with service(PROCESSES) as stack:
        token = visitor(tenant(stack, "Attacker"))
        other = tenant(stack, "Victim")
        with listener(stack, other) as hear, victim(hear) as member, victim(lambda: check_health(stack)) as health:
            began, statuses = time.monotonic(), attack(stack.realtime_port, token)
            seconds = time.monotonic() - began
        tell(f"{statuses.total():,} openings by one visitor in {seconds:.1f} s: {dict(statuses)}")
        tell(f"live update of another workspace: {member}")
        tell(f"GET /healthz: {health}")
        member.check()
        health.check()


def visitor(attacker: Tenant) -> str:
    """The token of a visitor of a new web chat."""
    document = {"kind": "web_chat", "name": "Shop", "settings": {"origins": [ORIGIN]}}
    channel = attacker.caller().apply("POST", "channels", document).data
    body = {"id": "first", "text": "Hello", "key": secrets.token_hex(16)}
    address = f"{attacker.base_url}/chat/{channel['id']}/messages"
    answer = requests.post(address, data=json.dumps(body), headers={"Origin": ORIGIN}, timeout=20)
    return str(answer.json()["token"])


def cookie(stack: Stack, workspace_id: str, email: str, role: str = "agent") -> str:
    """The cookie of a new member who has signed in."""
    stack.command("member", "create", workspace_id, email, "--role", role, input=f"{PASSWORD}\n")
    browser = requests.Session()
    form = browser.get(f"{stack.base_url}/sign-in", timeout=20).text
    found = re.search(r'csrf_token" value="([^"]+)', form)
    assert found
    sent = {"csrf_token": found[1], "email": email, "password": PASSWORD}
    browser.post(f"{stack.base_url}/sign-in", data=sent, allow_redirects=False, timeout=20)
    return "; ".join(f"{name}={value}" for name, value in browser.cookies.items())


@contextmanager
def listener(stack: Stack, other: Tenant) -> Iterator[Callable[[], None]]:
    """What a member does: a message is committed, and heard of. Raises if that takes ten seconds."""
    ear = Ear(stack.realtime_port, headers={"Cookie": cookie(stack, other.workspace_id, "victim@example.com")})
    ear.open().until_placed()
    connection = psycopg2.connect(stack.postgres.url)
    connection.autocommit = True

    def hear() -> None:
        message_id, ends = insert(connection, other.workspace_id, 1)[0], time.monotonic() + 10
        while not any(each.kind == "message" and each.data["id"] == message_id for each in ear.heard):
            assert time.monotonic() < ends, "heard of nothing for ten seconds"
            if ear.is_over:
                ear.open()
            ear.listen()
        ear.heard.clear()

    yield hear
    connection.close()
    ear.close()


def insert(connection: psycopg2.extensions.connection, workspace_id: str, number: int) -> list[str]:
    """Commits that many messages."""
    made = [ids.new("msg") for _ in range(number)]
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO messages (id, workspace_id, conversation_id, contact_id, direction, text, status, author)"
            " SELECT i, %s, 'cnv_doors', 'con_doors', 'in', 'Hello', 'received', '{}' FROM unnest(%s) AS i",
            (workspace_id, made),
        )
    return made


def check_health(stack: Stack) -> None:
    connection = HTTPConnection(urlsplit(f"http://127.0.0.1:{stack.realtime_port}").netloc, timeout=10)
    try:
        connection.request("GET", "/healthz")
        assert connection.getresponse().status == 200
    finally:
        connection.close()


def attack(port: int, token: str) -> Counter[str]:
    """Opens all streams and keeps those that it gets; how many answers had which status."""
    context = multiprocessing.get_context("spawn")
    told: multiprocessing.Queue[Counter[str]] = context.Queue()
    attackers = [context.Process(target=open_many, args=(port, token, told)) for _ in range(ATTACKERS)]
    for each in attackers:
        each.start()
    try:
        return sum((told.get(timeout=300) for _ in attackers), Counter[str]())
    finally:
        for each in attackers:
            each.terminate()  # it has told, or takes too long
            each.join()


def open_many(port: int, token: str, told: multiprocessing.Queue[Counter[str]]) -> None:
    """What a process of the attackers does."""
    told.put(asyncio.run(_open_many(port, token)))


async def _open_many(port: int, token: str) -> Counter[str]:
    statuses, kept, places = Counter[str](), [], asyncio.Semaphore(AT_ONCE)
    head = f"GET /live/chat HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n".encode()

    async def open_one() -> None:
        async with places:
            try:
                opened = asyncio.open_connection("127.0.0.1", port, local_addr=(ATTACKERS_ADDRESS, 0))
                reader, writer = await asyncio.wait_for(opened, 10)
                writer.write(head)
                line = await asyncio.wait_for(reader.readline(), 10)
            except (OSError, TimeoutError) as error:
                statuses[type(error).__name__] += 1
                return
            status = line.split()[1].decode() if line else "closed"
            statuses[status] += 1
            if status == "200":
                kept.append(writer)
            else:
                writer.close()

    await asyncio.gather(*(open_one() for _ in range(OPENED_BY_EACH)))
    await asyncio.sleep(3)
    with suppress(OSError):
        for writer in kept:
            writer.close()
    return statuses
