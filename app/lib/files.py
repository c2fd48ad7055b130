"""Files that are there completely or not at all, and how many a process may have open."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterable
from pathlib import Path


class TooLong(Exception):
    """The content is longer than allowed. Nothing was written."""


def write(path: Path, content: Iterable[bytes], most_bytes: int) -> int:
    """Writes the file, replacing one that is there, and returns its length. It survives a loss of power.

    Raises TooLong above `most_bytes`, and OSError. Whatever the content raises passes through.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        length = _write_all(partial, content, most_bytes)
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    _sync(path.parent)
    return length


def raise_open_limit(enough: int) -> int:
    """Raises the soft limit on open file descriptors to `enough`, or to the hard limit if that is lower.

    Never lowers it. Safe to repeat. Returns the limit that then holds.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return enough
    wanted = enough if hard == resource.RLIM_INFINITY else min(enough, hard)
    if wanted > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return max(soft, wanted)


def _write_all(path: Path, content: Iterable[bytes], most_bytes: int) -> int:
    length = 0
    with path.open("wb") as file:
        for part in content:
            length += len(part)
            if length > most_bytes:
                raise TooLong
            file.write(part)
        file.flush()
        os.fsync(file.fileno())
    return length


def _sync(directory: Path) -> None:
    """The new name is on the disk, too."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
