"""Reproductions: a delivery's request, without secrets, to read or to repeat by hand."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from app.config import settings
from app.domain.deliveries import attempts
from app.outbound import wire_format

# A placeholder: every attempt has its own signature.
SIGNATURE = "t=<unix time>,v1=<signature>"
# In bytes. The command reads a longer body from a file.
LONGEST_INLINE = 16_000
MEANINGS: Mapping[str, str] = {
    "Host": "The host of the endpoint's address.",
    "Accept": "Any response will do; only its status counts.",
    "Accept-Encoding": "The response should not be compressed.",
    "User-Agent": "Who calls.",
    "Content-Type": "The body is JSON.",
    "X-Service-Delivery": "The delivery. It is the same in every attempt, so that a receiver can ignore repetitions.",
    "X-Service-Signature": "Proves that the body comes from us and was not changed.",
    "Content-Length": "The length of the body in bytes.",
}


@dataclass(frozen=True, slots=True)
class Head:
    """The first line of a request, and its headers in order."""

    first_line: str
    headers: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        return "\n".join([self.first_line, *(f"{name}: {value}" for name, value in self.headers)])


def head(delivery_id: str, address: str, body: bytes) -> Head | str:
    """Returns everything that is sent before the body, or the reason why the address is refused.

    Calls the code that also sends deliveries, so that both agree.
    """
    target = wire_format.read_target(address, settings().webhook_allowed_networks)
    if isinstance(target, str):
        return target
    sent = wire_format.post_bytes(target, attempts.headers_of(delivery_id, SIGNATURE), body)
    first_line, *lines = sent[: -len(body) or None].decode().rstrip("\r\n").split("\r\n")
    named = (line.partition(": ") for line in lines)
    return Head(first_line, tuple((name, value) for name, _, value in named))


def command(delivery_id: str, address: str, body: bytes) -> str:
    """Returns POSIX shell commands (curl, openssl) that send the body again, signed with $SECRET."""
    own = {**wire_format.HEADERS, **attempts.headers_of(delivery_id, "")}
    del own["X-Service-Signature"]
    headers = [f"  -H {shlex.quote(f'{name}: {value}')} \\" for name, value in own.items()]
    is_inline = len(body) <= LONGEST_INLINE
    quoted = shlex.quote(body.decode()) if is_inline else ""
    return "\n".join(
        [
            "SECRET='whsec_…'  # the endpoint's signing secret",
            *([f"BODY={quoted}"] if is_inline else []),
            "T=$(date +%s)",
            f"V1=$({_SIGNED_INLINE if is_inline else _SIGNED_FILE}"
            " | openssl dgst -sha256 -hmac \"$SECRET\" | sed 's/.* //')",
            f"curl -i --globoff -X POST {shlex.quote(address)} \\",
            *headers,
            '  -H "X-Service-Signature: t=$T,v1=$V1" \\',
            '  --data-raw "$BODY"' if is_inline else "  --data-binary @body.json",
        ]
    )


_SIGNED_INLINE = "printf '%s' \"$T.$BODY\""
_SIGNED_FILE = "{ printf '%s.' \"$T\"; cat body.json; }"
