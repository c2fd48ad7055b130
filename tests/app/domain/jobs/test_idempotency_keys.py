"""Idempotency keys, and the requests that they stand for."""

from __future__ import annotations

import pytest

from app.domain.jobs import idempotency_keys


@pytest.mark.parametrize(
    ("one_request", "another"),
    [((b"a", b"bc"), (b"ab", b"c")), ((b"a", b""), (b"", b"a")), ((b"a",), (b"a", b""))],
    ids=["border", "side", "count"],
)
def test_fingerprints_tell_where_a_part_ends(one_request: tuple[bytes, ...], another: tuple[bytes, ...]) -> None:
    assert idempotency_keys.fingerprint(*one_request) != idempotency_keys.fingerprint(*another)
