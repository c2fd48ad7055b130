"""Room for files on the disk of MEDIA_DIR."""

from __future__ import annotations

import shutil
from pathlib import Path

from app import bounds, metrics
from app.config import settings
from app.errors import Unavailable


def check_room() -> None:
    """Raises Unavailable while the disk of MEDIA_DIR is nearly full."""
    free = free_bytes()
    metrics.MEDIA_FREE.set(free)
    if free < bounds.LEAST_FREE.most:
        bounds.LEAST_FREE.reached()
        raise Unavailable("There is too little room for files at this moment. Try again later.")


def free_bytes() -> int:
    """How many bytes are free under MEDIA_DIR, or where it will be made."""
    place = Path(settings().media_dir).absolute()
    while not place.exists():
        place = place.parent
    return shutil.disk_usage(place).free
