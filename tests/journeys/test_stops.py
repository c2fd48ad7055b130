"""Endpoints that fail are stopped before they have had too much, and what was held for them goes out when enabled."""

from __future__ import annotations

import time
from bisect import bisect, insort
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tests.journeys.attempts import Log, check_logs, too_often, unlogged
from tests.journeys.audit import rows, settle
from tests.journeys.conftest import STRICT_SETTINGS
from tests.journeys.copies import make_copies
from tests.journeys.faults import empty_redis, kill, let_pass, names, nobody_at
from tests.journeys.load import Load
from tests.journeys.shops import Shop, open_shop
from tests.journeys.waiting import wait_until
from tests.stack.receiver import Answer, Receiver
from tests.stack.stack import Stack
from workers.pacing import MOST

POSTED = 500
FAILURES = int(STRICT_SETTINGS["STOP_AFTER_FAILURES"])
# Before they are probed, endpoints that fail from the first may have this many attempts under way in all processes.
BEYOND = 10
TIMEOUT_SECONDS = float(STRICT_SETTINGS["WEBHOOK_TIMEOUT_SECONDS"])
HELD = 3000

Report = Callable[[object], None]


@pytest.fixture
def shop(strict: Stack, receiver: Receiver) -> Shop:
    return open_shop(strict, receiver)


def test_an_endpoint_that_fails_from_the_first_gets_at_most_sixty_attempts(
    strict: Stack, shop: Shop, receiver: Receiver, report: Report
) -> None:
    """Five hundred events are there when two processes begin at once."""
    receiver.answers[shop.hook] = Answer(500, delay_seconds=0.1)
    with nobody_at(strict, "deliveries"):
        _post(shop, POSTED)

    _wait_until_all_is_held(strict, shop)
    _wait_until_nothing_is_under_way(strict, shop)
    received = receiver.counts[shop.hook]
    let_pass(2 * float(STRICT_SETTINGS["RETRY_SCHEDULE"].partition(",")[0]))

    report(f"{received} attempts of {POSTED} deliveries reached the receiver")
    assert FAILURES <= received <= FAILURES + BEYOND
    assert receiver.counts[shop.hook] == received
    found = check_logs(strict, [shop])
    assert sum(log.attempts for log in found) == received
    assert Counter(log.status for log in found) == {"held": POSTED}
    endpoint = _endpoint(shop)
    assert endpoint["stop_reason"].startswith(f"{FAILURES} attempts in a row failed.")
    assert endpoint["stopped_at"]


@pytest.mark.nightly
def test_an_endpoint_that_goes_on_failing_when_enabled_is_probed_and_stops_again(
    strict: Stack, shop: Shop, receiver: Receiver, report: Report
) -> None:
    """Before it was stopped it had answered both processes: the wide windows they have for it may fail as a whole."""
    _post(shop, POSTED)
    settle(strict, [shop])
    receiver.answers[shop.hook] = 410
    _post(shop, 1)
    wait_until(lambda: _endpoint(shop)["state"] == "stopped", 20, "the endpoint stops")
    _post(shop, POSTED)
    _wait_until_all_is_held(strict, shop)
    receiver.answers[shop.hook] = Answer(500, delay_seconds=0.3)
    receiver.clear()

    shop.caller().apply("POST", f"webhooks/endpoints/{shop.endpoint_id}/enable", {"release_held": True})
    _wait_until_all_is_held(strict, shop)
    _wait_until_nothing_is_under_way(strict, shop)

    received = receiver.counts[shop.hook]
    report(f"{received} attempts of {POSTED} deliveries reached the receiver")
    assert FAILURES <= received <= FAILURES + len(names(strict, "deliveries")) * MOST
    assert _endpoint(shop)["consecutive_failures"] == FAILURES


