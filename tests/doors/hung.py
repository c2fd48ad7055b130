"""PostgreSQL hangs: every process of it is frozen, while pages and the API are asked for by more than have threads."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, suppress

import requests

from tests.doors.services import service, tenant
from tests.doors.streams import cookie
from tests.doors.victims import Victim, victim
from tests.stack.stack import Stack

Tell = Callable[[str], None]
PROCESSES = {"web": 1, "realtime": 1, "writes": 1, "scheduler": 1}
HUNG_SECONDS, MOST_SECONDS = 20, 5.0
CLIENTS, EVERY_SECONDS = 5, 1.0  # of each kind; `web` has 16 threads
LISTENERS = 1  # a member may open one stream a second


def measure(tell: Tell) -> None:
    with service(PROCESSES) as stack:
        shop = tenant(stack, "Shop")
        signed_in = {"Cookie": cookie(stack, shop.workspace_id, "member@example.com"), "Accept": "text/html"}
        token = {"Authorization": f"Bearer {shop.token}"}
        contacts = f"{stack.base_url}/api/v1/workspaces/{shop.workspace_id}/contacts"
        asked = {
            "page": lambda: requests.get(
                f"{stack.base_url}/workspaces/{shop.workspace_id}/contacts", headers=signed_in, timeout=90
            ),
            "read": lambda: requests.get(contacts, headers=token, timeout=90),
            "write": lambda: requests.post(contacts, json={"email": "ada@example.com"}, headers=token, timeout=90),
            "GET /readyz": lambda: requests.get(f"{stack.base_url}/readyz", timeout=90),
            "live updates": lambda: requests.get(
                f"http://127.0.0.1:{stack.realtime_port}/live/workspace", headers=signed_in, timeout=90, stream=True
            ),
            "GET /healthz": lambda: requests.get(f"{stack.base_url}/healthz", timeout=90),
        }
        for ask in asked.values():
            ask().close()
        hung = ask_while_hung(stack, asked)
        back_seconds = seconds_until_served(asked["read"])
        for kind, (victims, statuses) in hung.items():
            worst = max(max(each.seconds) for each in victims)
            tell(f"{kind}: {dict(statuses)}, the slowest took {worst:.2f} s")
        tell(f"served again {back_seconds:.2f} s after the end")
        assert back_seconds < 60, "not served for a minute"
        for victims, _ in hung.values():
            for each in victims:
                each.check(MOST_SECONDS)


def ask_while_hung(
    stack: Stack, asked: dict[str, Callable[[], requests.Response]]
) -> dict[str, tuple[list[Victim], Counter[int]]]:
    """What each kind of request got, and how long that took."""
    found: dict[str, tuple[list[Victim], Counter[int]]] = {}
    with ExitStack() as asking:
        asking.callback(stack.postgres.thaw)
        stack.postgres.freeze()
        for kind, ask in asked.items():
            statuses = Counter[int]()
            clients = LISTENERS if kind == "live updates" else CLIENTS
            victims = [asking.enter_context(victim(counting(ask, statuses), EVERY_SECONDS)) for _ in range(clients)]
            found[kind] = victims, statuses
        time.sleep(HUNG_SECONDS)
        for victims, _ in found.values():
            for each in victims:
                each.stop()
        stack.postgres.thaw()
    return found


def counting(ask: Callable[[], requests.Response], statuses: Counter[int]) -> Callable[[], None]:
    def act() -> None:
        with ask() as answer:
            statuses[answer.status_code] += 1

    return act


def seconds_until_served(ask: Callable[[], requests.Response]) -> float:
    began = time.monotonic()
    while time.monotonic() < began + 60:
        with suppress(requests.RequestException):
            if ask().status_code == 200:
                return time.monotonic() - began
        time.sleep(0.05)
    return float("inf")
