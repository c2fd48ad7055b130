"""Room for files on the disks of MEDIA_DIR and of the temporary directory."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from app import bounds, metrics
from app.config import settings
from app.errors import Unavailable


def check_room() -> None:
    """Raises Unavailable while a disk that files are written to is nearly full."""
    if free_bytes() < bounds.LEAST_FREE.most:
        bounds.LEAST_FREE.reached()
        raise Unavailable("There is too little room for files at this moment. Try again later.")


def free_bytes() -> int:
    """How many bytes are free under MEDIA_DIR, or where it will be made, and where bodies wait: the fewer of both."""
    place = Path(settings().media_dir).absolute()
    while not place.exists():
        place = place.parent
    free = {
        name: shutil.disk_usage(path).free for name, path in (("media", place), ("temporary", tempfile.gettempdir()))
    }
    for name, number in free.items():
        metrics.MEDIA_FREE.labels(name).set(number)
    return min(free.values())
