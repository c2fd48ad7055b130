"""Processes that hang: they exist and keep their connections, but do nothing until they are told to go on."""

import signal
import time
from contextlib import suppress

import psutil


def freeze(process: psutil.Process) -> None:
    """Send SIGSTOP and wait until the process has stopped: on a busy machine its threads go on for a while.

    Does nothing to a process that has ended.
    """
    with suppress(psutil.NoSuchProcess):
        process.send_signal(signal.SIGSTOP)
        while process.status() not in (psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE):
            time.sleep(0.001)


def freeze_tree(pid: int) -> None:
    """Freeze a process, so that it starts no more children, and then all that descend from it."""
    with suppress(psutil.NoSuchProcess):
        leader = psutil.Process(pid)
        freeze(leader)
        for child in leader.children(recursive=True):
            freeze(child)


def thaw_tree(pid: int) -> None:
    """Resume all that `freeze_tree` froze. Safe to repeat."""
    with suppress(psutil.NoSuchProcess):
        leader = psutil.Process(pid)
        for process in (leader, *leader.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                process.resume()
