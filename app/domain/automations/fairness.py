"""Fairness: in a batch with runs of several workspaces, those that have computed least lately go first.

A batch ends after half a second of computing. So the runs of a workspace whose steps take long wait for one another,
and not those of the others for them.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from app.mailbox import Claimed

# How long computing counts, at least; at most twice as long.
SPAN_SECONDS = 10.0


class Turns:
    """The seconds that each workspace has computed lately in this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._latest: Counter[str] = Counter()
        self._before: Counter[str] = Counter()
        self._ends = 0.0

    @contextmanager
    def of(self, workspace_id: str) -> Iterator[None]:
        """Counts the seconds that the block takes."""
        began = time.monotonic()
        try:
            yield
        finally:
            now = time.monotonic()
            with self._lock:
                if now > self._ends:
                    self._before = self._latest if now - self._ends < SPAN_SECONDS else Counter()
                    self._latest, self._ends = Counter(), now + SPAN_SECONDS
                self._latest[workspace_id] += now - began  # type: ignore[assignment]

    def ordered(self, batch: Sequence[Claimed]) -> list[Claimed]:
        """The batch, by what their workspaces have computed; of one workspace, as they were."""
        with self._lock:
            seconds = {each.owner: self._latest[each.owner] + self._before[each.owner] for each in batch}
        return sorted(batch, key=lambda each: seconds[each.owner])
