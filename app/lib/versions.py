"""Versions: which code this process runs."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

# Of this release or, between releases, of the next one. CONTRIBUTING.md says how a release is made.
NUMBER = "0.2.0"


@cache
def running() -> str:
    """The number, and behind it the commit in a checkout, such as `0.1.0+g5ac5c79` or `0.1.0+g5ac5c79-dirty`.

    Asked once, when the process starts: files that change later are not what runs.
    """
    try:
        described = subprocess.run(
            ["git", "describe", "--always", "--exclude=*", "--dirty"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            timeout=5,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):  # installed without git
        return NUMBER
    return f"{NUMBER}+g{described.stdout.strip()}"
