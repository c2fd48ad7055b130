"""Sends messages to the server of SMTP_URL over one connection, with a deadline for each answer."""

from __future__ import annotations

import smtplib
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import EmailMessage
from ipaddress import ip_address
from urllib.parse import SplitResult, unquote, urlsplit

from app.config import settings

TIMEOUT_SECONDS = 10


class Refused(Exception):
    """The server permanently refuses this message for this recipient."""


class Postponed(Exception):
    """The server does not accept this message now."""


class Away(Exception):
    """The server cannot be used now: unreachable, unsafe, or it refuses us."""


class Connection:
    """An open connection, authenticated if SMTP_URL has a password."""

    def __init__(self, server: smtplib.SMTP) -> None:
        self._server = server

    def send(self, message: EmailMessage) -> None:
        """Sends the message. Returns once the server has accepted it. Raises Refused, Postponed, Away."""
        try:
            self._server.send_message(message)
        except smtplib.SMTPRecipientsRefused as error:
            raise _refusal(*next(iter(error.recipients.values()))) from error
        except smtplib.SMTPDataError as error:
            raise _refusal(error.smtp_code, error.smtp_error) from error
        except smtplib.SMTPNotSupportedError as error:  # a non-ASCII address
            raise Refused(str(error)) from error
        except (smtplib.SMTPException, OSError) as error:  # for example, the server refuses our MAIL_FROM
            raise Away(str(error)) from error


@contextmanager
def connected(timeout_seconds: float | None = None) -> Iterator[Connection]:
    """Runs the block with a connection to the server of SMTP_URL. Raises Away if there is none.

    `timeout_seconds`: for each answer; None means TIMEOUT_SECONDS.
    """
    try:
        server = _connect(urlsplit(settings().smtp_url or ""), timeout_seconds or TIMEOUT_SECONDS)
    except (smtplib.SMTPException, OSError) as error:
        raise Away(str(error)) from error
    try:
        yield Connection(server)
    finally:
        # The messages are sent; it does not matter whether the server gets QUIT.
        server.close()


def _connect(address: SplitResult, timeout_seconds: float) -> smtplib.SMTP:
    host, tls = address.hostname or "", ssl.create_default_context()
    if address.scheme == "smtps":
        server: smtplib.SMTP = smtplib.SMTP_SSL(host, address.port or 465, timeout=timeout_seconds, context=tls)
    else:
        server = smtplib.SMTP(host, address.port or 25, timeout=timeout_seconds)
        server.ehlo()
        # A server on this machine often offers STARTTLS with a self-signed certificate.
        if not _is_here(host) and server.has_extn("starttls"):
            server.starttls(context=tls)
            server.ehlo()
    if address.username is not None and address.password is not None:
        if not (_is_here(host) or isinstance(server.sock, ssl.SSLSocket)):
            server.close()
            raise OSError("the server offers no STARTTLS, and a password is not sent in the clear")
        server.login(unquote(address.username), unquote(address.password))
    return server


def _is_here(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _refusal(code: int, said: bytes | str) -> Exception:
    kind = Refused if 500 <= code < 600 else Postponed
    return kind(f"{code} {said.decode(errors='replace') if isinstance(said, bytes) else said}")
