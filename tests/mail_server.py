"""A mail server for tests: real SMTP (RFC 5321) on loopback, with STARTTLS, TLS and passwords where wanted."""

from __future__ import annotations

import base64
import email
import email.policy
import socketserver
import ssl
import threading
from dataclasses import dataclass, field
from email.message import EmailMessage
from typing import Any

# What a server says to a command, if not what it usually says; None: it hangs up.
Answers = dict[str, str | None]


@dataclass
class MailServer:
    """Keeps what it is sent. `answers`: by the first word of a command, or 'CONTENT' for the end of a message."""

    tls: ssl.SSLContext | None = None
    offers_starttls: bool = False
    password: str | None = None
    answers: Answers = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)  # recipients, for now
    received: list[EmailMessage] = field(default_factory=list)
    recipients: list[str] = field(default_factory=list)
    was_encrypted: list[bool] = field(default_factory=list)
    # While it is cleared, the server takes messages but does not say so.
    confirms: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        owner = self
        self.confirms.set()

        class Handler(_Handler):
            mail = owner

        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def url(self, credentials: str = "") -> str:
        is_tls_at_once = self.tls is not None and not self.offers_starttls
        return f"{'smtps' if is_tls_at_once else 'smtp'}://{credentials}127.0.0.1:{self.port}"

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Handler(socketserver.StreamRequestHandler):
    mail: MailServer
    is_encrypted = False

    def handle(self) -> None:
        if self.mail.tls is not None and not self.mail.offers_starttls:
            self._encrypt(self.mail.tls)
        self._say("220 mail.test ready")
        recipient = ""
        while line := self.rfile.readline().decode().rstrip("\r\n"):
            word = line.partition(" ")[0].partition(":")[0].upper()
            if word in self.mail.answers:
                answer = self.mail.answers[word]
                if answer is None:
                    return
                self._say(answer)
            elif word == "EHLO":
                self._greet()
            elif word == "STARTTLS" and self.mail.tls:
                self._say("220 go ahead")
                self._encrypt(self.mail.tls)
            elif word == "AUTH":
                self._say("235 welcome" if self._is_password(line) else "535 no")
            elif word == "RCPT":
                recipient = line.partition(":")[2].strip("<> ")
                self._say("450 not now" if recipient in self.mail.refused else "250 ok")
            elif word == "DATA":
                self._say("354 go ahead")
                if not self._take(recipient):
                    return
            else:
                self._say("221 bye" if word == "QUIT" else "250 ok")

    def _greet(self) -> None:
        offers = ["mail.test", "8BITMIME"]
        offers += ["STARTTLS"] if self.mail.offers_starttls and not self.is_encrypted else []
        offers += ["AUTH PLAIN"] if self.mail.password is not None else []
        for offer in offers[:-1]:
            self._say(f"250-{offer}")
        self._say(f"250 {offers[-1]}")

    def _is_password(self, line: str) -> bool:
        given = base64.b64decode(line.split(" ")[2]).decode().split("\0")
        return given[2] == self.mail.password

    def _take(self, recipient: str) -> bool:
        lines: list[bytes] = []
        while (line := self.rfile.readline()) not in (b".\r\n", b""):
            lines.append(line.removeprefix(b"."))
        answer = self.mail.answers.get("CONTENT", "250 taken")
        if answer is None or answer.startswith("250"):
            message: Any = email.message_from_bytes(b"".join(lines), policy=email.policy.default)
            self.mail.received.append(message)
            self.mail.recipients.append(recipient)
            self.mail.was_encrypted.append(self.is_encrypted)
        self.mail.confirms.wait(60)
        if answer is not None:
            self._say(answer)
        return answer is not None

    def _encrypt(self, tls: ssl.SSLContext) -> None:
        self.request = tls.wrap_socket(self.request, server_side=True)
        self.rfile = self.request.makefile("rb")
        self.wfile = self.request.makefile("wb")
        self.is_encrypted = True

    def _say(self, line: str) -> None:
        self.wfile.write(f"{line}\r\n".encode())
        self.wfile.flush()
