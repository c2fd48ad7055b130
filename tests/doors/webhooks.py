"""A tenant sends webhooks full of statuses, good and bad, that it signs itself: another's webhooks and reads."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from functools import partial
from multiprocessing import get_context
from typing import NamedTuple

import requests

from app.lib import ids
from tests.doors.services import service, tenant
from tests.doors.victims import victim
from tests.journeys.audit import rows
from tests.journeys.waiting import wait_until
from tests.providers.whatsapp import CREDENTIALS, NUMBER, message, signed, status, webhook
from tests.stack.posts import connect
from tests.stack.stack import Stack

Tell = Callable[[str], None]
PROCESSES = {"web": 1, "writes": 1, "messages": 1, "scheduler": 1}
SECONDS, CONNECTIONS = 15.0, 16
BAD = ("wamid.\0", "x" * 300, 5, None)


class Attack(NamedTuple):
    """That many statuses in each webhook, every tenth of which has a bad identifier if `is_spoilt`."""

    statuses: int
    is_spoilt: bool = False


ATTACKS = {
    "one status in each": Attack(1),
    "1,000 statuses in each, a tenth of them bad": Attack(1_000, is_spoilt=True),
    "15,000 statuses in each": Attack(15_000),
}


def measure(tell: Tell) -> None:
    for name, attack in ATTACKS.items():
        with service(PROCESSES) as stack:
            attacker, other = tenant(stack, "Attacker"), tenant(stack, "Victim")
            hooks = [
                hook(stack, connect(stack, owner.workspace_id, "whatsapp", CREDENTIALS, {"phone_number_id": NUMBER}))
                for owner in (attacker, other)
            ]
            elsewhere = ProcessPoolExecutor(1, get_context("spawn"))
            read, hear = partial(other.caller().get, "contacts"), partial(receive, stack, hooks[1])
            with elsewhere, victim(read) as reads, victim(hear) as received:
                statuses = elsewhere.submit(send, hooks[0], attack).result()
            tell(f"{name}: {dict(statuses)} in {SECONDS:.0f} s, {arrivals(stack, attacker.workspace_id)}")
            tell(f"    a message that another workspace receives: {received}")
            tell(f"    reads of another workspace: {reads}")
            received.check()
            reads.check()


def hook(stack: Stack, channel: str) -> str:
    return f"{stack.base_url}/hooks/whatsapp/{channel}"


def receive(stack: Stack, address: str) -> None:
    """A contact writes; returns once the message is in its conversation."""
    wamid = f"wamid.{ids.new('msg')}"
    body = webhook(messages=[message(wamid, text="Hello")])
    assert requests.post(address, body, headers=signed(body), timeout=30).status_code == 200
    there = "SELECT 1 FROM messages WHERE provider_id = %s"
    wait_until(lambda: rows(stack, there, wamid), 60, "the message is received")


def arrivals(stack: Stack, workspace_id: str) -> str:
    [(stored, due)] = rows(stack, _ARRIVALS, workspace_id)
    return f"{stored:,} stored, of which {due:,} are not processed"


def send(address: str, attack: Attack) -> Counter[int | str]:
    """Sends such webhooks over many connections; returns what came of them."""
    statuses, ends = Counter[int | str](), time.monotonic() + SECONDS
    threads = [threading.Thread(target=_send, args=(address, attack, ends, statuses)) for _ in range(CONNECTIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return statuses


def _send(address: str, attack: Attack, ends: float, statuses: Counter[int | str]) -> None:
    with requests.Session() as session:
        for body in bodies(attack):
            if time.monotonic() > ends:
                return
            outcome: int | str = "hung up"
            with suppress(requests.RequestException):
                outcome = session.post(address, body, headers=signed(body), timeout=60).status_code
            statuses[outcome] += 1


def bodies(attack: Attack) -> Iterator[bytes]:
    while True:
        told = [status(f"wamid.{ids.new('msg')}", "delivered") for _ in range(attack.statuses)]
        if attack.is_spoilt:
            for number in range(0, len(told), 10):
                told[number]["id"] = BAD[number // 10 % len(BAD)]
        yield webhook(statuses=told)


_ARRIVALS = "SELECT count(*), count(*) FILTER (WHERE due_at IS NOT NULL) FROM arrivals WHERE workspace_id = %s"
