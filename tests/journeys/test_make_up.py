"""`make up` in a checkout of its own: what it prints, and every way to stop it."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, Request, build_opener, urlopen

import psutil
import pytest

from tests.journeys.waiting import wait_until
from tests.stack.leftovers import MARK
from tests.stack.processes import ROOT

NEEDED = ("Makefile", "Procfile", "app", "workers", "scheduler", "tests", "requirements.txt", "requirements-dev.txt")
READY = "(Ctrl-C stops everything):"


@pytest.fixture(scope="module")
def checkout() -> Iterator[Path]:
    with TemporaryDirectory(prefix="bellhop-checkout-", ignore_cleanup_errors=True) as directory:
        for name in NEEDED:
            source, target = ROOT / name, Path(directory) / name
            (shutil.copytree if source.is_dir() else shutil.copy2)(source, target)
        (Path(directory) / ".venv").symlink_to(ROOT / ".venv")
        yield Path(directory).resolve()


@contextmanager
def make_up(checkout: Path) -> Iterator[tuple[subprocess.Popen[bytes], Callable[[], str]]]:
    """Runs it until the end of the block at the latest; yields the process of make and a view of its output."""
    output = checkout / "output"
    with output.open("wb") as file:
        # The stamp is as old as this machine's .venv, the copied requirements may be newer.
        make = subprocess.Popen(
            ["make", "-o", ".venv/installed", "up"],
            cwd=checkout,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield make, output.read_text
    finally:
        for process in processes_of(checkout):
            process.kill()
        make.kill()
        make.wait()


def failures(output: str) -> str:
    """The page of failures as the member sees it who is printed."""
    said = re.search(r"Sign-in +(\S+)\n +(\S+), password (\S+): an owner", output)
    assert said is not None, output
    form, email, password = said.groups()
    browser = build_opener(HTTPCookieProcessor())
    with browser.open(form) as page:
        token = re.search(r'csrf_token" value="([^"]+)', page.read().decode())
    assert token is not None
    fields = {"csrf_token": token[1], "email": email, "password": password}
    with browser.open(form, urlencode(fields).encode()) as page:
        overview = page.url
    with browser.open(f"{overview}/failures") as page:
        return str(page.read().decode())


class Chat:
    """The page on which a person writes to the bot, by the address that is printed."""

    def __init__(self, output: str) -> None:
        said = re.search(r"Telegram +(http://\S+/):", output)
        assert said is not None, output
        self._address = said[1]

    def answers(self) -> list[str]:
        """What the bot has said so far."""
        with urlopen(f"{self._address}messages", timeout=20) as response:
            said: list[dict[str, Any]] = json.load(response)["messages"]
        return [message["text"] for message in said if message["from"] == "bot"]

    def write(self, text: str) -> None:
        headers = {"Content-Type": "application/json"}
        urlopen(Request(f"{self._address}messages", json.dumps({"text": text}).encode(), headers), timeout=20).close()


def processes_of(checkout: Path) -> list[psutil.Process]:
    """The processes that were started for the checkout."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == str(checkout / ".data") or process.cwd() == str(checkout):
                found.append(process)
        except psutil.Error:
            continue
    return found


@pytest.mark.parametrize(
    "stop",
    [
        pytest.param(lambda make: os.kill(make.pid, signal.SIGINT), id="SIGINT to make alone"),
        pytest.param(lambda make: os.kill(make.pid, signal.SIGTERM), id="SIGTERM to make alone"),
        pytest.param(lambda make: os.killpg(make.pid, signal.SIGINT), id="Ctrl-C"),
    ],
)
def test_it_verifies_the_webhooks_of_its_curl_line_and_leaves_nothing_when_stopped(
    checkout: Path, stop: Callable[[subprocess.Popen[bytes]], None]
) -> None:
    with make_up(checkout) as (make, output):
        wait_until(lambda: READY in output() or make.poll() is not None, 120, "it is ready")
        (curl,) = [line for line in output().splitlines() if line.startswith("curl ")]
        subprocess.run(["sh", "-c", curl], check=True, capture_output=True, timeout=60)
        wait_until(lambda: "a webhook of contact.created, signature verified" in output(), 60, "the webhook arrives")

        assert "500 Internal Server Error" in failures(output())
        stop(make)

        make.wait(timeout=90)
        assert "Everything is stopped." in output()
        assert processes_of(checkout) == []


@pytest.mark.parametrize("start", ["first", "second"])
def test_a_person_talks_with_the_bot_also_after_a_restart(checkout: Path, start: str) -> None:
    with make_up(checkout) as (make, output):
        wait_until(lambda: READY in output() or make.poll() is not None, 120, "it is ready")
        chat = Chat(output())
        chat.write("Hello")
        wait_until(lambda: len(chat.answers()) == 1, 60, "the bot asks its question")
        chat.write("Yes, please")
        wait_until(lambda: len(chat.answers()) == 2, 60, "the bot thanks")

        question, thanks = chat.answers()
        assert "Shall we send you our newsletter?" in question
        assert thanks == "Thank you, you are on the list."
        os.kill(make.pid, signal.SIGINT)
        make.wait(timeout=90)


def test_a_signal_during_the_start_stops_it(checkout: Path) -> None:
    with make_up(checkout) as (make, output):
        wait_until(lambda: "PostgreSQL     ready" in output() or make.poll() is not None, 120, "it is starting")

        os.kill(make.pid, signal.SIGINT)

        make.wait(timeout=90)
        assert READY not in output()
        assert processes_of(checkout) == []
