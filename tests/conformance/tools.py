"""The tools that `make conformance` installs, separate from the project's own packages."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
TOOLS = ROOT / ".conformance"
BIN = TOOLS / "venv" / "bin"
# Their programs, such as Node.js, take precedence over those of the machine.
PATH = os.pathsep.join([str(BIN), str(TOOLS / "node_modules" / ".bin"), os.environ["PATH"]])


def run(*command: str, cwd: Path = ROOT, timeout_seconds: float = 120, **settings: str) -> None:
    """Runs a tool and shows its output. Raises CalledProcessError if it fails."""
    subprocess.run(command, cwd=cwd, env=environment(settings), timeout=timeout_seconds, check=True)


def environment(settings: Mapping[str, str]) -> dict[str, str]:
    return {**os.environ, "PATH": PATH, "NO_COLOR": "1", **settings}
