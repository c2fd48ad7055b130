"""E-mail: somebody who has forgotten their password gets a link, though the scheduler dies while it sends it."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
import requests

from tests.journeys.audit import rows
from tests.journeys.conftest import serve
from tests.journeys.waiting import wait_until
from tests.mail_server import MailServer
from tests.stack.stack import Stack

EMAIL, PASSWORD = "ada@shop.example", "a new password"


@pytest.fixture
def mail() -> Iterator[MailServer]:
    server = MailServer()
    yield server
    server.confirms.set()
    server.stop()


@pytest.fixture
def stack(mail: MailServer) -> Iterator[Stack]:
    """The pages, and a scheduler that sends e-mail."""
    yield from serve({"web": 1, "scheduler": 1}, {"SMTP_URL": mail.url()})


def test_a_link_arrives_and_works_though_its_sender_was_killed(stack: Stack, mail: MailServer) -> None:
    shop = stack.command("workspace", "create", "Shop")["workspace"]["id"]
    stack.command("member", "create", shop, EMAIL, "--role", "owner", input="the first password\n")
    browser = Browser(stack.base_url)
    mail.confirms.clear()

    assert "a link is on its way" in browser.post("/forgotten", email=EMAIL).text
    wait_until(lambda: mail.received, 30, "the server has the message")
    stack.processes.kill("scheduler.1")
    mail.confirms.set()
    stack.processes.stop("scheduler.1")
    rows(stack, "UPDATE emails SET due_at = now() RETURNING id")  # its claim is over
    stack.processes.start("scheduler.1")
    wait_until(lambda: len(mail.received) > 1, 30, "another scheduler sends it")
    wait_until(lambda: not rows(stack, "SELECT id FROM emails"), 30, "nothing is left to send")

    found = re.search(r"http://[^/]+(/links/\S+)", mail.received[-1].get_content())
    assert found
    browser.post(found[1], password=PASSWORD, repeated=PASSWORD)
    assert EMAIL in browser.get("/account").text
    assert len(mail.received) == 2


class Browser:
    """A browser without JavaScript."""

    def __init__(self, base_url: str) -> None:
        self._session = requests.Session()
        self._base_url = base_url

    def get(self, path: str) -> requests.Response:
        return self._session.get(f"{self._base_url}{path}", timeout=30)

    def post(self, path: str, **fields: str) -> requests.Response:
        """Fills in the form of the page, and sends it."""
        token = re.search(r'name="csrf_token" value="([^"]+)"', self.get(path).text)
        assert token
        answer = self._session.post(f"{self._base_url}{path}", {"csrf_token": token[1]} | fields, timeout=30)
        answer.raise_for_status()
        return answer
