"""Which addresses a webhook may have."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from app.lib.addresses import check_address, client_address, is_public, network_of

LOOPBACK = [ip_network("127.0.0.0/8")]
V4 = [
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.0.2.0/24",
    "192.88.99.0/24",
    "192.168.0.0/16",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "224.0.0.0/4",
    "240.0.0.0/4",
]
V6 = [
    "::/96",
    "::ffff:0:0:0/96",
    "64:ff9b::/96",
    "64:ff9b:1::/48",
    "100::/64",
    "100:0:0:1::/64",
    "2001::/23",
    "2001:db8::/32",
    "2002::/16",
    "3fff::/20",
    "5f00::/16",
    "fc00::/7",
    "fe80::/10",
    "fec0::/10",
    "ff00::/8",
]
PRIVATE = [ip_network(network) for network in V4 + V6]


@pytest.mark.parametrize("network", V4 + V6)
def test_both_ends_of_every_listed_network_are_private(network: str) -> None:
    assert not is_public(ip_network(network)[0])
    assert not is_public(ip_network(network)[-1])


def neighbours(network: str) -> list[IPv4Address | IPv6Address]:
    """The addresses just outside of it."""
    first, last = ip_network(network)[0], ip_network(network)[-1]
    most = 2**first.max_prefixlen - 1
    return [type(first)(beside) for beside in (int(first) - 1, int(last) + 1) if 0 <= beside <= most]


# Those just outside of one network that are inside of the next.
ADJOINING = {
    *("239.255.255.255", "240.0.0.0", f"febf{':ffff' * 7}", "fec0::", f"feff{':ffff' * 7}", "ff00::"),
    *("100::ffff:ffff:ffff:ffff", "100:0:0:1::"),
}


@pytest.mark.parametrize("network", V4 + V6)
def test_their_neighbours_are_public(network: str) -> None:
    for neighbour in neighbours(network):
        assert is_public(neighbour) == (str(neighbour) not in ADJOINING)


@pytest.mark.parametrize("address", ["1.1.1.1", "2606:4700::1111", "2001:4860:4860::8888", "::ffff:8.8.8.8"])
def test_everyday_addresses_are_public(address: str) -> None:
    assert is_public(ip_address(address))


@given(st.ip_addresses(v=4))
def test_an_ipv4_address_is_public_unless_listed(ip: IPv4Address) -> None:
    assert is_public(ip) == (not any(ip in network for network in PRIVATE))


@pytest.mark.parametrize("network", V4)
def test_a_mapped_address_is_judged_by_the_one_inside(network: str) -> None:
    ends = [ip_network(network)[0], ip_network(network)[-1]]
    for inside in [*ends, *neighbours(network)]:
        assert is_public(ip_address(f"::ffff:{inside}")) == is_public(inside)


@pytest.mark.parametrize(
    "address",
    [
        *("::127.0.0.1", "::ffff:0:127.0.0.1", "64:ff9b::127.0.0.1", "64:ff9b:1:7f00:0:100::", "2002:7f00:1::1"),
        # Teredo writes the address of the client with all its bits turned round.
        *("2001::80ff:fffe", "2001:0:7f00:1::"),
    ],
)
def test_an_address_that_leads_to_loopback_is_private_whatever_carries_it(address: str) -> None:
    assert not is_public(ip_address(address))
    assert not is_public(ip_address(address), LOOPBACK)
    assert check_address(f"https://[{address}]/") == f"{ip_address(address)} is not a public address."


@given(st.ip_addresses(v=6))
def test_an_ipv6_address_is_public_unless_listed(ip: IPv6Address) -> None:
    assume(ip.ipv4_mapped is None)
    assert is_public(ip) == (not any(ip in network for network in PRIVATE))


@pytest.mark.parametrize("address", ["127.0.0.1", "127.255.255.255", "::ffff:127.0.0.1"])
def test_an_allowed_network_goes_first(address: str) -> None:
    assert is_public(ip_address(address), LOOPBACK)
    assert not is_public(ip_address("10.0.0.1"), LOOPBACK)


@pytest.mark.parametrize(
    "address",
    [
        "https://shop.example",
        "https://shop.example/hooks?key=a%20b&who=a@b.example",
        "HTTPS://Shop.Example:8443/@x",
        "https://bücher.example/",
        "https://under_score.example./",
        "https://8.8.8.8/",
        "https://[2606:4700::1111]:8443/",
        "https://3com.example/",
        "https://localhost.example/",
        "https://shop.example:/",
        "https://shop.example:1/",
        "https://shop.example:65535",
        "https://8.8.8.8:25/",
    ],
)
def test_a_public_address_is_accepted(address: str) -> None:
    assert check_address(address) is None


@pytest.mark.parametrize(
    "address",
    ["", "shop.example", "http://shop.example/", "ftp://shop.example/", "https:/a", "//a", "https:shop.example"],
)
def test_anything_but_https_is_refused(address: str) -> None:
    assert check_address(address) == "The address must begin with https://."


def test_an_address_may_have_2048_characters_and_no_more() -> None:
    address = "https://shop.example/".ljust(2048, "x")
    assert check_address(address) is None
    assert check_address(address + "x") == "The address is longer than 2,048 characters."


@pytest.mark.parametrize(
    "address",
    ["https://a:b@shop.example/", "https://a@shop.example", "https://@shop.example/", "https://a@b@shop.example?x"],
)
def test_a_user_name_is_refused(address: str) -> None:
    assert check_address(address) == "The address must not contain a user name or a password."


@pytest.mark.parametrize("character", list("\t\r\n \\\0\x7f\x85\xa0\u200b\u2028\ud800\ufeff"))
def test_spaces_backslashes_and_control_characters_are_refused(character: str) -> None:
    sentence = "The address contains a space, a backslash or a control character."
    assert check_address(f"https://shop.example/{character}") == sentence
    assert check_address(f"https://shop{character}.example/") == sentence
    assert check_address(f"{character}https://shop.example/") == sentence


def test_a_fragment_is_refused() -> None:
    assert check_address("https://shop.example/#a") == "The address must not have a fragment (a part after '#')."


@pytest.mark.parametrize("address", ["https://", "https:///hook", "https:///shop.example", "https://?a"])
def test_an_address_without_a_host_is_refused(address: str) -> None:
    assert check_address(address) == "The address has no host."


@pytest.mark.parametrize(
    "port", ["0", "00", "65536", "99999999999", "-1", "+443", "4_43", "x", "\uff14\uff14\uff13", "443x"]
)
def test_a_port_that_cannot_be_is_refused(port: str) -> None:
    sentence = "The port of the address must be a number from 1 to 65535."
    assert check_address(f"https://shop.example:{port}/") == sentence
    assert check_address(f"https://[2606:4700::1111]:{port}?a:1") == sentence


INVALID = "The address is not a valid URL. Check its host and port."
NO_NAME = "The host of the address is not a valid name."
UNUSUAL = "The host of the address is a number in an unusual form. Write it as four decimal numbers or use a name."
INTERFACE = "The address must not name a network interface (a part after '%')."
LOOPBACK_HOST = "127.0.0.1 is not a public address."
REFUSED_HOSTS = {
    INVALID: [
        "[::1", "::1]", "[]", "[::1]x", "[::1]:443:1", "fe80::1", "[127.0.0.1]", "shop.example:1:2", ":443",
    ],
    "The host of the address is not a valid IPv6 address.": ["[v1.a]"],
    NO_NAME: [
        "a..example", ".example", "shop.example..", "a" * 64 + ".example", "a." * 130 + "example", "shop%2eexample",
        "a,b.example", "a<b.example", "*.example", "shop.example;x", "localhost%00.example", "%6cocalhost",
        "%31%32%37.0.0.1", "[::g]",
    ],
    INTERFACE: ["[fe80::1%eth0]", "[fe80::1%25eth0]", "[2606:4700::1111%eth0]", "[::ffff:127.0.0.1%lo]"],
    UNUSUAL: [
        "127.1", "127.0.1", "0x7f.1", "0x7F000001", "0x7f.0x0.0x0.0x1", "127.0.0.0x1", "2130706433", "017700000001",
        "0177.0.0.1", "127.0.0.01", "127.0.0.1.", "127.1.", "0", "1", "0x", "256.1.1.1", "1.2.3.4.5", "shop.1",
        "\u0661\u0662\u0667.0.0.1",
    ],
    LOOPBACK_HOST: [
        "127.0.0.1", "[::ffff:127.0.0.1]", "[::FFFF:7F00:1]", "\uff11\uff12\uff17.\uff10.\uff10.\uff11",
        "\u2460\u2461\u2466.\u24ea.\u24ea.\u2460", "127\u30020\u30020\u30021",
    ],
    "0.0.0.0 is not a public address.": ["0.0.0.0"],
    "10.0.0.5 is not a public address.": ["10.0.0.5", "[::ffff:10.0.0.5]", "[::ffff:a00:5]"],
    "169.254.169.254 is not a public address.": ["169.254.169.254"],
    ":: is not a public address.": ["[::]"],
    "::1 is not a public address.": ["[::1]", "[0:0:0:0:0:0:0:1]"],
    "::7f00:1 is not a public address.": ["[::127.0.0.1]", "[::7F00:1]"],
    "fe80::1 is not a public address.": ["[FE80::1]"],
    "64:ff9b::7f00:1 is not a public address.": ["[64:ff9b::127.0.0.1]"],
    "2002:7f00:1:: is not a public address.": ["[2002:7f00:1::]"],
    "localhost is not a public name.": ["localhost", "LOCALHOST", "\uff4cocalhost", "\u24dbocalhost"],
    "localhost. is not a public name.": ["localhost."],
    "a.localhost. is not a public name.": ["a.LocalHost."],
}  # fmt: skip


@pytest.mark.parametrize(
    ("host", "sentence"), [(host, sentence) for sentence, hosts in REFUSED_HOSTS.items() for host in hosts]
)
def test_a_host_that_is_private_or_none_is_refused_however_it_is_written(host: str, sentence: str) -> None:
    assert check_address(f"https://{host}/") == sentence
    assert check_address(f"https://{host}?a") == sentence


@pytest.mark.parametrize("network", V4 + V6)
def test_a_literal_of_a_private_network_is_refused(network: str) -> None:
    for ip in (ip_network(network)[0], ip_network(network)[-1]):
        host = f"[{ip}]" if ip.version == 6 else str(ip)
        assert check_address(f"https://{host}:8443/hook") == f"{ip} is not a public address."


@pytest.mark.parametrize("host", ["127.0.0.1", "[::ffff:127.0.0.1]", "localhost", "a.localhost"])
def test_loopback_may_be_allowed(host: str) -> None:
    assert check_address(f"https://{host}:8443/", LOOPBACK) is None


@pytest.mark.parametrize("host", ["127.1", "0x7f000001", "10.0.0.1"])
def test_what_is_never_dialled_is_refused_even_then(host: str) -> None:
    assert check_address(f"https://{host}:8443/", LOOPBACK) is not None


@given(st.text())
def test_any_text_is_judged_without_an_error(text: str) -> None:
    assert check_address(text) != ""
    assert check_address(f"https://{text}") != ""


@pytest.mark.parametrize(
    ("address", "counted"),
    [
        ("203.0.113.9", "203.0.113.9"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::1", "2001:db8:1:2::/64"),
        ("::ffff:203.0.113.9", "203.0.113.9"),
        ("fe80::1%eth0", "fe80::/64"),
        ("no address", "no address"),
        ("", ""),
    ],
)
def test_an_ipv6_network_counts_as_one_address(address: str, counted: str) -> None:
    assert network_of(address) == counted


@pytest.mark.parametrize(
    ("forwarded_for", "proxies", "client"),
    [
        ("", 0, "10.0.0.1"),
        ("203.0.113.9", 0, "10.0.0.1"),
        ("198.51.100.1, 203.0.113.9", 1, "203.0.113.9"),
        ("198.51.100.1, 203.0.113.9, 10.0.0.2", 2, "203.0.113.9"),
        ("203.0.113.9", 2, "10.0.0.1"),
    ],
)
def test_only_what_trusted_proxies_report_is_believed(forwarded_for: str, proxies: int, client: str) -> None:
    assert client_address("10.0.0.1", forwarded_for, proxies) == client
