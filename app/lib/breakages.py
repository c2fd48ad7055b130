"""Breakages: an unexpected exception in a few lines, for people who look for its cause later."""

from __future__ import annotations

import re
import traceback
from pathlib import Path
from typing import Any

MOST_FRAMES, LONGEST_MESSAGE, LONGEST_NAME = 8, 500, 200
_ROOT = Path(__file__).parents[2]
_OURS = ("app", "workers", "scheduler")
# A run of characters with capitals, small letters and digits: a token, a key or a signature. Identifiers have no
# capitals. And what an address has before its host.
_SECRET = re.compile(
    r"(?=[\w+/=.:~-]*[A-Z])(?=[\w+/=.:~-]*[a-z])(?=[\w+/=.:~-]*\d)[\w+/=.:~-]{20,}|(?<=://)[^\s/@]+(?=@)"
)


def described(error: BaseException) -> dict[str, Any]:
    """The `type` and `message` of the exception, and the last `frames` of our code that it passed, the latest last.

    Bounded in size. The message is the first line only, as PostgreSQL quotes rows in the others, and without what looks
    like a secret. It may still quote data. No frame has values, only a file, a line and a function.
    """
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    lines = str(error).strip().splitlines()
    # Cut twice: the expression need not look at a megabyte, and no half of a secret is left at the end.
    message = _SECRET.sub("…", lines[0][: 2 * LONGEST_MESSAGE]) if lines else ""
    frames = [shown for frame in traceback.extract_tb(error.__traceback__) if (shown := _shown(frame))]
    return {
        "type": name[:LONGEST_NAME],
        "message": message[:LONGEST_MESSAGE].replace("\0", ""),
        "frames": frames[-MOST_FRAMES:],
    }


def _shown(frame: traceback.FrameSummary) -> str | None:
    """None if the frame is not of our code."""
    path = Path(frame.filename)
    if not path.is_relative_to(_ROOT) or (inside := path.relative_to(_ROOT)).parts[0] not in _OURS:
        return None
    return f"{inside}:{frame.lineno} {frame.name}"[:LONGEST_NAME]
