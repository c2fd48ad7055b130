"""Breakages: describes an unexpected exception in a few lines, to store with the job it broke."""

from __future__ import annotations

import re
import traceback
from pathlib import Path
from typing import Any

MOST_FRAMES, LONGEST_MESSAGE, LONGEST_NAME = 8, 500, 200
_ROOT = Path(__file__).parents[2]
_OURS = ("app", "workers", "scheduler")
# Matches a run of capitals, small letters and digits: a token, a key or a signature. (Our identifiers have no
# capitals.) Also matches the user and password in a URL.
_SECRET = re.compile(
    r"(?=[\w+/=.:~-]*[A-Z])(?=[\w+/=.:~-]*[a-z])(?=[\w+/=.:~-]*\d)[\w+/=.:~-]{20,}|(?<=://)[^\s/@]+(?=@)"
)


def described(error: BaseException) -> dict[str, Any]:
    """Returns the exception's `type` and `message`, and the last `frames` of our code, latest last.

    Bounded in size. The message is only the first line, because PostgreSQL quotes rows in the others. Text that looks
    like a secret is removed, but the message may still quote data. A frame is a file, a line and a function, without
    values.
    """
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    lines = str(error).strip().splitlines()
    # Cuts twice: before, so that the expression does not scan a megabyte; after, so that no half of a secret is left.
    message = _SECRET.sub("…", lines[0][: 2 * LONGEST_MESSAGE]) if lines else ""
    frames = [shown for frame in traceback.extract_tb(error.__traceback__) if (shown := _shown(frame))]
    return {
        "type": name[:LONGEST_NAME],
        "message": message[:LONGEST_MESSAGE].replace("\0", ""),
        "frames": frames[-MOST_FRAMES:],
    }


def _shown(frame: traceback.FrameSummary) -> str | None:
    """Returns the frame as a line; None if it is not in our code."""
    path = Path(frame.filename)
    if not path.is_relative_to(_ROOT) or (inside := path.relative_to(_ROOT)).parts[0] not in _OURS:
        return None
    return f"{inside}:{frame.lineno} {frame.name}"[:LONGEST_NAME]
