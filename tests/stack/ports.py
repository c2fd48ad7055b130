"""Finding TCP ports of loopback that nobody listens on."""

import random
import socket

# Below the range from which systems take the ports of outgoing connections,
# so that a server that is stopped for a while finds its port free again.
_CHOICE = range(20_000, 32_000)


def free_port(preferred: int | None = None) -> int:
    """The preferred port if it is free, else any free one."""
    if preferred is not None and is_free(preferred):
        return preferred
    return next(port for port in random.sample(_CHOICE, len(_CHOICE)) if is_free(port))


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
