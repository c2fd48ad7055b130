"""Caches of limited size that several threads may share."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Cache(Generic[K, V]):
    """Keeps the most recently used values, up to a total weight of `most`. Thread-safe."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._weight = 0
        self._kept: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._lock = Lock()

    def get(self, key: K) -> V | None:
        """Returns the value of the key; None if it is not kept."""
        with self._lock:
            if key not in self._kept:
                return None
            self._kept.move_to_end(key)
            return self._kept[key][0]

    def put(self, key: K, value: V, weight: int) -> None:
        """Keeps the value, and drops the least recently used ones until the total weight fits."""
        with self._lock:
            if key in self._kept:
                self._weight -= self._kept.pop(key)[1]
            self._kept[key] = (value, weight)
            self._weight += weight
            while self._weight > self._most:
                self._weight -= self._kept.popitem(last=False)[1][1]
