"""Shops of other origins whose pages include a web chat, and what somebody does in it."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from playwright.sync_api import BrowserContext, Locator, Page, expect

from app.config import read
from app.lib import ids, json, vault
from tests.browser.services import Service, Workspace
from tests.chatting import SECRET
from tests.journeys.waiting import wait_until

_PAGE = """<!doctype html><html lang="en" dir="{direction}"><head><meta charset="utf-8"><title>A shop</title>
<meta name="viewport" content="width=device-width"><link rel="stylesheet" href="/style.css"></head>
<body><main><h1>Flowers</h1><p>Fresh every day.</p><button>Buy</button></main>
<script src="{script}" async {attributes}></script></body></html>"""
# As strict as a shop may be: the chat needs nothing but its own scripts and requests.
_POLICY = "default-src 'none'; script-src http:; connect-src {connect}; img-src http: data:; style-src 'self'"


class Shop:
    """A server whose every page includes the script at `script`, with these attributes.

    `style` is the style sheet of its pages, and `connect` what they may send requests to.
    """

    def __init__(self) -> None:
        self.script = ""
        self.attributes = ""
        self.direction = "ltr"
        self.style = ""
        self.connect = "http:"
        shop = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                page = _PAGE.format(script=escape(shop.script), attributes=shop.attributes, direction=shop.direction)
                kind, content = ("css", shop.style) if self.path == "/style.css" else ("html", page)
                self.send_response(200 if self.path in ("/", "/style.css") else 404)
                self.send_header("Content-Type", f"text/{kind}; charset=utf-8")
                self.send_header("Content-Security-Policy", _POLICY.format(connect=shop.connect))
                self.end_headers()
                self.wfile.write(content.encode())

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.origin = f"http://127.0.0.1:{self.server.server_port}"


@contextmanager
def opened() -> Iterator[Shop]:
    """A shop during the block."""
    shop = Shop()
    threading.Thread(target=shop.server.serve_forever, daemon=True).start()
    try:
        yield shop
    finally:
        shop.server.shutdown()
        shop.server.server_close()


class Chat:
    """A web chat of a workspace, which the pages of a shop may show."""

    def __init__(self, service: Service, workspace: Workspace, *origins: str) -> None:
        self.service = service
        self.workspace = workspace
        self.id = ids.new("chn")
        sealed = vault.encrypt(read(service.stack.environment).secret_keys, json.dumps({"secret": SECRET}).decode())
        service.query(
            "INSERT INTO channels (id, workspace_id, kind, name, state, settings, credentials)"
            " VALUES (%s, %s, 'web_chat', 'Ask a florist', 'connected', %s, %s)",
            *(self.id, workspace.id, json.dumps({"origins": origins}).decode(), sealed),
        )

    @property
    def script(self) -> str:
        return f"{self.service.base_url}/chat/{self.id}.js"

    def texts(self) -> list[str]:
        """What has been received, in its order, as soon as all of it is processed."""
        waiting = "SELECT 1 FROM arrivals WHERE channel_id = %s AND due_at IS NOT NULL"
        wait_until(lambda: not self.service.query(waiting, self.id), 60, "all arrivals are processed")
        found = self.service.query(
            "SELECT text FROM messages WHERE channel_id = %s AND direction = 'in' ORDER BY provider_time, id", self.id
        )
        return [text for (text,) in found]

    def answer(self, text: str, **buttons: str) -> None:
        """A member answers in the latest conversation, with these buttons: labels by identifier."""
        assert self.texts()
        offered = [{"id": button_id, "label": label} for button_id, label in buttons.items()]
        self.service.query(
            "INSERT INTO messages (id, workspace_id, conversation_id, contact_id, channel_id, direction, text, status,"
            " buttons, author, created_at) SELECT %s, workspace_id, id, contact_id, channel_id, 'out', %s, 'sent', %s,"
            " %s, now() FROM conversations WHERE channel_id = %s ORDER BY id DESC LIMIT 1",
            *(ids.new("msg"), text, json.dumps(offered).decode() if offered else None),
            *('{"type": "member", "id": "mem_1"}', self.id),
        )

    def fill(self, number: int) -> None:
        """That many earlier answers, from `Answer 1` on, in the latest conversation."""
        self.service.query(
            "INSERT INTO messages (id, workspace_id, conversation_id, contact_id, channel_id, direction, text, status,"
            " author, created_at) SELECT id || number, workspace_id, conversation_id, contact_id, channel_id, 'out',"
            " 'Answer ' || number, 'sent', author, created_at - (1 + %s - number) * interval '1 minute'"
            " FROM messages, generate_series(1, %s) AS number WHERE channel_id = %s",
            *(number, number, self.id),
        )

    def count(self, table: str) -> int:
        return int(self.service.query(f"SELECT count(*) FROM {table} WHERE channel_id = %s", self.id)[0][0])


class Widget:
    """The chat on a page, as somebody uses it."""

    def __init__(self, context: BrowserContext, address: str) -> None:
        self.page: Page = context.new_page()
        self.faults: list[str] = []
        self.said: list[str] = []
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.goto(address)
        self.launcher = self.page.get_by_role("button", name=re.compile("Open the chat"))
        self.panel = self.page.get_by_role("dialog", name="Ask a florist")
        self.log = self.page.get_by_role("log", name="Messages")
        self.box = self.page.get_by_role("textbox", name="Your message")
        self.answers = self.panel.get_by_role("group", name="Answers")
        self.status = self.panel.get_by_role("status")

    def open(self) -> Widget:
        self.launcher.click()
        expect(self.panel).to_be_visible()
        return self

    def say(self, text: str) -> None:
        self.box.fill(text)
        self.box.press("Enter")

    def items(self) -> Locator:
        return self.log.get_by_role("listitem")

    def expect(self, *texts: str) -> None:
        """Waits until the messages are these."""
        expect(self.items()).to_have_text([re.compile(re.escape(text)) for text in texts])

    def expect_sent(self) -> None:
        """Waits until nothing waits to be sent."""
        expect(self.log.locator(".waiting")).to_have_count(0)

    def stored(self) -> str:
        return str(self.page.evaluate("JSON.stringify({...localStorage}) + document.cookie"))
