"""Free TCP ports on loopback."""

import os
import random
import socket

# Below the range of ephemeral ports, so that a server that is stopped for a while finds its port free again.
_CHOICE = range(20_000, 32_000)
# A port may be used only seconds after it was handed out, so none is handed out twice, and processes started one after
# another choose from different ports.
_SHARES = 50
_given: set[int] = set()
# Ranges for what looks for others by their ports and must find only its own; `free_port` gives none of these ports.
_RANGES = range(10_000, 20_000)


def free_port(preferred: int | None = None) -> int:
    """The preferred port if it is free, else any free one. Never returns a port twice."""
    share = _CHOICE[os.getpid() % _SHARES :: _SHARES]
    wishes = [] if preferred is None else [preferred]
    port = next(port for port in [*wishes, *random.sample(share, len(share))] if port not in _given and is_free(port))
    _given.add(port)
    return port


def free_range(length: int) -> int:
    """The first of so many neighbouring ports, all of which are free. Never returns a range twice."""
    starts = _RANGES[: 1 - length : length]
    own = os.getpid() % len(starts)
    candidates = (start for start in [*starts[own:], *starts[:own]] if start not in _given)
    first: int = next(start for start in candidates if _are_free(start, length))
    _given.add(first)
    return first


def _are_free(first: int, length: int) -> bool:
    return all(is_free(port) for port in range(first, first + length))


def is_free(port: int) -> bool:
    """Whether nothing listens on the port."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
