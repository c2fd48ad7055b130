"""Certificates, and versions of TLS."""

from __future__ import annotations

import asyncio
import datetime
import ssl
from contextlib import suppress

import pytest
import trustme

from tests.app.outbound.world import (
    AUTHORITY,
    DAY,
    OK,
    Names,
    World,
)


def self_signed() -> trustme.LeafCert:
    authority = trustme.CA()
    return trustme.LeafCert(authority.private_key_pem.bytes(), authority.cert_pem.bytes(), [])


def around_now(start: int, end: int) -> trustme.LeafCert:
    """A certificate that is valid between these days from now."""
    now = datetime.datetime.now(datetime.UTC)
    return AUTHORITY.issue_cert("127.0.0.1", not_before=now + start * DAY, not_after=now + end * DAY)


@pytest.mark.parametrize(
    ("certificate", "reason"),
    [
        (trustme.CA().issue_cert("127.0.0.1"), "unable to get local issuer certificate"),
        (self_signed(), "self-signed certificate"),
        (AUTHORITY.issue_cert("8.8.8.8"), "IP address mismatch, certificate is not valid for '127.0.0.1'"),
        (around_now(-2, -1), "certificate has expired"),
        (around_now(1, 2), "certificate is not yet valid"),
    ],
    ids=["unknown authority", "self-signed", "another name", "expired", "not yet valid"],
)
def test_a_certificate_that_is_not_valid_is_refused(world: World, certificate: trustme.LeafCert, reason: str) -> None:
    answer = world.deliver(world.says(OK), certificate=certificate)
    assert answer.error == f"The certificate is not valid: {reason}."
    assert world.receiver.requests == []


def test_a_name_that_is_not_in_the_certificate_is_refused(world: World) -> None:
    names = Names(other=[["127.0.0.1"]])
    answer = world.deliver(world.says(OK), address="https://other.example:{port}/", resolver=names)
    reason = "Hostname mismatch, certificate is not valid for 'other.example'"
    assert answer.error == f"The certificate is not valid: {reason}."


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
@pytest.mark.parametrize("version", ["TLSv1", "TLSv1_1"])
def test_an_old_version_of_tls_is_refused(world: World, version: str) -> None:
    async def old(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Not through start_server: that hangs up without telling why.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        AUTHORITY.issue_cert("127.0.0.1").configure_cert(context)
        context.set_ciphers("ALL:@SECLEVEL=0")
        context.minimum_version = context.maximum_version = ssl.TLSVersion[version]
        heard, said = ssl.MemoryBIO(), ssl.MemoryBIO()
        heard.write(await reader.read(65536))
        with suppress(ssl.SSLError):
            context.wrap_bio(heard, said, server_side=True).do_handshake()
        writer.write(said.read())
        await reader.read()

    answer = world.deliver(old, plain=True)
    assert answer.error == "The server speaks no version of TLS from 1.2 on."


def test_an_old_version_of_tls_that_is_answered_with_anyway_is_refused(world: World) -> None:
    hello = b"\2\0\0\x26" + b"\3\2" + bytes(32) + b"\0" + b"\0\x2f" + b"\0"

    async def old(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"\x16\3\2\0\x2a" + hello)
        await reader.read()

    answer = world.deliver(old, plain=True)
    assert answer.error == "The server speaks no version of TLS from 1.2 on."
