from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from email.message import EmailMessage

import pytest

from app.config import settings
from app.outbound import smtp
from app.outbound.smtp import Away, Postponed, Refused
from tests.conftest import Servers
from tests.mail_server import MailServer

Serve = Callable[..., MailServer]


@pytest.fixture
def serve(servers: Servers, monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    """Starts a mail server, which SMTP_URL then names."""
    started: list[MailServer] = []

    def serve(credentials: str = "", **options: object) -> MailServer:
        server = MailServer(**options)  # type: ignore[arg-type]
        started.append(server)
        use(server.url(credentials))
        return server

    def use(url: str) -> None:
        monkeypatch.setenv("SMTP_URL", url)
        settings.cache_clear()

    yield serve
    for server in started:
        server.stop()
    monkeypatch.undo()
    settings.cache_clear()


@pytest.fixture
def tls(servers: Servers, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """A server's certificate, which this process trusts."""
    monkeypatch.setenv("SSL_CERT_FILE", str(servers.certificates.ca_file))
    return servers.certificates.server_context()


def letter(to: str = "ada@example.com") -> EmailMessage:
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = "bellhop@bellhop.test", to, "Grüße"
    message.set_content("Hello\n.\n..dots\n")
    return message


def send(message: EmailMessage) -> None:
    with smtp.connected() as server:
        server.send(message)


def test_a_message_arrives_as_it_is(serve: Serve) -> None:
    server = serve()

    send(letter())

    [received] = server.received
    assert (received["Subject"], received["To"]) == ("Grüße", "ada@example.com")
    assert received.get_content().splitlines() == ["Hello", ".", "..dots"]
    assert server.recipients == ["ada@example.com"]


def test_one_connection_takes_several_messages(serve: Serve) -> None:
    server = serve()

    with smtp.connected() as connection:
        connection.send(letter())
        connection.send(letter("bob@example.com"))

    assert server.recipients == ["ada@example.com", "bob@example.com"]


def test_smtps_is_encrypted_from_the_beginning(serve: Serve, tls: ssl.SSLContext) -> None:
    server = serve("ada:p%40ss@", tls=tls, password="p@ss")

    send(letter())

    assert server.was_encrypted == [True]


def test_a_certificate_that_nobody_signed_is_not_trusted(serve: Serve, servers: Servers) -> None:
    server = serve(tls=servers.certificates.server_context())

    with pytest.raises(Away):
        send(letter())

    assert server.received == []


def test_starttls_is_used_where_the_server_is_elsewhere(
    serve: Serve, tls: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(smtp, "_is_here", lambda host: False)
    server = serve("ada:secret@", tls=tls, offers_starttls=True, password="secret")

    send(letter())

    assert server.was_encrypted == [True]


def test_a_password_is_not_sent_in_the_clear(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smtp, "_is_here", lambda host: False)
    server = serve("ada:secret@", password="secret")

    with pytest.raises(Away, match="not sent in the clear"):
        send(letter())

    assert server.received == []


@pytest.mark.parametrize(
    ("command", "answer", "kind"),
    [
        ("RCPT", "550 no such user", Refused),
        ("RCPT", "450 greylisted", Postponed),
        ("CONTENT", "554 spam", Refused),
        ("CONTENT", "451 later", Postponed),
        ("CONTENT", None, Away),
        ("MAIL", "550 not from you", Away),
        ("MAIL", None, Away),
        ("EHLO", None, Away),
    ],
)
def test_what_the_server_says_tells_what_to_do(
    serve: Serve, command: str, answer: str | None, kind: type[Exception]
) -> None:
    serve(answers={command: answer, "HELO": None} if command == "EHLO" else {command: answer})

    with pytest.raises(kind):
        send(letter())


def test_after_one_that_is_refused_the_connection_takes_the_next(serve: Serve) -> None:
    server = serve(answers={"RCPT": "550 no such user"})

    with smtp.connected() as connection:
        with pytest.raises(Refused):
            connection.send(letter())
        server.answers.clear()
        connection.send(letter("bob@example.com"))

    assert server.recipients == ["bob@example.com"]


def test_a_wrong_password_is_a_matter_for_the_operator(serve: Serve) -> None:
    serve("ada:wrong@", password="secret")

    with pytest.raises(Away):
        send(letter())


def test_a_server_that_is_not_there_is_away(serve: Serve) -> None:
    serve().stop()

    with pytest.raises(Away):
        send(letter())


def test_an_address_that_the_server_cannot_take_is_refused(serve: Serve) -> None:
    serve()

    with pytest.raises(Refused):
        send(letter("gräfin@example.com"))
