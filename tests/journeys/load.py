"""Load: clients that write to contacts until they are stopped, and record every accepted write."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from tests.journeys.shops import Caller, NoAnswer, Shop
from tests.journeys.waiting import wait_until

GIVE_UP_SECONDS = 60
PAUSE_BEFORE_RETRY_SECONDS = 0.1


@dataclass(frozen=True)
class Accepted:
    """A write that got a 202: `client` set its own field of the contact to `number`, with an idempotency key.

    Times are monotonic: when it was first sent and when it was accepted. `seconds` is the duration of the last request.
    """

    workspace_id: str
    contact: str
    client: str
    number: int
    key: str
    job_id: str
    sent_at: float
    answered_at: float
    seconds: float

    @property
    def document(self) -> dict[str, object]:
        """The body of its request."""
        return {"external_id": self.contact, "custom_fields": {self.client: self.number}}


class Load:
    """Several clients for each shop, each with its own connection, that write to the same few contacts.

    Every client counts up and writes the number into a field of its own, so the fields of a contact show which writes
    were applied to it. A write without a response, or with a 503, is repeated with its Idempotency-Key until it is
    accepted. As a context manager it writes inside the block; after it, every write has been accepted.
    """

    def __init__(
        self, shops: Sequence[Shop], clients: int = 3, contacts: int = 4, pause_seconds: float = 0.03, most: int = 10**9
    ) -> None:
        """`most`: the number of writes after which a client stops."""
        self.shops = shops
        self.accepted: list[Accepted] = []
        self.refused: list[str] = []
        self._clients, self._contacts, self._pause_seconds, self._most = clients, contacts, pause_seconds, most
        self._stopping = threading.Event()
        self._pool = ThreadPoolExecutor(len(shops) * clients)
        self._running: list[Future[None]] = []

    def __enter__(self) -> Self:
        self._running = [
            self._pool.submit(self._write_on, shop, f"client_{number}")
            for shop in self.shops
            for number in range(self._clients)
        ]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        self.finish()

    def finish(self) -> None:
        """Waits until every client has stopped. Raises what a client raised."""
        self._pool.shutdown()
        for client in self._running:
            client.result()

    def go_on(self, writes: int = 50) -> None:
        """Waits until `writes` more writes have been accepted. Raises what a client raised meanwhile."""
        goal = len(self.accepted) + writes

        def is_reached() -> bool:
            for client in self._running:
                if client.done():
                    client.result()
            return len(self.accepted) >= goal

        wait_until(is_reached, 2 * GIVE_UP_SECONDS, f"{writes} further writes are accepted")

    def taken(self, since: float) -> list[float]:
        """The response times, in seconds, of the writes accepted since this moment (monotonic)."""
        return [write.seconds for write in self.accepted if write.answered_at > since]

    def _write_on(self, shop: Shop, client: str) -> None:
        caller = shop.caller()
        for number in range(1, self._most + 1):
            self.accepted.append(self._write(caller, shop, client, number))
            if self._stopping.wait(self._pause_seconds):
                return

    def _write(self, caller: Caller, shop: Shop, client: str, number: int) -> Accepted:
        contact = f"contact-{number % self._contacts}"
        document = {"external_id": contact, "custom_fields": {client: number}}
        key = str(uuid.uuid4())
        headers = {"Idempotency-Key": key}
        first_sent = time.monotonic()
        while True:
            sent = time.monotonic()
            if job_id := self._try(caller, document, headers):
                now = time.monotonic()
                return Accepted(
                    shop.workspace_id, contact, client, number, key, job_id, first_sent, now, seconds=now - sent
                )
            if sent - first_sent > GIVE_UP_SECONDS:
                raise AssertionError(f"Not accepted in {GIVE_UP_SECONDS} seconds; the last: {self.refused[-1]}")
            threading.Event().wait(PAUSE_BEFORE_RETRY_SECONDS)

    def _try(self, caller: Caller, document: object, headers: dict[str, str]) -> str | None:
        try:
            answer = caller.call("POST", "contacts", document, headers)
        except NoAnswer as error:
            self.refused.append(repr(error))
            return None
        if answer.status == 503:
            self.refused.append(str(answer.document["title"]))
            return None
        assert answer.status == 202, answer
        return str(answer.data["id"])
