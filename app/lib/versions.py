"""Versions: tells which code this process runs."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

# The number of this release or, between releases, of the next one. CONTRIBUTING.md says how a release is made.
NUMBER = "0.2.0"
FOLDER = Path(__file__).parents[2]


@cache
def running() -> str:
    """Returns the number, and the commit if this is a checkout, as in `0.1.0+g5ac5c79-dirty`.

    Without git, adds the content of the file `VERSION`. Read once: files that change later are not the running code.
    """
    try:
        described = subprocess.run(
            # The code may belong to another user than the process. Without this, git would refuse to read it.
            ["git", "-c", f"safe.directory={FOLDER}", "describe", "--always", "--exclude=*", "--dirty"],
            cwd=FOLDER,
            capture_output=True,
            text=True,
            timeout=5,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):  # installed without git
        named = FOLDER / "VERSION"
        return "+".join([NUMBER, *(named.read_text().split()[:1] if named.exists() else ())])
    return f"{NUMBER}+g{described.stdout.strip()}"
