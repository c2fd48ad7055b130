"""Messages go out in order and once, whatever happens to couriers, to Redis and at the provider."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.journeys.audit import rows
from tests.journeys.conftest import serve
from tests.journeys.faults import empty_redis, kill
from tests.journeys.waiting import wait_until
from tests.providers.base import Trouble
from tests.providers.telegram import TOKEN, Bot, Telegram, throttled
from tests.stack.posts import connect, post
from tests.stack.stack import Stack

CHANNELS, CONVERSATIONS, EACH = 6, 120, 5
CUTS = 8


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[Telegram]:
    played = Telegram(tmp_path)
    played.start()
    yield played
    played.stop()


@pytest.fixture
def sending(provider: Telegram) -> Iterator[Stack]:
    settings = {"TELEGRAM_API_URL": provider.url, "WEBHOOK_CA_FILE": str(provider.certificates.ca_file)}
    yield from serve({"messages": 4, "scheduler": 1}, settings)


@pytest.mark.nightly
def test_every_message_is_sent_in_order_and_once_while_couriers_die_and_the_provider_fails(
    sending: Stack, provider: Telegram
) -> None:
    workspace_id = sending.command("workspace", "create", "Wool")["workspace"]["id"]
    tokens = [f"{number}{TOKEN}" for number in range(1, CHANNELS + 1)]
    provider.bots = {token: Bot(token) for token in tokens}
    channels = [
        connect(sending, workspace_id, "telegram", {"bot_token": token, "hook_secret": "s"}, {}) for token in tokens
    ]
    posted = post(sending, workspace_id, channels, CONVERSATIONS, EACH)
    provider.happens(throttled(1), Trouble.CUT_AFTER, times=CUTS // 2)
    provider.happens(Trouble.CUT_UNTAKEN, times=CUTS // 2)

    for sent in (60, 120, 240):
        wait_until(lambda: len(_sent(provider)) >= sent, 60, f"{sent} messages are sent")  # noqa: B023
        kill(sending, "messages")
        empty_redis(sending)
    wait_until(lambda: not _unfinished(sending), 180, "every message is finished")

    statuses = Counter(status for _, status in rows(sending, "SELECT id, status FROM messages"))
    texts = _sent(provider)
    assert set(statuses) <= {"sent", "unknown"}
    assert statuses.total() == CONVERSATIONS * EACH
    assert max(Counter(texts).values()) == 1, "a message was sent twice"
    stored = dict(rows(sending, "SELECT text, status FROM messages"))
    lost = {text for talk in posted for text in talk.texts.values()} - set(texts)
    assert {stored[text] for text in lost} <= {"unknown"}
    assert {stored[text] for text in texts} <= {"sent", "unknown"}
    by_peer = defaultdict(list)
    for text in texts:
        peer, _, place = text.partition("-")
        by_peer[peer].append(int(place))
    assert all(places == sorted(places) for places in by_peer.values())


def _sent(provider: Telegram) -> list[str]:
    """The texts that the provider has taken, in the order of each bot."""
    return [str(sent.text) for bot in provider.bots.values() for sent in bot.sent]


def _unfinished(stack: Stack) -> list[tuple[object, ...]]:
    return rows(stack, "SELECT id FROM messages WHERE status IN ('queued', 'sending') LIMIT 1")
