"""A failover of Redis under load: every accepted write takes effect once, and bells ring again within seconds."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.journeys.audit import audit
from tests.journeys.load import Load
from tests.journeys.shops import Shop, open_shops
from tests.journeys.waiting import wait_until
from tests.stack.certificates import Certificates
from tests.stack.receiver import Receiver
from tests.stack.sentinels import Sentinels
from tests.stack.stack import Stack

PROCESSES = {
    **{"web": 1, "realtime": 1, "writes": 2, "deliveries": 1, "slow-deliveries": 1, "retries": 1},
    **{"scheduler": 1},
}


@pytest.fixture(params=["plain", "tls"])
def sentinels(request: pytest.FixtureRequest) -> Iterator[Sentinels]:
    with TemporaryDirectory(prefix="bellhop-sentinel-", ignore_cleanup_errors=True) as directory:
        certificates = Certificates(Path(directory) / "certificates") if request.param == "tls" else None
        made = Sentinels(Path(directory) / "redis", certificates)
        try:
            made.start()
            yield made
        finally:
            made.stop()


@pytest.fixture
def stack(sentinels: Sentinels) -> Iterator[Stack]:
    with (
        TemporaryDirectory(prefix="bellhop-sentinel-", ignore_cleanup_errors=True) as directory,
        Stack(Path(directory), PROCESSES, {"RATE_LIMIT": "0", "REDIS_URL": sentinels.url}) as stack,
    ):
        yield stack


@pytest.fixture
def receiver(stack: Stack) -> Iterator[Receiver]:
    with Receiver(stack.certificates.ca_file.parent) as receiver:
        yield receiver


def until_applied(shop: Shop) -> float:
    """The seconds until a write that is sent now takes effect."""
    began = time.monotonic()
    shop.caller().apply("POST", "contacts", {"external_id": "after"})
    return time.monotonic() - began


def test_a_failover_loses_and_doubles_nothing(sentinels: Sentinels, stack: Stack, receiver: Receiver) -> None:
    shops = open_shops(stack, receiver, 3)
    first = sentinels.primary()
    with Load(shops[:2], pause_seconds=0.1) as load:
        load.go_on(100)
        sentinels.kill_primary()
        after_crash = until_applied(shops[2])
        second = sentinels.primary()
        load.go_on(100)
        sentinels.fail_over()
        after_change = until_applied(shops[2])
        wait_until(lambda: sentinels.primary() != second, 30, "another server is the primary")
        load.go_on(100)

    figures = audit(stack, receiver, load)

    print(f"\n{figures}; a write took {after_crash:.1f} s after a crash, {after_change:.1f} s after a planned failover")
    assert second != first
    assert figures.refused == 0
    assert figures.duplicates == 0
