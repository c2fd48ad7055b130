"""Writes files completely or not at all, and raises the limit of open files."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterable
from pathlib import Path

# Readable for the group, because a backup may run as another user of that group.
FILE_MODE, DIRECTORY_MODE = 0o640, 0o750


class TooLong(Exception):
    """The content is longer than allowed. Nothing was written."""


def write(path: Path, content: Iterable[bytes], most_bytes: int) -> int:
    """Writes the file atomically, replacing any old one, and syncs it to disk. Returns its length.

    Other users of the machine cannot read the file, or directories created for it. Raises TooLong above `most_bytes`,
    and OSError. Exceptions of `content` pass through.
    """
    make_directory(path.parent)
    partial = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        length = _write_all(partial, content, most_bytes)
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    _sync(path.parent)
    return length


def make_directory(path: Path) -> None:
    """Creates the directory and its missing parents, for this user and its group. Raises OSError."""
    if not path.parent.exists():
        make_directory(path.parent)
    path.mkdir(DIRECTORY_MODE, exist_ok=True)  # `parents=True` would apply only the umask to the parents


def raise_open_limit(enough: int) -> int:
    """Raises the soft limit on open files to `enough`, or to the hard limit if that is lower.

    Never lowers it. Safe to repeat. Returns the limit that then holds; `enough` if there is none.
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
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, FILE_MODE), "wb") as file:
        for part in content:
            length += len(part)
            if length > most_bytes:
                raise TooLong
            file.write(part)
        file.flush()
        os.fsync(file.fileno())
    return length


def _sync(directory: Path) -> None:
    """Makes sure that a new name in the directory is on disk, too."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