@pytest.mark.nightly
def test_killed_processes_add_no_more_attempts_than_they_had_under_way(
    strict: Stack, shop: Shop, receiver: Receiver, report: Report
) -> None:
    receiver.answers[shop.hook] = Answer(500, delay_seconds=0.5)
    load = Load([shop], clients=4, contacts=50, pause_seconds=0, most=POSTED // 4)
    with load:
        wait_until(lambda: receiver.counts[shop.hook] >= 20, 30, "attempts have been made")
        kill(strict, "deliveries")
        killed_at = time.time()
        load.finish()

    _wait_until_all_is_held(strict, shop)
    # What was under way at the stop is answered, or given up, and recorded.
    let_pass(TIMEOUT_SECONDS + 1)

    found = check_logs(strict, [shop])
    repeated = unlogged(found, receiver)
    logged = sum(log.attempts for log in found)
    report(f"{logged} attempts were recorded, {len(repeated)} were under way when their processes were killed")
    assert FAILURES <= logged <= FAILURES + BEYOND
    assert receiver.counts[shop.hook] == logged + len(repeated)
    assert all(killed_at - 2 * TIMEOUT_SECONDS <= each.at <= killed_at for each in repeated)
    assert Counter(log.status for log in found) == {"held": POSTED}


def test_gone_stops_an_endpoint_at_once_and_what_was_under_way_changes_nothing_more(
    strict: Stack, shop: Shop, receiver: Receiver, report: Report
) -> None:
    """After some quick successes, which widen the window, one is answered 410; those beside it end later."""
    quick = 40
    later = [Answer(200, delay_seconds=1.5), Answer(500, delay_seconds=1.5)] * 100
    answers = iter([*[Answer(200)] * quick, Answer(410, delay_seconds=0.5), *later])
    receiver.behaviour = lambda *_: next(answers)
    with nobody_at(strict, "deliveries"):
        _post(shop, 200)

    wait_until(lambda: _endpoint(shop)["state"] == "stopped", 20, "the endpoint stops")
    _wait_until_all_is_held(strict, shop)
    _wait_until_nothing_is_under_way(strict, shop)

    found = check_logs(strict, [shop])
    by_status = Counter(log.status for log in found)
    report(f"{len(receiver.received)} attempts were made: {dict(by_status)}")
    endpoint = _endpoint(shop)
    assert (endpoint["state"], endpoint["stop_reason"]) == ("stopped", "The receiver answered 410 Gone.")
    assert endpoint["consecutive_failures"] == 1
    assert by_status["failed"] == 1
    assert by_status["delivered"] > quick
    assert sum(log.attempts for log in found) == len(receiver.received)
    assert by_status["held"] > 0
    failing_late = [log for log in found if log.attempts and log.status == "held"]
    assert 1 + by_status["delivered"] + len(failing_late) == len(receiver.received)


def test_what_was_held_goes_out_in_full_and_oldest_first_whatever_is_killed_meanwhile(
    strict: Stack, shop: Shop, receiver: Receiver, report: Report
) -> None:
    receiver.answers[shop.hook] = 410
    shop.caller().apply("POST", "contacts", {"external_id": "ada"})
    wait_until(lambda: _endpoint(shop)["state"] == "stopped", 20, "the endpoint stops")
    _post(shop, 200)
    settle(strict, [shop])
    make_copies(strict, shop, "held", HELD - 200)
    before = {log.delivery_id: log for log in check_logs(strict, [shop]) if log.status == "held"}
    assert len(before) == HELD
    receiver.answers[shop.hook] = 200
    receiver.clear()

    shop.caller().apply("POST", f"webhooks/endpoints/{shop.endpoint_id}/enable", {"release_held": True})
    wait_until(lambda: _released(strict, shop), 20, "the release is under way")
    kill(strict, "retries")
    faults: list[Callable[[], None]] = [
        lambda: empty_redis(strict),
        lambda: kill(strict, "deliveries"),
        strict.postgres.restart,
        lambda: kill(strict, "deliveries", "retries"),
    ]
    for place, fault in enumerate(faults, 1):
        goal = place * HELD // (len(faults) + 1)
        wait_until(lambda goal=goal: len(receiver.received) >= goal, 60, f"{goal} have arrived")
        fault()
    settle(strict, [shop], seconds=120)

    found = {log.delivery_id: log for log in check_logs(strict, [shop]) if log.delivery_id in before}
    repeated = unlogged(list(found.values()), receiver)
    once = [log for log in found.values() if log.claim == before[log.delivery_id].claim + 1]
    overtaken = _most_overtaken(once, [each.delivery_id for each in receiver.received])
    report(
        f"{HELD} released, {len(repeated)} received again; of the {len(once)} that were taken once none came before"
        f" more than {overtaken} older ones"
    )
    assert Counter(log.status for log in found.values()) == {"delivered": HELD}
    arrived = Counter(each.delivery_id for each in receiver.received)
    assert arrived.keys() == before.keys()
    arrived -= Counter(each.delivery_id for each in repeated)
    assert too_often(arrived, [*found.values()], {each: log.attempts for each, log in before.items()}) == []
    assert not {each.delivery_id for each in repeated} & {log.delivery_id for log in once}
    assert overtaken <= len(names(strict, "deliveries")) * MOST
    assert _endpoint(shop)["state"] == "active"


def _post(shop: Shop, number: int) -> None:
    clients = min(4, number)
    with Load([shop], clients=clients, contacts=50, pause_seconds=0, most=number // clients) as load:
        load.finish()


def _endpoint(shop: Shop) -> dict[str, Any]:
    return shop.caller().get(f"webhooks/endpoints/{shop.endpoint_id}")  # type: ignore[no-any-return]


def _wait_until_all_is_held(stack: Stack, shop: Shop) -> None:
    # Probes wait for the scheduler, which looks twice a second.
    wait_until(lambda: _endpoint(shop)["state"] == "stopped", 120, "the endpoint stops")
    settle(stack, [shop], seconds=60)


def _wait_until_nothing_is_under_way(stack: Stack, shop: Shop) -> None:
    query = "SELECT count(*) FROM deliveries WHERE endpoint_id = %s AND leased_until IS NOT NULL"
    wait_until(lambda: rows(stack, query, shop.endpoint_id) == [(0,)], 20, "nothing is under way")


def _released(stack: Stack, shop: Shop) -> bool:
    query = "SELECT count(*) FROM sweeps WHERE endpoint_id = %s AND action = 'release' AND changed > 0"
    return rows(stack, query, shop.endpoint_id) == [(1,)]


def _most_overtaken(logs: Sequence[Log], arrived: Sequence[str]) -> int:
    """How many older ones of these first arrived after a younger one, at most.

    However slow a process is, those were under way when the younger one was claimed.
    """
    places = {log.delivery_id: place for place, log in enumerate(logs)}
    later: list[int] = []
    most = 0
    for place in reversed([places[delivery_id] for delivery_id in dict.fromkeys(arrived) if delivery_id in places]):
        most = max(most, bisect(later, place))
        insort(later, place)
    return most
