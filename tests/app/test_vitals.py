"""What a process cannot do without ends it: run in processes of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from app.lib.vitals import EXIT_CODE

ROOT = Path(__file__).parents[2]
BEGIN = """
import asyncio, threading, time
from app.lib import vitals
vitals.LOOKS_EVERY_SECONDS, vitals.MOST_MISSED = 0.05, 10
"""


def exit_code_of(program: str) -> int:
    return subprocess.run([sys.executable, "-c", BEGIN + program], cwd=ROOT, check=False, timeout=60).returncode


@pytest.mark.parametrize(
    "program",
    [
        'vitals.start(lambda: 1 / 0, "dispatcher"); time.sleep(50)',
        'loop = asyncio.new_event_loop(); vitals.start_loop(loop, "requests")\n'
        "loop.call_soon_threadsafe(time.sleep, 50); time.sleep(50)",
    ],
)
def test_a_thread_that_dies_or_a_loop_that_hangs_ends_the_process(program: str) -> None:
    assert exit_code_of(program) == EXIT_CODE


@pytest.mark.parametrize(
    "program",
    [
        'vitals.start(lambda: None, "mailing").join()',
        'loop = asyncio.new_event_loop(); vitals.start_loop(loop, "requests"); time.sleep(2)\n'
        "loop.call_soon_threadsafe(loop.stop); time.sleep(2)",
    ],
)
def test_what_returns_or_answers_does_not(program: str) -> None:
    assert exit_code_of(program) == 0
