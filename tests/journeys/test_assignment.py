"""Conversations are assigned by the rule, never beyond a capacity, whatever is killed meanwhile."""

from __future__ import annotations

import json
import threading
import urllib.request
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.journeys.audit import rows
from tests.journeys.conftest import serve
from tests.journeys.conversing import ORIGIN
from tests.journeys.faults import empty_redis, kill
from tests.journeys.shops import Caller
from tests.journeys.waiting import wait_until
from tests.stack.stack import Stack

CAPACITIES, VISITORS = (3, 8, 10), 40


@pytest.fixture
def stack() -> Iterator[Stack]:
    yield from serve({"web": 1, "writes": 2, "messages": 3, "scheduler": 2}, {})


def write(stack: Stack, channel_id: str, number: int) -> None:
    """A new visitor writes."""
    document = {"id": "first", "text": f"Hello {number}", "key": f"{number:032}"}
    headers = {"Content-Type": "application/json", "Origin": ORIGIN}
    address = f"{stack.base_url}/chat/{channel_id}/messages"
    urllib.request.urlopen(urllib.request.Request(address, json.dumps(document).encode(), headers), timeout=20).close()


def taken(stack: Stack) -> Counter[str]:
    """How many open conversations each member has."""
    return Counter(dict(rows(stack, _TAKEN)))


@pytest.mark.nightly
def test_nobody_ever_has_more_than_they_take_and_all_that_fit_are_assigned(stack: Stack) -> None:
    made = stack.command("workspace", "create", "Wool")
    workspace_id, caller = made["workspace"]["id"], Caller(stack.base_url, made["workspace"]["id"], made["token"])
    capacities = {}
    for number, capacity in enumerate(CAPACITIES):
        password = "correct horse battery\n"
        member = stack.command(
            "member", "create", workspace_id, f"m{number}@shop.example", "--role", "owner", input=password
        )
        caller.apply("PATCH", f"members/{member['id']}", {"capacity": capacity})
        capacities[member["id"]] = capacity
    settings = {"origins": [ORIGIN], "assignment": "balanced"}
    channel_id = caller.apply("POST", "channels", {"kind": "web_chat", "name": "Shop", "settings": settings}).data["id"]
    exceeded: list[Counter[str]] = []
    is_over = threading.Event()

    def watch() -> None:
        while not is_over.is_set():
            exceeded.extend(each for each in [taken(stack)] if each - Counter(capacities))

    watching = threading.Thread(target=watch)
    watching.start()
    with ThreadPoolExecutor(8) as pool:
        for half in (range(VISITORS // 2), range(VISITORS // 2, VISITORS)):
            written = [pool.submit(write, stack, channel_id, number) for number in half]
            for each in written:
                each.result()
            kill(stack, "scheduler", "messages")
            empty_redis(stack)
    wait_until(lambda: rows(stack, "SELECT count(*) FROM conversations") == [(VISITORS,)], 60, "all have begun")
    wait_until(lambda: taken(stack) == capacities, 30, "everybody has what they take")

    queue = [found for (found,) in rows(stack, _QUEUE)]
    for (conversation_id,) in rows(stack, "SELECT id FROM conversations WHERE assignee_id IS NOT NULL LIMIT 6"):
        caller.apply("PATCH", f"conversations/{conversation_id}", {"status": "closed"})
    wait_until(lambda: taken(stack) == capacities, 30, "there is room, and it is filled")
    assert [found for (found,) in rows(stack, _QUEUE)] == queue[6:]

    leaving = next(iter(capacities))
    caller.apply("PATCH", f"members/{leaving}", {"availability": "away"})
    assert len(rows(stack, _QUEUE)) == len(queue) - 6 + capacities[leaving]
    is_over.set()
    watching.join()
    assert exceeded == []


_TAKEN = "SELECT assignee_id, count(*) FROM conversations WHERE status = 'open' AND assignee_id <> '' GROUP BY 1"
_QUEUE = """
    SELECT id FROM conversations WHERE status = 'open' AND assignee_id IS NULL ORDER BY waiting_since, id
"""
