"""One running service and one browser for all stories; a fresh profile for each visitor."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import count

import pytest
from playwright.sync_api import Browser, BrowserContext, expect

from tests.browser.bots import TalkingBot
from tests.browser.chromium import chromium
from tests.browser.services import Service, Workspace, serving
from tests.browser.shop import Chat, Shop, Widget, opened
from tests.browser.visitors import Visitor, visiting
from tests.providers.telegram import Telegram

Visit = Callable[..., Visitor]
NewBrowser = Callable[..., BrowserContext]
_numbers = count(1)

# As long as Playwright waits for an action. A busy machine needs more than its five seconds for an expectation.
expect.set_options(timeout=30_000)


@pytest.fixture(scope="session")
def service() -> Iterator[Service]:
    with serving() as service:
        yield service


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def workspace(service: Service) -> Workspace:
    """A new workspace with a member of each role."""
    return service.open(f"Shop {next(_numbers)}")


@pytest.fixture
def visit(service: Service, browser: Browser) -> Iterator[Visit]:
    """Opens a window: `visit(email)` is signed in, `visit()` is not; further arguments are those of a context."""
    with ExitStack() as windows:

        def visit(email: str | None = None, **options: object) -> Visitor:
            visitor = windows.enter_context(visiting(browser, service.base_url, **options))
            return visitor.sign_in(email) if email else visitor

        yield visit
        service.receiver.answers.clear()
        service.receiver.behaviour = None
        service.receiver.clear()


@pytest.fixture
def shop() -> Iterator[Shop]:
    with opened() as shop:
        yield shop


@pytest.fixture
def chat(service: Service, workspace: Workspace, shop: Shop) -> Chat:
    chat = Chat(service, workspace, shop.origin)
    shop.script = chat.script
    return chat


@pytest.fixture
def bot(service: Service, workspace: Workspace) -> Iterator[TalkingBot]:
    """The workspace's bot on Telegram, which is there during the story."""
    telegram = Telegram(service.stack.certificates.ca_file.parent, service.telegram_port)
    telegram.start()
    yield TalkingBot(service, workspace, telegram)
    telegram.stop()


@pytest.fixture
def fresh(browser: Browser) -> Iterator[NewBrowser]:
    """Makes a browser profile of its own; arguments are those of a Playwright context."""
    with ExitStack() as opened:

        def fresh(**options: object) -> BrowserContext:
            return opened.enter_context(browser.new_context(**options))

        yield fresh


@pytest.fixture
def widget(fresh: NewBrowser, chat: Chat, shop: Shop) -> Iterator[Widget]:
    widget = Widget(fresh(), shop.origin)
    yield widget
    assert widget.faults == []
