"""Finding TCP ports of loopback that nobody listens on."""

import os
import random
import socket

# Below the range from which systems take the ports of outgoing connections,
# so that a server that is stopped for a while finds its port free again.
_CHOICE = range(20_000, 32_000)
# Who gets a port may listen there only seconds later: nobody gets it again, and processes that were started one after
# the other do not choose from the same.
_SHARES = 50
_given: set[int] = set()


def free_port(preferred: int | None = None) -> int:
    """The preferred port if it is free, else any free one; none twice."""
    share = _CHOICE[os.getpid() % _SHARES :: _SHARES]
    wishes = [] if preferred is None else [preferred]
    port = next(port for port in [*wishes, *random.sample(share, len(share))] if port not in _given and is_free(port))
    _given.add(port)
    return port


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
