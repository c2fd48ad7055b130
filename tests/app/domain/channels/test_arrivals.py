"""Arrivals: what comes in is stored once, in its order, and rung for."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from app.channels.inbound import Arrival, Blocked, Echoed, Edited, Media, Receipt, Received
from app.database import rows, transaction
from app.domain.channels import arrivals
from app.domain.retention import delete_old
from app.errors import NotFound
from app.models.arrivals import Arrival as Stored
from app.models.channels import Channel
from tests.cast import all_of, in_threads, one, rung_on
from tests.talks import make_channel

AT = datetime.now(UTC).replace(microsecond=0)


@pytest.fixture
def channel(channel_id: str) -> Channel:
    return Channel.get_by_id(channel_id)


def received(key: str = "1", sender: str = "ada", **fields: Any) -> Received:
    return Received(
        **{"key": key, "sender": sender, "peer": sender, "provider_id": key, "at": AT, "text": "Hi"} | fields
    )


def give_up(key: str) -> str:
    rows("UPDATE arrivals SET problem = 'It broke.', errors = 5, due_at = NULL WHERE key = %s", (key,))
    return str(one("SELECT id FROM arrivals WHERE key = %s", key))


def test_what_arrives_is_mail_of_its_sender_and_rung_for(channel: Channel) -> None:
    assert arrivals.store(channel, [received("1", "ada"), received("2", "eve")]) == 2

    assert rung_on("arrivals") == [f"{channel.id}/ada", f"{channel.id}/eve"]
    assert one("SELECT count(*) FROM arrivals WHERE due_at IS NOT NULL") == 2


def test_nothing_to_store_costs_nothing(channel: Channel, statements: list[str]) -> None:
    assert arrivals.store(channel, []) == 0

    assert statements == []


@pytest.mark.parametrize(
    "item",
    [
        received(media=(Media("file-1", "image/png", "a.png", 17), Media("file-2")), name="Ada", phone="+4930123456"),
        Edited("1", "ada", "m-1", AT, "Hi!"),
        Echoed("1", "ada", "chat-1", "m-1", AT, None, (Media("file-1"),)),
        Receipt("1", "ada", "m-1", AT, "failed", "msg_1", "131026", "Undeliverable", is_opt_out=True),
        Blocked("1", "ada", AT, is_blocked=True),
        received(text="{\"a\\\0b'%s 🙂"),
    ],
    ids=lambda item: type(item).__name__,
)
def test_what_arrives_is_read_as_it_came(channel: Channel, item: Arrival) -> None:
    arrivals.store(channel, [item])

    assert arrivals.read(Stored.get()) == item


def test_the_order_is_kept(channel: Channel) -> None:
    arrivals.store(channel, [received(str(number)) for number in range(50)])
    arrivals.store(channel, [received(str(number)) for number in range(50, 60)])

    assert all_of("SELECT key FROM arrivals ORDER BY position") == [str(number) for number in range(60)]


def test_what_came_before_is_left_out(channel: Channel, workspace_id: str) -> None:
    arrivals.store(channel, [received("1")])

    assert arrivals.store(channel, [received("1"), received("2"), received("2")]) == 1
    other = Channel.get_by_id(make_channel(workspace_id))
    assert arrivals.store(other, [received("1")]) == 1


def test_of_the_same_webhook_many_times_at_once_one_counts(channel: Channel) -> None:
    items = [received("1"), received("2")]

    assert sorted(in_threads([lambda: arrivals.store(channel, items)] * 6)) == [0, 0, 0, 0, 0, 2]


def test_a_transaction_that_fails_stores_nothing_and_does_not_ring(channel: Channel) -> None:
    def store_and_fail() -> None:
        with transaction():
            arrivals.store(channel, [received()])
            raise RuntimeError

    with pytest.raises(RuntimeError):
        store_and_fail()

    assert one("SELECT count(*) FROM arrivals") == 0
    assert rung_on("arrivals") == []


def test_keys_are_forgotten_after_eight_days_but_nothing_that_is_not_processed(channel: Channel) -> None:
    arrivals.store(channel, [received(key) for key in ("young", "old", "due", "waiting", "failed", "ancient")])
    rows("UPDATE arrivals SET due_at = NULL WHERE key <> 'due'")
    rows("UPDATE arrivals SET next_attempt_at = now() WHERE key = 'waiting'")
    give_up("failed")
    give_up("ancient")
    rows("UPDATE arrivals SET created_at = now() - interval '8 days 1 minute' WHERE key <> 'young'")
    rows("UPDATE arrivals SET created_at = now() - interval '31 days' WHERE key = 'ancient'")

    assert delete_old("old_arrivals") == 2
    assert set(all_of("SELECT key FROM arrivals")) == {"young", "due", "waiting", "failed"}


def test_what_was_given_up_can_be_retried(channel: Channel) -> None:
    arrivals.store(channel, [received("1"), received("2", "eve"), received("3")])
    first = give_up("1")
    give_up("2")
    rung_on("arrivals")

    assert [found.key for found in Stored.failed(None, 10)] == ["1", "2"]
    assert arrivals.retry(first) == 1
    assert one("SELECT due_at IS NOT NULL AND errors = 0 FROM arrivals WHERE key = '1'")
    assert arrivals.retry() == 1
    with pytest.raises(NotFound):
        arrivals.retry(first)
