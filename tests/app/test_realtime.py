"""Signs of life go by Redis, and are lost without it."""

from __future__ import annotations

from itertools import islice

import pytest
import redis

from app import bells, realtime
from app.realtime import Sign
from tests.conftest import Servers


class Away:
    def publish(self, *_: object) -> None:
        raise redis.ConnectionError("away")


def test_a_sign_is_what_was_shown(empty: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(realtime, "_QUIET_SECONDS", 2.0)
    shown = Sign("typing", "ws_1", "member", "mem_1", {"conversation_id": "cnv_1"}, "chn_1", "vtr_1")
    signs = realtime.signs()
    # The first look subscribes, and takes a few seconds if nothing comes.
    assert next(signs) is None
    realtime.show(shown)

    assert next(signs) == shown


def test_a_redis_that_is_quiet_is_listened_to_and_one_that_hangs_is_not(
    servers: Servers, empty: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(realtime, "_QUIET_SECONDS", 0.5)
    signs = realtime.signs()
    assert [next(signs) for _ in range(6)] == [None] * 6
    servers.redis.freeze()
    try:
        with pytest.raises(redis.TimeoutError):
            list(islice(signs, 10))
    finally:
        servers.redis.thaw()


def test_without_redis_nothing_is_shown_and_nothing_raised(empty: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bells, "flags", Away)

    realtime.typing("ws_1", "cnv_1", {"type": "member", "id": "mem_1"}, None, None)


@pytest.mark.parametrize("said", [b"", b"[]", b'{"kind": "of a newer version"}', b"\xff"])
def test_what_is_no_sign_is_passed_over(said: bytes) -> None:
    assert realtime._read(said) is None
