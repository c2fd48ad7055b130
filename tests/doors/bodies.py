"""Sixteen connections send bodies of 100 MiB, with a length, without, and compressed: reads of another workspace."""

from __future__ import annotations

import gzip
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from functools import partial
from multiprocessing import get_context

import requests

from tests.doors.services import Tenant, service, tenant
from tests.doors.victims import victim

Tell = Callable[[str], None]
Body = bytes | Iterator[bytes]
PART, PARTS = bytes(1024**2), 100
ATTACKERS, SECONDS = 16, 6.0
BOMB = gzip.compress(PART * PARTS)


def measure(tell: Tell) -> None:
    with service({"web": 1, "writes": 1, "scheduler": 1}, {"RATE_LIMIT": "0"}) as stack:
        attacker, other = tenant(stack, "Attacker"), tenant(stack, "Victim").caller()
        for name in ATTACKS:
            # A process of its own, so that the victim does not wait for its client.
            elsewhere = ProcessPoolExecutor(1, get_context("spawn"))
            with elsewhere, victim(partial(other.get, "contacts")) as felt:
                statuses = elsewhere.submit(attack, attacker, name).result()
            tell(f"{name}: {dict(statuses)}; reads of another workspace: {felt}")
            felt.check()


def attack(attacker: Tenant, name: str) -> Counter[int | str]:
    """Sends such bodies to each address that takes large ones, again and again; returns what came of them."""
    statuses, ends = Counter[int | str](), time.monotonic() + SECONDS
    threads = [
        threading.Thread(target=_send, args=(attacker, *ATTACKS[name], ends, statuses)) for _ in range(ATTACKERS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return statuses


def _send(
    attacker: Tenant, body: Callable[[], Body], headers: Mapping[str, str], ends: float, statuses: Counter[int | str]
) -> None:
    base = f"{attacker.base_url}/api/v1/workspaces/{attacker.workspace_id}"
    sent = {"Authorization": f"Bearer {attacker.token}", "Content-Type": "application/jsonl", **headers}
    while time.monotonic() < ends:
        for path in ("contacts", "contacts/import", "uploads"):
            outcome: int | str = "hung up"
            with suppress(requests.RequestException):
                outcome = requests.post(f"{base}/{path}", data=body(), headers=sent, timeout=60).status_code
            statuses[outcome] += 1


ATTACKS: Mapping[str, tuple[Callable[[], Body], Mapping[str, str]]] = {
    "long": (lambda: PART * PARTS, {}),
    "of unknown length": (lambda: (PART for _ in range(PARTS)), {}),
    "compressed": (lambda: BOMB, {"Content-Encoding": "gzip"}),
}
