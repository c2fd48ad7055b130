"""Threads and event loops that a process cannot do without: the process ends when one of them dies or hangs.

Its supervisor starts another. Without that the process would go on looking healthy and do nothing.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from typing import Any

import structlog

log = structlog.get_logger(__name__)

EXIT_CODE = 70  # EX_SOFTWARE
LOOKS_EVERY_SECONDS = 1.0
# Looks in a row at which a loop has not answered. Looks and not seconds: a process that was frozen has not hung.
MOST_MISSED = 60


def start(target: Callable[..., object], name: str, *arguments: Any) -> threading.Thread:
    """Starts a daemon thread. The process ends if it raises; it may return."""
    thread = threading.Thread(target=_run, args=(target, name, *arguments), name=name, daemon=True)
    thread.start()
    return thread


def start_loop(loop: asyncio.AbstractEventLoop, name: str) -> None:
    """Runs the loop in a thread of its own, and watches it."""
    start(loop.run_forever, name)
    watch(loop, name)


def watch(loop: asyncio.AbstractEventLoop, name: str) -> None:
    """Ends the process if the loop, which is running or about to, answers nothing for MOST_MISSED looks."""
    start(_watch, f"watch-{name}", loop, name)


def end(**facts: object) -> None:
    """Ends the process at once, and logs why."""
    log.critical("process.broken", **facts)
    os._exit(EXIT_CODE)


def _run(target: Callable[..., object], name: str, *arguments: Any) -> None:
    try:
        target(*arguments)
    except Exception as error:
        log.exception("thread.died", thread=name)
        end(thread=name, error=type(error).__name__)


def _watch(loop: asyncio.AbstractEventLoop, name: str) -> None:
    answered, pause = threading.Event(), threading.Event()
    while True:
        answered.clear()
        try:
            loop.call_soon_threadsafe(answered.set)
        except RuntimeError:  # closed
            return
        for _ in range(MOST_MISSED):
            if answered.wait(LOOKS_EVERY_SECONDS):
                break
        else:
            if loop.is_running():
                end(loop=name)
            return
        pause.wait(LOOKS_EVERY_SECONDS)
