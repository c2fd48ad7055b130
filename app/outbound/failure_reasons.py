"""Maps exceptions to reasons of failed requests, and decides whose fault each is."""

from __future__ import annotations

import errno
import os
import re
import ssl

from app.outbound.answers import Reason
from app.outbound.dialling import NotAllowed, NotPublic, Unreachable
from app.outbound.http_connections import DeadlinePassed, NotHttp, TooLong
from app.outbound.names import ResolverFailed, UnknownName
from app.outbound.pool import QueueTimeout

# The text around OpenSSL's message, which does not always have a name: "[SSL: NAME] … (_ssl.c:1006)".
TLS_NOISE = re.compile(r"^\[[^]]*\] | \(_ssl\.c:\d+\)$")
TLS_REASONS = {
    "WRONG_VERSION_NUMBER": Reason.NO_TLS,
    "UNSUPPORTED_PROTOCOL": Reason.OLD_TLS,
    "TLSV1_ALERT_PROTOCOL_VERSION": Reason.OLD_TLS,
}
# Errors in neither table count as our faults: an error counts against a server only if the server surely caused it.
REASONS = {
    errno.ECONNREFUSED: Reason.REFUSED,
    errno.ECONNRESET: Reason.CLOSED,
    errno.ECONNABORTED: Reason.CLOSED,
    errno.EPIPE: Reason.CLOSED,
    errno.ETIMEDOUT: Reason.LATE,
    # Reported by a router or firewall on the path: the host is down or filtered.
    errno.EHOSTUNREACH: Reason.UNREACHABLE,
    errno.EHOSTDOWN: Reason.UNREACHABLE,
    errno.EACCES: Reason.UNREACHABLE,
    errno.ENOPROTOOPT: Reason.UNREACHABLE,
    # Our own routing table, interface or port range.
    errno.ENETUNREACH: Reason.NO_ROUTE,
    errno.ENETDOWN: Reason.NO_ROUTE,
    errno.EADDRNOTAVAIL: Reason.NO_ROUTE,
    errno.EAFNOSUPPORT: Reason.NO_ROUTE,
    errno.EMFILE: Reason.DESCRIPTORS,
    errno.ENFILE: Reason.DESCRIPTORS,
}


def judge(failure: BaseException | None, host: str, timeout_seconds: float) -> tuple[Reason, str]:
    """Returns why a request to `host` failed, and the text for the placeholder in the sentence.

    An exception that is not listed here counts as a fault of our own: NOT_SENT.
    """
    match failure:
        case DeadlinePassed():
            return Reason.LATE, _seconds(timeout_seconds)
        case QueueTimeout():
            return Reason.QUEUE, ""
        case UnknownName():
            return Reason.UNKNOWN_NAME, host
        case OSError(errno=errno.EMFILE | errno.ENFILE):
            return Reason.DESCRIPTORS, ""
        case ResolverFailed():
            return Reason.RESOLVER, host
        case Unreachable(errors=errors):
            return _judge_all([_judge_system(error, timeout_seconds) for error in errors], host)
        case NotHttp():
            return Reason.NOT_HTTP, ""
        case TooLong():
            return Reason.TOO_LONG, ""
        case OSError():
            return _judge_system(failure, timeout_seconds)
    return Reason.NOT_SENT, ""


def _judge_all(verdicts: list[tuple[Reason, str]], host: str) -> tuple[Reason, str]:
    """Combines the verdicts on a server's addresses. The server's faults take precedence over ours."""
    theirs = {verdict for verdict in verdicts if verdict[0].code != "ours"}
    if not theirs:
        return verdicts[0]
    return theirs.pop() if len(theirs) == 1 else (Reason.NO_ADDRESS_REACHED, host)


def _judge_system(error: OSError, timeout_seconds: float) -> tuple[Reason, str]:
    match error:
        case NotPublic():
            return Reason.PRIVATE_ADDRESS, error.args[0]
        case NotAllowed():
            return Reason.NOT_ALLOWED, error.args[0]
        case ssl.SSLCertVerificationError():
            return Reason.BAD_CERTIFICATE, error.verify_message.rstrip(".")
        case ssl.SSLEOFError() | ssl.SSLZeroReturnError():
            return Reason.CLOSED, ""
        case ssl.SSLError(reason=str() as name) if name in TLS_REASONS:
            return TLS_REASONS[name], ""
        case ssl.SSLError():
            return Reason.TLS_FAILED, TLS_NOISE.sub("", str(error))
        case ConnectionRefusedError():
            return Reason.REFUSED, ""
        case ConnectionError() | OSError(errno=None):  # event loops raise them without a number
            return Reason.CLOSED, ""
    number = error.errno or 0
    reason = REASONS.get(number, Reason.SYSTEM)
    return reason, {Reason.LATE: _seconds(timeout_seconds), Reason.SYSTEM: os.strerror(number)}.get(reason, "")


def _seconds(seconds: float) -> str:
    return "1 second" if seconds == 1 else f"{seconds:g} seconds"
