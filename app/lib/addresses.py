"""Addresses: checks the addresses that we send to, and finds the address a request came from."""

from __future__ import annotations

import re
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from yarl import URL

IP = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

LONGEST_ADDRESS = 2048

# Not ipaddress.is_global: on Python 3.11, multicast, 6to4, NAT64 and several more of these networks count as global.
NEVER_DIALLED_V4 = tuple(
    IPv4Network(network)
    for network in (
        "0.0.0.0/8",  # this host (RFC 1122)
        "10.0.0.0/8",  # private (RFC 1918)
        "100.64.0.0/10",  # carriers' shared space (RFC 6598)
        "127.0.0.0/8",  # loopback
        "169.254.0.0/16",  # link-local, and the clouds' metadata services
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",  # private
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, broadcast
    )
)
NEVER_DIALLED_V6 = tuple(
    IPv6Network(network)
    for network in (
        "::/96",  # unspecified, loopback, and IPv4-compatible addresses
        "::ffff:0:0:0/96",  # SIIT (RFC 7915): leads to an IPv4 address
        "64:ff9b::/96",  # NAT64: leads to an IPv4 address
        "64:ff9b:1::/48",  # NAT64 for local use
        "100::/64",  # discard
        "100:0:0:1::/64",  # dummies (RFC 9780)
        "2001::/23",  # protocol assignments: Teredo, which leads to an IPv4 address, benchmarks, ORCHID
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4: leads to an IPv4 address
        "3fff::/20",  # documentation
        "5f00::/16",  # segment routing
        "fc00::/7",  # unique local
        "fe80::/10",  # link-local
        "fec0::/10",  # site-local
        "ff00::/8",  # multicast
    )
)

NAME = re.compile(r"(?=.{1,253}\.?$)[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*\.?", re.ASCII)
PORT = re.compile(r"(?:[^:\[\]]*|\[.*\]):([^:]*)")
NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*", re.ASCII)


def is_public(ip: IP, allowed: Sequence[Network] = ()) -> bool:
    """Whether `ip` may be dialled: it is in an `allowed` network, or in none that is never dialled."""
    if any(ip in network for network in allowed):
        return True
    if isinstance(ip, IPv4Address):
        return not any(ip in network for network in NEVER_DIALLED_V4)
    if ip.ipv4_mapped is not None:
        return is_public(ip.ipv4_mapped, allowed)
    return not any(ip in network for network in NEVER_DIALLED_V6)


def check_address(address: str, allowed: Sequence[Network] = ()) -> str | None:
    """Returns why a webhook can never have this address, as a sentence; None if it can.

    Judges only the text. A name may still resolve to a private address, which is refused when the name is dialled.
    """
    if len(address) > LONGEST_ADDRESS:
        return f"The address is longer than {LONGEST_ADDRESS:,} characters."
    if any(character in " \\" or not character.isprintable() for character in address):
        return "The address contains a space, a backslash or a control character."
    if address[:8].lower() != "https://":
        return "The address must begin with https://."
    if "#" in address:
        return "The address must not have a fragment (a part after '#')."
    authority = re.split("[/?]", address[8:], maxsplit=1)[0]
    if "@" in authority:
        return "The address must not contain a user name or a password."
    port = PORT.fullmatch(authority)
    if port and port[1] and not (re.fullmatch("[0-9]{1,5}", port[1]) and 1 <= int(port[1]) <= 65535):
        return "The port of the address must be a number from 1 to 65535."
    try:
        # Parses with yarl, like app/outbound: another parser may see another host in the same text.
        url = URL(address)
    except ValueError:
        return "The address is not a valid URL. Check its host and port."
    if not url.raw_host:
        return "The address has no host."
    if authority.startswith("[") != (":" in url.raw_host):
        return "The host of the address is not a valid IPv6 address."
    return _check_host(url.raw_host, allowed)


def _check_host(host: str, allowed: Sequence[Network]) -> str | None:
    try:
        ip = ip_address(host)
    except ValueError:
        return _check_name(host, allowed)
    if "%" in host:
        return "The address must not name a network interface (a part after '%')."
    if is_public(ip, allowed):
        return None
    return f"{getattr(ip, 'ipv4_mapped', None) or ip} is not a public address."


def _check_name(host: str, allowed: Sequence[Network]) -> str | None:
    if not NAME.fullmatch(host):
        return "The host of the address is not a valid name."
    last_label = host.rstrip(".").rpartition(".")[2]
    if NUMBER.fullmatch(last_label):
        # 127.1, 0x7f000001, 2130706433 and 0177.0.0.1 are all 127.0.0.1 to a resolver.
        return "The host of the address is a number in an unusual form. Write it as four decimal numbers or use a name."
    if last_label == "localhost" and not is_public(IPv4Address("127.0.0.1"), allowed):
        return f"{host} is not a public name."
    return None


def client_address(peer: str, forwarded_for: str, proxies: int) -> str:
    """Returns the address that the outermost trusted proxy saw; `peer` without trusted `proxies`."""
    passed = forwarded_for.split(",")
    return passed[-proxies].strip() if 0 < proxies <= len(passed) else peer


def network_of(address: str) -> str:
    """Returns the network that counts as one address: an IPv6 /64, or the IPv4 address itself."""
    try:
        parsed = ip_address(address)
    except ValueError:  # the request came through a socket of this machine
        return address
    if isinstance(parsed, IPv6Address):
        inner = parsed.ipv4_mapped
        return str(inner or ip_network((int(parsed) >> 64 << 64, 64)))
    return address
