"""The pages of `make up` on which a person writes to the demo: as one on Telegram, and as a visitor of a shop."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from tests.stack.chats import Chats
from tests.stack.ports import free_port

TELEGRAM, SHOP = Path(__file__).with_name("telegram.html"), Path(__file__).with_name("shop.html")
HTML = "text/html; charset=utf-8"


class Pages:
    """A server for both. The shop's page includes the web chat whose script is at the address `script`."""

    def __init__(self, chats: Chats, port: int | None = None) -> None:
        self.chats = chats
        self.script = ""
        self._server = ThreadingHTTPServer(("127.0.0.1", free_port(port)), _handler(self))
        self._server.daemon_threads = True
        self._is_started = False

    @property
    def origin(self) -> str:
        """Where they are, without a path."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def start(self) -> None:
        """Answer what is asked."""
        self._is_started = True
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self) -> None:
        """Stop the server. Safe to call before `start`."""
        if self._is_started:
            self._server.shutdown()
        self._server.server_close()


def _handler(pages: Pages) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            address = urlsplit(self.path)
            if address.path == "/telegram":
                self._say(200, HTML, TELEGRAM.read_bytes())
            elif address.path == "/shop":
                self._say(200, HTML, SHOP.read_text().replace("SCRIPT_ADDRESS", pages.script).encode())
            elif address.path == "/messages":
                after = parse_qs(address.query).get("after", ["0"])[0]
                self._show(int(after) if after.isdecimal() else 0)
            else:
                self._say(404, "text/plain", b"")

        def do_POST(self) -> None:
            # Other sites' pages cannot send this type without being asked first, which nothing here answers.
            if self.headers.get("Content-Type") != "application/json":
                self._say(415, "text/plain", b"")
                return
            said = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
            if self.path == "/messages":
                pages.chats.write(str(said["text"]))
            elif self.path == "/blocks":
                pages.chats.block(bool(said["is_blocking"]))
            elif self.path == "/people":
                pages.chats.meet()
            self._show(0)

        def _show(self, after: int) -> None:
            self._say(200, "application/json", json.dumps(pages.chats.show(after)).encode())

        def _say(self, status: int, content_type: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing: the terminal shows webhooks."""

    return Handler
