"""The limit on a process's open file descriptors."""

from __future__ import annotations

import resource


def raise_limit(enough: int) -> int:
    """Raises the soft limit to `enough`, or to the hard limit if that is lower; never lowers it. Safe to repeat.

    Returns the limit that then holds.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return enough
    wanted = enough if hard == resource.RLIM_INFINITY else min(enough, hard)
    if wanted > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return max(soft, wanted)
