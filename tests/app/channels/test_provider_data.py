from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app.channels.base import Outcome, Verdict
from app.channels.inbound import BadPayload, Media, Received
from app.channels.provider_data import LONGEST_PAUSE_SECONDS, MOST_IDENTIFIER
from app.channels.telegram import verdict_of
from app.channels.whatsapp_answers import judge
from app.lib import clock, json
from app.outbound import answered

HOSTILE = [1e9, 1e12, 1e18, 1e308, 10**400, "1e12", "inf", "Infinity", "9" * 400, "nan", "-1", -1, -1e18, True, [], {}]


def received(**changed: Any) -> Received:
    given = {"key": "1", "sender": "ada", "peer": "ada", "provider_id": "1", "at": clock.now(), "text": "Hello"}
    return Received(**(given | changed))


@pytest.mark.parametrize("asked", [math.inf, -math.inf, math.nan, *HOSTILE])
def test_every_pause_is_finite_and_an_hour_at_most(asked: Any) -> None:
    assert 0 <= Verdict(Outcome.LATER, pause_seconds=asked).pause_seconds <= LONGEST_PAUSE_SECONDS


@pytest.mark.parametrize("asked", HOSTILE)
def test_no_provider_gets_a_longer_pause(asked: Any) -> None:
    body = json.dumps({"ok": False, "parameters": {"retry_after": str(asked) if asked == 10**400 else asked}})
    telegram = verdict_of(answered(429, body))
    whatsapp = judge(answered(429, headers=(("retry-after", str(asked)[:400]),)), True, lambda document: None)

    for verdict in (telegram, whatsapp):
        assert verdict.outcome is Outcome.LATER
        assert 0 <= verdict.pause_seconds <= LONGEST_PAUSE_SECONDS


def test_an_honest_pause_is_kept() -> None:
    body = json.dumps({"ok": False, "parameters": {"retry_after": 17}})

    assert verdict_of(answered(429, body)).pause_seconds == 17


@pytest.mark.parametrize("said", ["1\0", "\ud800", "", "1" * (MOST_IDENTIFIER + 1), 7, {}])
def test_an_identifier_that_cannot_be_stored_is_none(said: Any) -> None:
    assert Verdict(Outcome.SENT, said).provider_id is None
    with pytest.raises(BadPayload):
        received(provider_id=said)


def test_texts_lose_what_cannot_be_stored() -> None:
    assert Verdict(Outcome.FAILED, detail="No\0t \ud800now").detail == "Not now"
    assert received(text="He\0llo", name="\ud800Ada").text == "Hello"


@pytest.mark.parametrize("bytes", ["12", [], -1, 10**30, True])
def test_a_file_of_no_size_has_none(bytes: Any) -> None:
    assert Media("1", content_type=[], bytes=bytes) == Media("1")  # type: ignore[arg-type]


def test_nothing_comes_from_the_future_or_from_before_1970() -> None:
    assert received(at=datetime(9999, 1, 1, tzinfo=UTC)).at <= clock.now()
    assert received(at=datetime(1, 1, 1, tzinfo=UTC)).at.year == 1970
    yesterday = clock.now() - timedelta(days=1)
    assert received(at=yesterday).at == yesterday
