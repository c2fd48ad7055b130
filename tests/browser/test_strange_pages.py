"""The widget of a web chat on pages whose styles and policies were not made with it in mind."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.conftest import NewBrowser
from tests.browser.shop import Chat, Shop, Widget

STYLES = {
    "a body that is moved": "body { transform: scale(1); height: 5000px; will-change: transform; }",
    "a body that filters": "body { filter: grayscale(0.1); height: 5000px; overflow: hidden; }",
    "a body that is hidden until all has loaded": "body { opacity: 0 !important; visibility: hidden; }",
    "what it does not know is hidden": "html > :not(head, body), bellhop-chat { display: none !important; }",
    "everything is laid out anew": "* { all: unset !important; } html { display: grid !important; gap: 99px; }",
    "everything is small": "html > * { zoom: 0.5 !important; opacity: 0.5 !important; position: static !important; }",
    "fonts": "html, * { font: italic 40px/3 serif !important; letter-spacing: 9px !important; color: red !important }",
    "letters": "html { text-transform: uppercase; text-align: center; cursor: wait; pointer-events: none; }",
    "elements": "button, textarea, div, p { display: none !important; transition: all 9s !important; }",
    "custom properties": "* { --accent: red !important; --paper: red !important; --ink: red !important; }",
}
# Where each element is and what it looks like.
LOOK = """() => [...document.querySelector("bellhop-chat").shadowRoot.querySelectorAll("*")].map((each) => {
    const { x, y, width, height } = each.getBoundingClientRect();
    const style = getComputedStyle(each);
    const isSeen = each.checkVisibility({ opacityProperty: true, visibilityProperty: true });
    return [each.outerHTML, isSeen, x, y, width, height, ...[...style].map((name) => [name, style[name]].join())];
})"""


def test_a_page_does_not_change_what_the_widget_looks_like(
    fresh: NewBrowser, chat: Chat, shop: Shop, subtests: pytest.Subtests
) -> None:
    context = fresh()
    usual = looks(context, shop)

    for name, shop.style in STYLES.items():
        with subtests.test(name):
            assert [pair for pair in zip(usual, looks(context, shop), strict=True) if pair[0] != pair[1]] == []


def looks(context: BrowserContext, shop: Shop) -> list[Any]:
    """What is seen of the widget on a page of the shop, closed and open."""
    widget = Widget(context, shop.origin)
    expect(widget.launcher).to_be_in_viewport(ratio=1)
    closed = widget.page.evaluate(LOOK)
    widget.open().box.fill("Do you have tulips?")
    expect(widget.panel).to_be_in_viewport(ratio=1)
    both = [*closed, *widget.page.evaluate(LOOK)]
    widget.page.close()
    return both


def test_a_page_that_blocks_requests_gets_no_promises(fresh: NewBrowser, chat: Chat, shop: Shop) -> None:
    shop.connect = "'none'"
    widget = Widget(fresh(), shop.origin).open()

    widget.say("Are you there?")

    expect(widget.status).to_have_text("The chat does not work on this page. Nothing can be sent from here.")
    expect(widget.items()).to_have_text([re.compile(r"Are you there\?Not sent\.")])
    expect(widget.panel.get_by_role("button")).to_have_count(1)
    expect(widget.box).to_be_hidden()
    expect(widget.log).to_be_focused()
    assert lines(widget) == [advice(chat.service.base_url)]


def test_what_one_page_could_not_send_another_can(fresh: NewBrowser, chat: Chat, shop: Shop) -> None:
    context = fresh()
    shop.connect = "'none'"
    blocked = Widget(context, shop.origin).open()
    blocked.say("Are you there?")
    expect(blocked.log).to_contain_text("Not sent")
    blocked.page.close()

    shop.connect = "http:"
    widget = Widget(context, shop.origin).open()
    widget.log.get_by_role("button", name="Try again").click()

    widget.expect_sent()
    assert chat.texts() == ["Are you there?"]


def test_a_page_that_blocks_the_stream_alone_has_a_chat(fresh: NewBrowser, chat: Chat, shop: Shop) -> None:
    shop.connect = chat.service.base_url
    widget = Widget(fresh(), shop.origin).open()
    widget.say("Hello")
    widget.expect_sent()

    chat.answer("Good morning")

    widget.expect("Hello", "Good morning")
    assert lines(widget) == [advice(live(chat))]


def test_the_requests_of_others_may_be_blocked(fresh: NewBrowser, chat: Chat, shop: Shop) -> None:
    shop.connect = f"{chat.service.base_url} {live(chat)}"
    widget = Widget(fresh(), shop.origin).open()
    ask_another_server(widget.page)

    widget.say("Hello")

    widget.expect_sent()
    assert lines(widget) == []


def ask_another_server(page: Page) -> None:
    """The page does, and its policy forbids it."""
    ask = """() => new Promise((done) => {
        document.addEventListener("securitypolicyviolation", done);
        fetch("http://127.0.0.1:1/").catch(() => {});
    })"""
    page.evaluate(ask)


def lines(widget: Widget) -> list[str]:
    """What the widget has told the page's author."""
    return [each for each in widget.said if each.startswith("Bellhop")]


def advice(origin: str) -> str:
    return f"Bellhop: the Content-Security-Policy of this page blocks the chat. Add {origin} to connect-src."


def live(chat: Chat) -> str:
    return f"http://127.0.0.1:{chat.service.stack.realtime_port}"
