"""Victims: do something harmless again and again while somebody attacks, and note how long each time takes.

`attacking` is the attack.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from statistics import quantiles

MOST_SECONDS = 1.0  # for 99 % of what a victim does
END_SECONDS = 120.0  # in which every attacker's last call must have ended


class Victim:
    """How long each call of `act` took, in seconds. One that raises counts as failed, and with its time."""

    def __init__(self, act: Callable[[], object], every_seconds: float) -> None:
        self.seconds: list[float] = []
        self.errors: list[str] = []
        self._act = act
        self._every_seconds = every_seconds
        self._is_over = threading.Event()

    def live(self) -> None:
        """Acts until it is stopped, once in `every_seconds` or as often as it can."""
        while not self._is_over.is_set():
            began = time.monotonic()
            try:
                self._act()
            except Exception as error:  # counted: a refused or broken request is what the attack did
                self.errors.append(repr(error))
            self.seconds.append(time.monotonic() - began)
            self._is_over.wait(max(0.0, began + self._every_seconds - time.monotonic()))

    def stop(self) -> None:
        """Lets the last call end."""
        self._is_over.set()

    @property
    def p99(self) -> float:
        """99 of 100 calls took no longer."""
        return self._part(99)

    @property
    def median(self) -> float:
        """Half of the calls took no longer."""
        return self._part(50)

    def check(self, most_seconds: float = MOST_SECONDS) -> None:
        """Raises AssertionError if the attack hurt: a call failed, or more than 1 % took longer than that."""
        assert not self.errors, f"{len(self.errors)} of {len(self.seconds)} calls failed: {self.errors[0]}"
        assert self.p99 <= most_seconds, f"p99 {self.p99:.2f} s, more than {most_seconds} s"

    def __str__(self) -> str:
        worst = max(self.seconds, default=0.0)
        return (
            f"median {self.median * 1000:.0f} ms, p99 {self.p99 * 1000:.0f} ms, worst {worst * 1000:.0f} ms"
            f" of {len(self.seconds)}, {len(self.errors)} failed"
        )

    def _part(self, percent: int) -> float:
        values = self.seconds or [0.0]
        return quantiles(values, n=100, method="inclusive")[percent - 1] if len(values) > 1 else values[0]


@contextmanager
def victim(act: Callable[[], object], every_seconds: float = 0.05) -> Iterator[Victim]:
    """A victim that acts inside the block. Its last call has ended when the block does."""
    living = Victim(act, every_seconds)
    thread = threading.Thread(target=living.live, name="victim", daemon=True)
    thread.start()
    try:
        yield living
    finally:
        living.stop()
        thread.join()


@contextmanager
def attacking(acts: Sequence[Callable[[threading.Event], object]]) -> Iterator[None]:
    """Calls each of these in a thread of its own. The event is set when the block ends, and they must return then.

    No thread outlives the process, whatever happens in the block. Raises AssertionError if one goes on.
    """
    is_over = threading.Event()
    threads = [threading.Thread(target=act, args=(is_over,), name="attacker", daemon=True) for act in acts]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        is_over.set()
        ends = time.monotonic() + END_SECONDS
        for thread in threads:
            thread.join(max(0.0, ends - time.monotonic()))
    left = sum(thread.is_alive() for thread in threads)
    assert not left, f"{left} of {len(threads)} attackers wait for an answer after {END_SECONDS:.0f} s"
