"""Outcomes of requests to third-party servers: error codes and sentences."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from http.client import responses as phrases
from typing import Literal, get_args

from app.lib import retry_after

ErrorCode = Literal[
    "timeout",
    "refused",
    "reset",
    "dns",
    "private_address",
    "tls",
    "status",
    "redirect",
    "gone",
    "not_http",
    "too_long",
    "ours",
]
ERROR_CODES: tuple[ErrorCode, ...] = get_args(ErrorCode)
Headers = tuple[tuple[str, str], ...]


class Reason(Enum):
    """Why a request failed: its error code, and a sentence with a placeholder; see docs/outbound.md."""

    LATE = "timeout", "No answer within {}."
    REFUSED = "refused", "The connection was refused."
    UNREACHABLE = "refused", "The server cannot be reached."
    NO_ADDRESS_REACHED = "refused", "No address of {} can be reached."
    CLOSED = "reset", "The server closed the connection without an answer."
    UNKNOWN_NAME = "dns", "The name {} could not be resolved."
    PRIVATE_ADDRESS = "private_address", "The address resolves to {}, which is not public."
    NOT_ALLOWED = (
        "private_address",
        "The address resolves to {}, which is not in WEBHOOK_ALLOWED_NETWORKS: use https:// for it.",
    )
    BAD_ADDRESS = "private_address", "{}"
    BAD_CERTIFICATE = "tls", "The certificate is not valid: {}."
    NO_TLS = "tls", "The server does not speak TLS on this port."
    OLD_TLS = "tls", "The server speaks no version of TLS from 1.2 on."
    TLS_FAILED = "tls", "No TLS connection could be made: {}."
    STATUS = "status", "The server answered {}."
    REDIRECT = "redirect", "Redirects are not followed ({})."
    GONE = "gone", "The server answered {}."
    NOT_HTTP = "not_http", "The answer is not valid HTTP."
    TOO_LONG = "too_long", "The answer is too long."
    DESCRIPTORS = "ours", "We have too many connections open."
    SYSTEM = "ours", "The connection failed: {}."
    NO_ROUTE = "ours", "Our network has no route to the server."
    RESOLVER = "ours", "Our resolver could not look up {}."
    QUEUE = "ours", "The request waited too long for a connection."
    NOT_SENT = "ours", "The request could not be sent."

    def __init__(self, code: ErrorCode, template: str) -> None:
        self.code = code
        self.template = template


@dataclass(frozen=True, slots=True)
class Answer:
    """The outcome of one request. `error_code` and `error` (a sentence) are None exactly if `ok`.

    `status` is None if no status line came in time. `body`: what was received of the response's body, up to the
    caller's limit; `is_whole`: whether it is complete. `headers`: the response's, with lower-case names, if the caller
    asked for them. `retry_after`: that header's value, or "". `may_have_arrived`: False if no byte of the request was
    sent.
    """

    status: int | None
    error_code: ErrorCode | None
    error: str | None
    body: bytes
    duration_ms: int
    headers: Headers = ()
    is_whole: bool = True
    may_have_arrived: bool = True
    retry_after: str = ""

    @property
    def ok(self) -> bool:
        """Whether the server accepted the request (2xx); False without an answer."""
        return self.status is not None and 200 <= self.status < 300

    @property
    def is_ours(self) -> bool:
        """Whether the fault is on our side, so that the attempt says nothing about the server."""
        return self.error_code == "ours"

    def asked_pause_seconds(self, at: datetime) -> float:
        """Returns how long after `at`, in seconds, a 429 or 503 asks us to wait; 0 if it does not say."""
        return retry_after.seconds(self.retry_after, at) if self.status in (429, 503) else 0.0

    @property
    def error_without_target(self) -> str | None:
        """`error` without a redirect's target, which may contain a contact's data."""
        if self.error_code == "redirect" and self.status is not None:
            return sentence_without_target(self.status)
        return self.error


def answered(
    status: int,
    body: bytes = b"",
    duration_ms: int = 0,
    *,
    target: str = "",
    headers: Headers = (),
    is_whole: bool = True,
    retry_after: str = "",
) -> Answer:
    """Returns the outcome of a request that was answered with `status`. `target`: of a redirect."""
    reason = _reason_of(status)
    if reason is None:
        return Answer(status, None, None, body, duration_ms, headers, is_whole)
    sentence = _sentence_of(reason, status, target)
    return Answer(status, reason.code, sentence, body, duration_ms, headers, is_whole, retry_after=retry_after)


def failed(reason: Reason, fact: str = "", duration_ms: int = 0, *, may_have_arrived: bool = True) -> Answer:
    """Returns the outcome of a request without a status. `fact` fills the placeholder of the reason."""
    sentence = reason.template.format(fact)
    return Answer(None, reason.code, sentence, b"", duration_ms, may_have_arrived=may_have_arrived)


def sentence_without_target(status: int) -> str:
    """Returns the sentence of a status other than 2xx, without a redirect's target."""
    return _sentence_of(_reason_of(status) or Reason.STATUS, status, "")


def _reason_of(status: int) -> Reason | None:
    if 200 <= status < 300:
        return None
    if 300 <= status < 400:
        return Reason.REDIRECT
    return Reason.GONE if status == 410 else Reason.STATUS


def _sentence_of(reason: Reason, status: int, target: str) -> str:
    if reason is Reason.REDIRECT:
        return reason.template.format(f"{status} to {target}" if target else status)
    phrase = phrases.get(status)
    return reason.template.format(f"{status} ({phrase})" if phrase else status)
