"""A member changes thousands of conversations, five times at once: writes of that workspace, and reads of another."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from itertools import count
from urllib.parse import urlsplit

import requests

from tests.doors.services import Tenant, service, tenant
from tests.doors.streams import cookie
from tests.doors.victims import victim
from tests.journeys.audit import rows
from tests.journeys.histories import fill
from tests.journeys.waiting import wait_until
from tests.stack.stack import Stack

CONVERSATIONS, SELECTIONS = 4_000, 5


def measure(tell: Callable[[str], None]) -> None:
    with service({"web": 1, "writes": 1, "scheduler": 1}, {"RATE_LIMIT": "0"}) as stack:
        shop, other = tenant(stack, "Shop"), tenant(stack, "Victim").caller()
        fill(stack, shop.workspace_id, CONVERSATIONS)
        write, read = writer(shop), partial(other.get, "contacts")
        with victim(write) as before:
            wait_until(lambda: len(before.seconds) >= 100, 60, "a hundred writes beside nothing")
        tell(f"a write of the workspace, before: {before}")
        with victim(write) as writes, victim(read) as reads:
            begin(stack, shop)
            wait_until(lambda: not unfinished(stack, shop), 600, "the changes have ended")
        tell(f"a write beside {SELECTIONS} changes of {CONVERSATIONS:,} conversations: {writes}")
        tell(f"a read of another workspace: {reads}")
        writes.check()
        reads.check()


def writer(shop: Tenant) -> Callable[[], object]:
    """Creates a contact, and waits until it is there."""
    caller, numbers = shop.caller(), count()
    return lambda: caller.apply("POST", "contacts", {"external_id": f"new-{next(numbers)}"})


def begin(stack: Stack, shop: Tenant) -> None:
    """Puts labels on all conversations of the inbox, as its page does."""
    address, browser = f"{stack.base_url}/workspaces/{shop.workspace_id}/inbox", requests.Session()
    for each in cookie(stack, shop.workspace_id, "agent@example.com").split("; "):
        name, _, value = each.partition("=")
        browser.cookies.set(name, value, domain=urlsplit(stack.base_url).hostname)
    token = re.search(r'csrf_token" value="([^"]+)', browser.get(address, timeout=20).text)
    assert token
    for number in range(SELECTIONS):
        sent = {"csrf_token": token[1], "all": "true", "do": "label", "label": f"label-{number}"}
        answer = browser.post(f"{address}/selections", sent, allow_redirects=False, timeout=60)
        assert answer.status_code == 303, answer.text


def unfinished(stack: Stack, shop: Tenant) -> bool:
    query = "SELECT 1 FROM selections WHERE workspace_id = %s AND finished_at IS NULL LIMIT 1"
    return bool(rows(stack, query, shop.workspace_id))
