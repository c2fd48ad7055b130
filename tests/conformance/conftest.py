"""The service that third-party tools run against, with every process of the Procfile."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.request import urlopen

import pytest

from tests.stack.processes import process_types
from tests.stack.receiver import Receiver
from tests.stack.stack import Stack

# On, as in production, but never reached.
SETTINGS = {"RATE_LIMIT": "100000000"}


@dataclass(frozen=True)
class Site:
    """A workspace of the running service, with an unrestricted token."""

    stack: Stack
    workspace: str
    token: str = field(repr=False)

    @property
    def base_url(self) -> str:
        return self.stack.base_url


@pytest.fixture(scope="session")
def stack() -> Iterator[Stack]:
    counts = dict.fromkeys(process_types(), 1)
    with (
        TemporaryDirectory(prefix="bellhop-conformance-", ignore_cleanup_errors=True) as directory,
        Stack(Path(directory), counts, SETTINGS) as stack,
    ):
        yield stack


@pytest.fixture
def site(stack: Stack) -> Site:
    made = stack.command("workspace", "create", "Stranger")
    return Site(stack, made["workspace"]["id"], made["token"])


@pytest.fixture
def receiver(stack: Stack) -> Iterator[Receiver]:
    with Receiver(stack.certificates.ca_file.parent) as receiver:
        yield receiver


@pytest.fixture
def document(site: Site, tmp_path: Path) -> Path:
    """The OpenAPI document of the running service, in a file."""
    path = tmp_path / "openapi.json"
    with urlopen(f"{site.base_url}/api/v1/openapi.json", timeout=30) as answer:
        path.write_bytes(answer.read())
    return path
