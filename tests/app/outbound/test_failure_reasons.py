"""Whose fault a failure is."""

from __future__ import annotations

import errno
import os
import ssl

import pytest

from app.outbound.answers import Reason
from app.outbound.dialling import NotPublic, Unreachable
from app.outbound.failure_reasons import judge
from app.outbound.http_connections import DeadlinePassed, NotHttp, TooLong
from app.outbound.names import ResolverFailed, UnknownName
from app.outbound.pool import QueueTimeout


def failing(number: int) -> OSError:
    return OSError(number, os.strerror(number))


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        (DeadlinePassed(), Reason.LATE),
        (NotHttp(), Reason.NOT_HTTP),
        (TooLong(), Reason.TOO_LONG),
        (UnknownName("shop.example"), Reason.UNKNOWN_NAME),
        (NotPublic("10.0.0.1"), Reason.PRIVATE_ADDRESS),
        (failing(errno.ECONNREFUSED), Reason.REFUSED),
        (failing(errno.ECONNRESET), Reason.CLOSED),
        (failing(errno.EPIPE), Reason.CLOSED),
        (failing(errno.ETIMEDOUT), Reason.LATE),
        (failing(errno.EHOSTUNREACH), Reason.UNREACHABLE),
        (failing(errno.EACCES), Reason.UNREACHABLE),
        (ConnectionResetError(), Reason.CLOSED),
        (ssl.SSLError(1, "[SSL] legacy sigalg disallowed or unsupported (_ssl.c:992)"), Reason.TLS_FAILED),
    ],
)
def test_what_must_come_from_the_other_side_is_its_fault(failure: Exception, reason: Reason) -> None:
    assert judge(failure, "shop.example", 10)[0] is reason
    assert reason.code != "ours"


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        (QueueTimeout(), Reason.QUEUE),
        (ResolverFailed("Temporary failure"), Reason.RESOLVER),
        (failing(errno.EMFILE), Reason.DESCRIPTORS),
        (failing(errno.ENFILE), Reason.DESCRIPTORS),
        (failing(errno.ENOBUFS), Reason.SYSTEM),
        (failing(errno.ENOMEM), Reason.SYSTEM),
        (failing(errno.EPERM), Reason.SYSTEM),
        (failing(errno.ENETUNREACH), Reason.NO_ROUTE),
        (failing(errno.ENETDOWN), Reason.NO_ROUTE),
        (failing(errno.EADDRNOTAVAIL), Reason.NO_ROUTE),
        (KeyError("a mistake of ours"), Reason.NOT_SENT),
        (None, Reason.NOT_SENT),
    ],
)
def test_everything_else_is_ours(failure: Exception | None, reason: Reason) -> None:
    assert judge(failure, "shop.example", 10)[0] is reason
    assert reason.code == "ours"


@pytest.mark.parametrize(
    ("numbers", "reason"),
    [
        ([errno.ENETUNREACH], Reason.NO_ROUTE),
        ([errno.ENETUNREACH, errno.EMFILE], Reason.NO_ROUTE),
        ([errno.ENETUNREACH, errno.ECONNREFUSED], Reason.REFUSED),
        ([errno.ECONNREFUSED, errno.ECONNREFUSED], Reason.REFUSED),
        ([errno.ECONNREFUSED, errno.EHOSTUNREACH], Reason.NO_ADDRESS_REACHED),
    ],
)
def test_of_several_addresses_those_that_say_something_of_the_server_count(numbers: list[int], reason: Reason) -> None:
    assert judge(Unreachable([failing(number) for number in numbers]), "shop.example", 10)[0] is reason


def test_an_old_kind_of_signature_is_named_though_python_has_no_name_for_it() -> None:
    error = ssl.SSLError(1, "[SSL] legacy sigalg disallowed or unsupported (_ssl.c:992)")
    assert judge(error, "", 10) == (Reason.TLS_FAILED, "legacy sigalg disallowed or unsupported")


def test_the_systems_reason_is_in_the_sentence_of_an_unknown_error() -> None:
    assert judge(failing(errno.ENOBUFS), "", 10) == (Reason.SYSTEM, os.strerror(errno.ENOBUFS))
