"""Versions: which code this process runs."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

UNKNOWN = "unknown"


@cache
def running() -> str:
    """What `git describe` says of this code, such as `v1.4-3-g5ac5c79`, or UNKNOWN where it was installed without git.

    Asked once, when the process starts: files that change later are not what runs.
    """
    try:
        described = subprocess.run(
            ["git", "describe", "--always", "--tags", "--dirty"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            timeout=5,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return UNKNOWN
    return described.stdout.strip()
