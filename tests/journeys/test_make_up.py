"""`make up` in a checkout of its own: what it prints, and every way to stop it."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, Request, build_opener, urlopen

import psutil
import pytest

from tests.journeys.waiting import wait_until
from tests.stack.leftovers import MARK
from tests.stack.ports import is_free
from tests.stack.processes import ROOT
from tests.stack.up import PAGES_PORT

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
            preexec_fn=_heed_interrupts,
        )
    try:
        yield make, output.read_text
    finally:
        for process in processes_of(checkout):
            process.kill()
        make.kill()
        make.wait()


def _heed_interrupts() -> None:
    """Shells let what they start in the background ignore SIGINT, and this suite may be among that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


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


class Person(ABC):
    """Writes to the demo, and knows what it has answered so far."""

    name: str

    @abstractmethod
    def answers(self) -> list[str]: ...

    @abstractmethod
    def write(self, text: str) -> None: ...

    def says(self, text: str) -> list[str]:
        """Writes, and waits for one more answer; returns all."""
        expected = len(self.answers()) + 1
        self.write(text)
        wait_until(lambda: len(self.answers()) == expected, 60, f"{text!r} is answered")
        return self.answers()


class OnTelegram(Person):
    """A person at the page of Telegram, by the address that is printed."""

    name = "Ada"

    def __init__(self, output: str) -> None:
        self._messages = f"{printed(output, 'Telegram').removesuffix('/telegram')}/messages"

    def answers(self) -> list[str]:
        said: list[dict[str, Any]] = asked(self._messages)["messages"]
        return [message["text"] for message in said if message["from"] == "bot"]

    def write(self, text: str) -> None:
        asked(self._messages, {"text": text}, {"Content-Type": "application/json"})


class InTheShop(Person):
    """A visitor of the shop's page, who makes the requests that its script makes."""

    name = "there"

    def __init__(self, output: str) -> None:
        address = printed(output, "Web chat")
        with urlopen(address, timeout=20) as page:
            script = re.search(r'<script async src="([^"]+)\.js">', page.read().decode())
        assert script is not None
        with urlopen(f"{script[1]}.js", timeout=20) as served:
            assert served.headers["Content-Type"].startswith("text/javascript")
        self._messages = f"{script[1]}/messages"
        self._headers = {"Origin": address.removesuffix("/shop")}

    def answers(self) -> list[str]:
        if "Authorization" not in self._headers:
            return []
        said: list[dict[str, Any]] = asked(self._messages, headers=self._headers)["messages"]
        return [message["text"] for message in said if message["direction"] == "out"]

    def write(self, text: str) -> None:
        key = {} if "Authorization" in self._headers else {"key": secrets.token_hex(16)}
        said = asked(self._messages, {"id": secrets.token_hex(8), "text": text, **key}, self._headers)
        if key:
            self._headers["Authorization"] = f"Bearer {said['token']}"


def printed(output: str, name: str) -> str:
    """The address of one of the pages on which a person writes."""
    said = re.search(rf"{name} +(http://\S+):", output)
    assert said is not None, output
    return said[1]


def asked(address: str, body: dict[str, Any] | None = None, headers: dict[str, str] | None = None) -> Any:
    content = None if body is None else json.dumps(body).encode()
    with urlopen(Request(address, content, headers or {}), timeout=20) as response:
        return json.load(response)


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
        pytest.param(
            lambda make: os.kill(make.pid, signal.SIGTERM), id="SIGTERM to make alone", marks=pytest.mark.nightly
        ),
        pytest.param(lambda make: os.killpg(make.pid, signal.SIGINT), id="Ctrl-C", marks=pytest.mark.nightly),
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


@pytest.mark.parametrize(
    "start",
    [
        "first",
        pytest.param("second", marks=pytest.mark.nightly),
        pytest.param("at another port", marks=pytest.mark.nightly),
    ],
)
def test_a_person_talks_with_the_automation_also_after_a_restart(checkout: Path, start: str) -> None:
    with ExitStack() as during:
        if start == "at another port" and is_free(PAGES_PORT):
            during.enter_context(socket.create_server(("127.0.0.1", PAGES_PORT)))
        make, output = during.enter_context(make_up(checkout))
        wait_until(lambda: READY in output() or make.poll() is not None, 120, "it is ready")
        for person in (OnTelegram(output()), InTheShop(output())):
            person.says("Hello")
            question, thanks = person.says("Yes, please")

            assert question.startswith(f"Hello {person.name}! Shall we send you our newsletter?")
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
