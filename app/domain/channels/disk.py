"""The disks of MEDIA_DIR and of the temporary directory: their room, whether they can be written, and which it is."""

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

# One of these at a time: a network disk that hangs must not hold up all threads of `web`.
_trying = threading.Lock()
_PATIENCE_SECONDS = 2.0
# The file that tells the directories of machines apart, which may all have the same path.
MARK = ".bellhop"


def check_room() -> None:
    """Raises Unavailable while a disk that files are written to is nearly full, or does not say."""
    try:
        free = free_bytes()
    except OSError as error:
        log.error("media.disk_unknown", error=str(error))
        raise Unavailable("Files cannot be stored at this moment. Try again later.") from error
    if free < bounds.LEAST_FREE.most:
        bounds.LEAST_FREE.reached()
        raise Unavailable("There is too little room for files at this moment. Try again later.")


def free_bytes() -> int:
    """How many bytes are free under MEDIA_DIR, or where it will be made, and where bodies wait: the fewer of both.

    Raises OSError.
    """
    place = Path(settings().media_dir).absolute()
    while not os.path.exists(place):  # unlike Path.exists, no error where we may not look
        place = place.parent
    free = {
        name: shutil.disk_usage(path).free for name, path in (("media", place), ("temporary", tempfile.gettempdir()))
    }
    for name, number in free.items():
        metrics.MEDIA_FREE.labels(name).set(number)
    return min(free.values())


def try_writing() -> None:
    """Writes a file under MEDIA_DIR, which it makes, and deletes it. Raises OSError, which names the directory."""
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
    """What the mark of MEDIA_DIR says, which is made if there is none; "" while another process writes it.

    Raises OSError.
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
    """Has this process say in which directory it keeps files, for the check that there is only one."""
    try:
        presence.tell("files", mark())
    except OSError as error:
        log.warning("media.mark_unknown", error=str(error))


def _refused(directory: Path, error: OSError) -> OSError:
    metrics.DISK_REFUSALS.labels("media").inc()
    return OSError(f"MEDIA_DIR ({directory}) cannot be written: {error.strerror or error}")
