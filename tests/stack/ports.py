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


def free_port(preferred: int | None = None) -> int:
    """The preferred port if it is free, else any free one. Never returns a port twice."""
    share = _CHOICE[os.getpid() % _SHARES :: _SHARES]
    wishes = [] if preferred is None else [preferred]
    port = next(port for port in [*wishes, *random.sample(share, len(share))] if port not in _given and is_free(port))
    _given.add(port)
    return port


def is_free(port: int) -> bool:
    """Whether nothing listens on the port."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
