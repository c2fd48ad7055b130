"""Webhooks as they arrive at the receiver, by the number of the contact in them."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bench.errors import BenchError
from bench.sites import Site
from bench.wire import number_in
from tests.stack.receiver import Received, Receiver

PATIENCE_SECONDS = 30


class Arrivals:
    """Records when each contact's webhook first arrived, and calls `on_arrival` for each."""

    def __init__(self) -> None:
        self.at: dict[int, float] = {}
        self.on_arrival: Callable[[], None] | None = None
        self._news = threading.Event()

    def note(self, received: Received) -> None:
        """Records the delivery's time of arrival, unless its contact has had one."""
        number = number_in(received.body)
        if number is None or number in self.at:
            return
        self.at[number] = received.at
        self._news.set()
        if self.on_arrival is not None:
            self.on_arrival()

    def wait_for(self, number: int) -> float:
        """Waits for the webhook and returns when it arrived. Raises BenchError if it does not arrive."""
        ends = time.monotonic() + PATIENCE_SECONDS
        while number not in self.at:
            if not self._news.wait(ends - time.monotonic()):
                raise BenchError(f"The webhook of contact {number} did not arrive in {PATIENCE_SECONDS} s.")
            self._news.clear()
        return self.at[number]


@contextmanager
def receiving(site: Site, arrivals: Arrivals) -> Iterator[None]:
    """Runs a receiver, and gives the workspace an endpoint that gets one event for each write."""
    receiver = Receiver(site.stack.certificates.ca_file.parent, on_receive=arrivals.note)
    receiver.keeps = False
    receiver.start()
    try:
        site.stack.command("endpoint", "create", site.workspace, receiver.url(), "--events", "contact.created")
        yield
    finally:
        receiver.stop()
