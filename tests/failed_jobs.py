"""Failed jobs for tests: one that failed by a fault of ours, and one that failed for a reason of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from app.domain.contacts import contacts
from tests.cast import Api


@contextmanager
def broken() -> Iterator[None]:
    """Within the block every upsert fails with an unexpected error."""

    def breaks(*_: Any) -> None:
        raise RuntimeError("hunter2")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(contacts, "_record", breaks)
        yield


def fail(api: Api) -> str:
    with broken():
        return str(api.done(api.post("contacts", {"email": "ada@example.com"}))["id"])


def refuse(api: Api) -> str:
    api.contact(external_id="other", email="eve@example.com")
    return str(api.done(api.post("contacts", {"external_id": "c", "email": "eve@example.com"}))["id"])
