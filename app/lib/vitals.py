"""Ends the process if a thread that it needs raises, or an event loop stops responding.

A supervisor then starts another process. Otherwise, the process would go on looking healthy and do nothing.
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
# How many looks in a row a loop may miss. Counts looks, not seconds, because a process that was frozen has not hung.
MOST_MISSED = 60


def start(target: Callable[..., object], name: str, *arguments: Any) -> threading.Thread:
    """Starts a daemon thread. The process ends if `target` raises; `target` may return."""
    thread = threading.Thread(target=_run, args=(target, name, *arguments), name=name, daemon=True)
    thread.start()
    return thread


def start_loop(loop: asyncio.AbstractEventLoop, name: str) -> None:
    """Runs the loop in a thread of its own, and watches it."""
    start(loop.run_forever, name)
    watch(loop, name)


def watch(loop: asyncio.AbstractEventLoop, name: str) -> None:
    """Ends the process if the loop, running or about to run, misses MOST_MISSED looks in a row."""
    start(_watch, f"watch-{name}", loop, name)


def end(**facts: object) -> None:
    """Logs the facts and ends the process at once, without cleaning up."""
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
        except RuntimeError:  # the loop is closed
            return
        for _ in range(MOST_MISSED):
            if answered.wait(LOOKS_EVERY_SECONDS):
                break
        else:
            if loop.is_running():
                end(loop=name)
            return
        pause.wait(LOOKS_EVERY_SECONDS)
