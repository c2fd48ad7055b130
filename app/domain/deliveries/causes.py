"""Causes: explains the error codes of attempts, and what to do. docs/outbound.md lists them all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cause:
    """An explanation for support staff: why an attempt failed, and who has to do what."""

    meaning: str
    remedy: str


CAUSES: Mapping[str, Cause] = {
    "timeout": Cause(
        "The receiver sent no status in time. It may have received the request.",
        "Ask the receiver to answer first and work later, and to let our requests through its firewall.",
    ),
    "refused": Cause(
        "No connection could be made: nothing listens on that port, or a firewall rejects us.",
        "Ask the receiver to start its server, and to check the port and the firewall.",
    ),
    "reset": Cause(
        "The receiver closed the connection without an answer. It may have received the request.",
        "If this happens often, ask the receiver to look for crashes, and to keep idle connections open for more than"
        " 30 seconds.",
    ),
    "dns": Cause(
        "The name of the receiver's host could not be resolved.",
        "Check the spelling of the address, and ask the receiver to check its DNS records.",
    ),
    "private_address": Cause(
        "The address is not public, or not valid, so nothing was sent.",
        "Enter an address that begins with https:// and has a public name.",
    ),
    "tls": Cause(
        "No secure connection could be made: the receiver's certificate could not be verified, or it has no TLS 1.2.",
        "Ask the receiver to install a certificate of a public authority with its whole chain, and to allow TLS 1.2"
        " or 1.3.",
    ),
    "status": Cause(
        "The request arrived, and the receiver refused it.",
        "Ask the receiver to look into its log at the time of the attempt.",
    ),
    "redirect": Cause(
        "The receiver redirected us, and redirects are not followed.",
        "Enter the final address as the endpoint's address.",
    ),
    "gone": Cause(
        "The receiver answered 410: it does not want these requests any more. The endpoint was stopped.",
        "If the receiver is back, enable the endpoint, then resend. Otherwise delete it.",
    ),
    "not_http": Cause(
        "Something answered, but not with HTTP/1.1.",
        "Check that the port of the address is that of a web server.",
    ),
    "too_long": Cause(
        "The receiver sent a lot of data without a status.",
        "Check that the port of the address is that of a web server.",
    ),
    "ours": Cause(
        "The fault was on our side. It spent no attempt and does not count towards a stop of the endpoint.",
        "You need not do anything: it is retried soon. If it keeps failing, tell the operator of this service.",
    ),
}
_STATUSES: Mapping[int, Cause] = {
    401: Cause(
        "The receiver did not accept our identity.",
        "Ask the receiver to check our signature instead of a sign-in, or to put a key into the address.",
    ),
    403: Cause(
        "The receiver forbids the request.",
        "Ask the receiver to check the signing secret, and to let our requests through its firewall.",
    ),
    404: Cause("The receiver knows nothing at this path.", "Check the path of the endpoint's address."),
    405: Cause("The receiver does not accept POST at this path.", "Check the path of the endpoint's address."),
    413: Cause("The receiver found the body too large.", "Ask the receiver to accept larger bodies."),
    429: Cause(
        "The receiver gets more requests than it accepts.", "Set a limit of deliveries a second for the endpoint."
    ),
}
_BROKEN = Cause(
    "The request arrived, and the receiver failed to process it.",
    "Ask the receiver to look into its log at the time of the attempt, then resend what has failed.",
)


def explain(error_code: str, status: int | None = None) -> Cause:
    """Returns the cause for an error code; for the code `status`, by the receiver's status."""
    if error_code == "status" and status is not None:
        return _STATUSES.get(status) or (_BROKEN if status >= 500 else CAUSES["status"])
    return CAUSES[error_code]
