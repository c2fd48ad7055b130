"""Processes that outlived the program that started them, because it was killed."""

import os
from contextlib import suppress
from pathlib import Path

import psutil

MARK = "BELLHOP_STACK"


def mark(directory: Path) -> None:
    """Mark every process started from here on with the directory, in its environment."""
    os.environ[MARK] = str(directory)


def end(directory: Path) -> int:
    """End the processes marked with the directory; return how many there were."""
    found = [process for process in psutil.process_iter() if _mark_of(process) == str(directory)]
    for process in found:
        with suppress(psutil.NoSuchProcess):
            process.terminate()
    _, alive = psutil.wait_procs(found, timeout=5)
    for process in alive:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    return len(found)


def _mark_of(process: psutil.Process) -> str | None:
    try:
        return process.environ().get(MARK)
    except psutil.Error:
        return None
