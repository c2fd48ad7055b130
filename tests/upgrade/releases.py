"""Releases: the code of an earlier one, checked out into a folder."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.stack.processes import ROOT


def earlier() -> str:
    """`FROM`; or the newest release before this commit; or if there is none the commit before the newest migration."""
    if chosen := os.environ.get("FROM"):
        return chosen
    if tag := _git("tag", "--list", "v*", "--no-contains", "HEAD", "--sort=-version:refname").partition("\n")[0]:
        return tag
    newest = max((ROOT / "app" / "migrations").glob("*.sql"))
    return _git("log", "--first-parent", "-m", "--diff-filter=A", "--max-count=1", "--format=%H^", "--", str(newest))


def check_out(commit: str, folder: Path) -> Path:
    """The folder, with the code of that commit in it."""
    folder.mkdir()
    archive = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True, check=True)
    subprocess.run(["tar", "--extract"], cwd=folder, input=archive.stdout, check=True)
    return folder


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()
