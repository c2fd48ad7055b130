"""Encodes HTTP/1.1 requests, and checks that nothing can be smuggled into them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from yarl import URL

from app.lib.addresses import Network, check_address

# Default headers. A request's own header of the same name replaces them.
HEADERS = {"Accept": "*/*", "Accept-Encoding": "identity", "User-Agent": "Bellhop"}

METHOD = re.compile(r"[A-Z]+(-[A-Z]+)*", re.ASCII)
NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", re.ASCII)
VALUE = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f]*")
# Headers that frame a message or concern one connection (RFC 9110, section 7.6.1). Only we set them.
RESERVED = {
    *("connection", "content-length", "expect", "host", "keep-alive", "proxy-authorization", "proxy-connection"),
    *("te", "trailer", "transfer-encoding", "upgrade"),
}
WITH_BODY = {"PATCH", "POST", "PUT"}


@dataclass(frozen=True, slots=True)
class Target:
    """A checked address. `rest`: the request line after the method, and Host. `is_plain`: no TLS."""

    host: str
    port: int
    rest: str
    is_plain: bool = False


def read_target(address: str, allowed: Sequence[Network], plain: Sequence[str] = ()) -> Target | str:
    """Returns the target of an address, or the sentence that says why it is refused.

    `plain`: base addresses with http://. Addresses below them may use http.
    """
    is_plain = any(address.startswith(f"{base}/") for base in plain)
    refusal = check_address(address.replace("http", "https", 1) if is_plain else address, allowed)
    if refusal is not None:
        return refusal
    url = URL(address)
    assert url.raw_host is not None
    assert url.port is not None
    rest = f" {url.raw_path_qs} HTTP/1.1\r\nHost: {url.host_port_subcomponent}\r\n"
    return Target(url.raw_host, url.port, rest, is_plain)


def post_bytes(target: Target, headers: Mapping[str, str], body: bytes) -> bytes:
    """Encodes a POST with our own headers. Raises ValueError if one contains a line break or NUL.

    A default header is replaced only by one with the same spelling.
    """
    headers = {**HEADERS, **headers, "Content-Length": str(len(body))}
    lines = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
    if lines.count("\r") != len(headers) or lines.count("\n") != len(headers) or "\0" in lines:
        raise ValueError("A header contains a line break or a NUL.")
    return b"POST%b%b\r\n%b" % (target.rest.encode(), lines.encode(), body)


def request_bytes(method: str, target: Target, headers: Mapping[str, str], body: bytes) -> bytes:
    """Encodes a request whose headers may come from anybody.

    Raises ValueError for a method or header that cannot be sent or that the caller may not set.
    """
    if not METHOD.fullmatch(method) or method == "CONNECT":
        raise ValueError("The method cannot be sent.")
    given = {name.lower() for name in headers}
    if given & RESERVED:
        raise ValueError(f"The header {min(given & RESERVED)} cannot be set.")
    if not all(NAME.fullmatch(name) and VALUE.fullmatch(value) for name, value in headers.items()):
        raise ValueError("A header contains a character that cannot be sent.")
    all_headers = {name: value for name, value in HEADERS.items() if name.lower() not in given} | dict(headers)
    if body or method in WITH_BODY:
        all_headers["Content-Length"] = str(len(body))
    lines = "".join([f"{name}: {value}\r\n" for name, value in all_headers.items()])
    return b"%b%b%b\r\n%b" % (method.encode(), target.rest.encode(), lines.encode(), body)
