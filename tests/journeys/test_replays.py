"""Replays after an outage: what the preview counted arrives once, whichever workers die and whatever Redis forgets.

`REPLAYED=100000 python -m pytest tests/journeys/test_replays.py -k overlapping` tells the story at full size.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.journeys.attempts import check_logs, too_often, unlogged
from tests.journeys.audit import rows, settle
from tests.journeys.copies import make_copies
from tests.journeys.faults import empty_redis, kill
from tests.journeys.shops import Shop, open_shop
from tests.journeys.waiting import wait_until
from tests.stack.receiver import Receiver
from tests.stack.stack import Stack

EACH = int(os.environ.get("REPLAYED", "3000")) // 3
KILLS = 3
FAILED = {"statuses": ["failed", "held"], "kinds": ["contact.created"]}

Report = Callable[[object], None]


@pytest.fixture
def shops(strict: Stack, receiver: Receiver) -> tuple[Shop, Shop]:
    """A shop with two endpoints, each with one delivered delivery: as two shops that share a workspace."""
    shop = open_shop(strict, receiver)
    wanted = {"address": receiver.url(hook := f"{shop.hook}/second"), "events": ["*"]}
    second = shop.caller().apply("POST", "webhooks/endpoints", wanted)
    shop.caller().apply("POST", "contacts", {"external_id": "ada"})
    settle(strict, [shop])
    return shop, replace(shop, hook=hook, endpoint_id=second.data["id"], secret=second.document["secret"])


def test_overlapping_replays_send_each_delivery_once_though_workers_die_and_redis_is_emptied(
    strict: Stack, shops: tuple[Shop, Shop], receiver: Receiver, report: Report
) -> None:
    shop, second = shops
    chosen = [
        *make_copies(strict, shop, "failed", EACH),
        *make_copies(strict, shop, "held", EACH),
        *make_copies(strict, second, "failed", EACH),
    ]
    make_copies(strict, second, "delivered", 50)
    make_copies(strict, shop, "failed", 50, kind="tag.added")
    attempts = {log.delivery_id: log.attempts for log in check_logs(strict, [shop])}
    receiver.clear()

    preview = shop.caller().apply("POST", "webhooks/replays", {"filter": FAILED, "dry_run": True}).data
    assert (preview["count"], preview["left_out"], preview["may_arrive_twice"]) == (3 * EACH, {}, 0)
    limited = shop.caller().apply("POST", "webhooks/replays", {"filter": FAILED, "per_second": 600}).data
    wait_until(lambda: _progress(strict, limited["id"]) > 0, 20, "the first replay is under way")
    free = shop.caller().apply("POST", "webhooks/replays", {"filter": FAILED}).data
    kills = _trouble(strict, [limited["id"], free["id"]])
    ended = [_ended(shop, each["id"]) for each in (limited, free)]
    settle(strict, [shop], seconds=120 + EACH / 20)

    assert [(each["state"], each["sent"] + each["skipped"]) for each in ended] == [
        ("done", limited["count"]),
        ("done", free["count"]),
    ]
    assert limited["count"] == 3 * EACH
    outcomes = [_outcomes(strict, each["id"]) for each in ended]
    assert outcomes[0].keys() == {*chosen}
    assert outcomes[1].keys() <= {*chosen}
    sent = Counter(id for each in outcomes for id, reason in each.items() if reason is None)
    assert sent == dict.fromkeys(chosen, 1)
    reasons = Counter(reason for each in outcomes for reason in each.values() if reason)
    assert reasons.keys() <= {"delivered", "in_progress"}
    found = check_logs(strict, [shop])
    assert {log.status for log in found if log.delivery_id in sent} == {"delivered"}
    repeated = Counter(each.delivery_id for each in unlogged(found, receiver))
    arrived = Counter(each.delivery_id for each in receiver.received) - repeated
    assert arrived.keys() == {*chosen}
    assert too_often(arrived, found, attempts) == []
    late = sum(log.attempts - attempts[log.delivery_id] - 1 for log in found if log.delivery_id in sent)
    report(
        f"{3 * EACH} counted, sent once and received over {kills} kills and {kills} times FLUSHALL; the two replays"
        f" sent {ended[0]['sent']} and {ended[1]['sent']}, skipped {dict(reasons)}; {sum(repeated.values())} attempts"
        f" of killed senders arrived without a log, {late} were answered too late and made again"
    )


def test_a_canary_goes_first_and_the_rest_follows_at_the_rate_that_was_asked_for(
    strict: Stack, shops: tuple[Shop, Shop], receiver: Receiver, report: Report
) -> None:
    shop, _ = shops
    made = make_copies(strict, shop, "failed", 200)
    attempts = {log.delivery_id: log.attempts for log in check_logs(strict, [shop])}
    receiver.clear()
    body = {"filter": FAILED, "canary": True, "per_second": 50}

    replay = shop.caller().apply("POST", "webhooks/replays", body).data
    wait_until(lambda: [each.delivery_id for each in receiver.received] == made[:1], 20, "the canary has arrived")
    assert shop.caller().get(f"webhooks/replays/{replay['id']}")["state"] == "canary"
    shop.caller().apply("POST", f"webhooks/replays/{replay['id']}/continue")
    ended = _ended(shop, replay["id"])
    settle(strict, [shop])

    assert (ended["sent"], ended["skipped"]) == (200, 0)
    arrived = Counter(each.delivery_id for each in receiver.received)
    assert arrived.keys() == {*made}
    assert too_often(arrived, check_logs(strict, [shop]), attempts) == []
    [(most, seconds)] = rows(
        strict,
        """
        SELECT max((SELECT count(*) FROM replay_rows later WHERE later.replay_id = replay_rows.replay_id
                AND later.at >= replay_rows.at AND later.at < replay_rows.at + interval '2 seconds')),
            extract(epoch FROM max(at) - min(at))::float
        FROM replay_rows WHERE replay_id = %s AND number > 1
        """,
        replay["id"],
    )
    assert most <= 2 * 50 + 25 + 1  # what half a second may make up for
    report(f"200 at 50 a second: at most {most} in any two seconds, {seconds:.1f} s in all")


def _trouble(stack: Stack, replay_ids: list[str]) -> int:
    """Kills the workers and senders again and again, each time after some progress, and empties Redis each time."""
    kills, seen = 0, 0
    while kills < KILLS:
        wait_until(
            lambda seen=seen: _total(stack, replay_ids) > seen or _all_ended(stack, replay_ids),
            60,
            "the replays go on",
        )
        if _all_ended(stack, replay_ids):
            break
        kill(stack, "retries", "deliveries")
        empty_redis(stack)
        kills, seen = kills + 1, _total(stack, replay_ids)
    return kills


def _ended(shop: Shop, replay_id: str) -> Any:
    path = f"webhooks/replays/{replay_id}"
    wait_until(lambda: shop.caller().get(path)["state"] == "done", 60 + EACH / 20, "the replay ends")
    return shop.caller().get(path)


def _total(stack: Stack, replay_ids: list[str]) -> int:
    return sum(_progress(stack, each) for each in replay_ids)


def _progress(stack: Stack, replay_id: str) -> int:
    return int(rows(stack, "SELECT sent + skipped FROM replays WHERE id = %s", replay_id)[0][0])


def _all_ended(stack: Stack, replay_ids: list[str]) -> bool:
    return not rows(stack, "SELECT 1 FROM replays WHERE id = ANY(%s) AND finished_at IS NULL", replay_ids)


def _outcomes(stack: Stack, replay_id: str) -> dict[str, str | None]:
    """The reason of each row that was skipped, None for each that was sent."""
    found = rows(stack, "SELECT delivery_id, reason FROM replay_rows WHERE replay_id = %s", replay_id)
    assert len(found) == len(dict(found)), "a delivery has one row"
    return dict(found)
