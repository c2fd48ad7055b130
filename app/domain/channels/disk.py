"""The disks of MEDIA_DIR and of temporary files: free space, and whether they are writable."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from pathlib import Path
from uuid import uuid4

import structlog

from app import bounds, metrics, presence
from app.config import settings
from app.errors import Unavailable
from app.lib import files

log = structlog.get_logger(__name__)

# Allows one attempt at a time: a network disk that hangs must not block all threads of `web`.
_trying = threading.Lock()
_PATIENCE_SECONDS = 2.0
# The file that identifies a MEDIA_DIR: directories on several machines may have the same path.
MARK = ".bellhop"


def check_room() -> None:
    """Raises Unavailable if a disk for files is nearly full, or its free space is unknown."""
    try:
        free = free_bytes()
    except OSError as error:
        log.error("media.disk_unknown", error=str(error))
        raise Unavailable("Files cannot be stored at this moment. Try again later.") from error
    if free < bounds.LEAST_FREE.most:
        bounds.LEAST_FREE.reached()
        raise Unavailable("There is too little room for files at this moment. Try again later.")


def free_bytes() -> int:
    """Returns the free bytes for files under MEDIA_DIR or for temporary files, whichever are fewer.

    If MEDIA_DIR does not exist yet, its nearest existing parent counts. Raises OSError.
    """
    place = Path(settings().media_dir).absolute()
    while not os.path.exists(place):  # unlike Path.exists, does not raise without permission
        place = place.parent
    free = {
        name: shutil.disk_usage(path).free for name, path in (("media", place), ("temporary", tempfile.gettempdir()))
    }
    for name, number in free.items():
        metrics.MEDIA_FREE.labels(name).set(number)
    return min(free.values())


def try_writing() -> None:
    """Writes and deletes a file under MEDIA_DIR, creating the directory if it is missing.

    Raises OSError, which names the directory.
    """
    directory = Path(settings().media_dir).absolute()
    if not _trying.acquire(timeout=_PATIENCE_SECONDS):
        raise _refused(directory, TimeoutError("does not answer"))
    try:
        files.make_directory(directory)
        with tempfile.TemporaryFile(dir=directory) as file:
            file.write(bytes(4096))
            file.flush()
    except OSError as error:
        raise _refused(directory, error) from error
    finally:
        _trying.release()


def mark() -> str:
    """Returns the mark of MEDIA_DIR, creating it if there is none.

    Returns "" while another process is writing it. Raises OSError.
    """
    directory = Path(settings().media_dir).absolute()
    files.make_directory(directory)
    try:
        descriptor = os.open(directory / MARK, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, files.FILE_MODE)
    except FileExistsError:
        return (directory / MARK).read_text()
    with os.fdopen(descriptor, "w") as file:
        file.write(made := uuid4().hex)
    return made


def tell_mark() -> None:
    """Reports this process's MEDIA_DIR mark, for the check that all processes share one directory."""
    try:
        presence.tell("files", mark())
    except OSError as error:
        log.warning("media.mark_unknown", error=str(error))


def _refused(directory: Path, error: OSError) -> OSError:
    metrics.DISK_REFUSALS.labels("media").inc()
    return OSError(f"MEDIA_DIR ({directory}) cannot be written: {error.strerror or error}")
