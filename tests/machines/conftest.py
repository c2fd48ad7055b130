"""The service on several machines, which all stories share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.machines.hosts import Hosts
from tests.machines.namespaces import OUTSIDE, make_router
from tests.stack.receiver import Receiver


@pytest.fixture(scope="session")
def running() -> Iterator[Hosts]:
    make_router()
    with TemporaryDirectory(prefix="bellhop-machines-", ignore_cleanup_errors=True) as directory:
        hosts = Hosts(Path(directory))
        try:
            hosts.start()
            yield hosts
        finally:
            hosts.stop()


@pytest.fixture
def hosts(running: Hosts) -> Hosts:
    """The hosts, each of which is ready, whatever the previous story did."""
    for host in running.all:
        host.start()
    return running


@pytest.fixture
def receiver(running: Hosts) -> Iterator[Receiver]:
    with Receiver(running.stack.certificates.ca_file.parent, host=OUTSIDE) as receiver:
        yield receiver
