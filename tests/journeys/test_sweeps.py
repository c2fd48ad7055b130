"""Bulk resends: what the dry run counts is what changes and arrives, once each, whichever workers die."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from tests.journeys.attempts import check_logs, too_often, unlogged
from tests.journeys.audit import rows, settle
from tests.journeys.copies import make_copies
from tests.journeys.faults import kill
from tests.journeys.logs import lines
from tests.journeys.shops import Shop, open_shop
from tests.journeys.waiting import wait_until
from tests.stack.receiver import Receiver
from tests.stack.stack import Stack

EACH = 1000  # of each status
KILLS = 3
CHOICE = {"statuses": ["failed", "held", "delivered"], "kinds": ["contact.created"]}

Report = Callable[[object], None]


@pytest.fixture
def shop(strict: Stack, receiver: Receiver) -> Shop:
    """A shop with one delivered delivery."""
    shop = open_shop(strict, receiver)
    shop.caller().apply("POST", "contacts", {"external_id": "ada"})
    settle(strict, [shop])
    return shop


@pytest.mark.several_processes
def test_a_bulk_resend_sends_what_its_dry_run_counted_each_once_though_its_worker_is_killed(
    strict: Stack, shop: Shop, receiver: Receiver, report: Report
) -> None:
    copies = {status: make_copies(strict, shop, status, EACH) for status in CHOICE["statuses"]}
    others = make_copies(strict, shop, "failed", 50, kind="tag.added")
    before = {log.delivery_id: log for log in check_logs(strict, [shop])}
    history = _history(strict, shop)
    receiver.clear()
    resend, matching = f"webhooks/endpoints/{shop.endpoint_id}/resend", 3 * EACH + 1

    dry = shop.caller().call("POST", resend, CHOICE | {"dry_run": True})
    assert _statuses(strict, shop) == {"failed": EACH + 50, "held": EACH, "delivered": EACH + 1}
    sweep = shop.caller().apply("POST", resend, CHOICE).data
    kills = _kill_while_it_runs(strict, sweep["id"])
    sweep = _finished(shop, sweep["id"])
    settle(strict, [shop], seconds=120)

    assert (dry.status, dry.data["count"], dry.data["gone"]) == (200, matching, 0)
    assert (sweep["count"], sweep["changed"], sweep["skipped"]) == (matching, matching, 0)
    after = {log.delivery_id: log for log in check_logs(strict, [shop])}
    assert _statuses(strict, shop) == {"delivered": matching + EACH + 1, "failed": 50}
    anew = _resent(strict, shop)
    delivered = [*copies["delivered"], *(each for each in before if before[each].status == "delivered")]
    assert sorted(anew.values()) == sorted({*delivered}), "each that was delivered goes out as one new delivery"
    # Only the process of sweeps was killed, and it sends nothing. A busy receiver may take a request after its end.
    assert unlogged(list(after.values()), receiver, late_seconds=60) == []
    arrived = Counter(each.delivery_id for each in receiver.received)
    assert arrived.keys() == {*copies["failed"], *copies["held"], *anew}
    assert too_often(arrived, [*after.values()], {each: log.attempts for each, log in before.items()}) == []
    # Nothing was removed from the history.
    assert history <= _history(strict, shop)
    assert all(after[each] == before[each] for each in [*delivered, *others])
    entries = shop.caller().get("webhooks/audit-log?action=endpoints.resend")
    assert [entry["detail"]["count"] for entry in entries] == [matching]
    report(f"{matching} counted, changed and received once each, over {kills} kills; one entry in the audit log")


@pytest.mark.nightly
@pytest.mark.several_processes
def test_a_worker_that_is_frozen_in_a_sweep_past_its_lease_changes_nothing_when_it_comes_back(
    strict: Stack, shop: Shop, receiver: Receiver, report: Report
) -> None:
    """One of two processes is frozen; the other takes over the sweep and finishes it."""
    make_copies(strict, shop, "delivered", 4 * EACH)
    receiver.clear()
    matching, before = 4 * EACH + 1, len(lines(strict, "retries.1"))
    strict.processes.stop("retries.2")
    try:
        choice = {"statuses": ["delivered"]}
        sweep = shop.caller().apply("POST", f"webhooks/endpoints/{shop.endpoint_id}/resend", choice).data
        wait_until(lambda: _changed(strict, sweep["id"]) > 0, 20, "the sweep is under way")
        strict.processes.freeze("retries.1")
        frozen_at = _changed(strict, sweep["id"])
        strict.processes.start("retries.2")
        sweep = _finished(shop, sweep["id"])
    finally:
        strict.processes.thaw("retries.1")
        strict.processes.start("retries.2")
    settle(strict, [shop], seconds=120)
    # Stopping it waits until it has finished the batch it was frozen in.
    strict.processes.stop("retries.1")
    strict.processes.start("retries.1")

    woke = [line["event"] for line in lines(strict, "retries.1")[before:] if line["event"].startswith("sweep")]
    report(f"frozen after {frozen_at} of {matching}, all changed once; awake again it said {woke}")
    assert (sweep["count"], sweep["changed"]) == (matching, matching)
    assert _changed(strict, sweep["id"]) == matching
    resent = _resent(strict, shop)
    assert len(resent) == len(set(resent.values())) == matching
    arrived = Counter(each.delivery_id for each in receiver.received)
    assert arrived.keys() == resent.keys()
    assert too_often(arrived, check_logs(strict, [shop]), {}) == []
    assert frozen_at < matching


def _kill_while_it_runs(stack: Stack, sweep_id: str) -> int:
    """Kills the workers of the sweep again and again, each time after some progress; returns how often."""
    kills, changed = 0, 0
    while kills < KILLS:
        wait_until(
            lambda changed=changed: _changed(stack, sweep_id) > changed or _is_finished(stack, sweep_id),
            60,
            "the sweep goes on",
        )
        if _is_finished(stack, sweep_id):
            break
        kill(stack, "retries")
        kills, changed = kills + 1, _changed(stack, sweep_id)
    return kills


def _finished(shop: Shop, sweep_id: str) -> Any:
    path = f"webhooks/sweeps/{sweep_id}"
    wait_until(lambda: shop.caller().get(path)["status"] == "finished", 60, "the sweep ends")
    return shop.caller().get(path)


def _changed(stack: Stack, sweep_id: str) -> int:
    return int(rows(stack, "SELECT changed FROM sweeps WHERE id = %s", sweep_id)[0][0])


def _is_finished(stack: Stack, sweep_id: str) -> bool:
    return bool(rows(stack, "SELECT FROM sweeps WHERE id = %s AND finished_at IS NOT NULL", sweep_id))


def _statuses(stack: Stack, shop: Shop) -> dict[str, int]:
    query = "SELECT status, count(*)::int FROM deliveries WHERE workspace_id = %s GROUP BY status"
    return dict(rows(stack, query, shop.workspace_id))


def _resent(stack: Stack, shop: Shop) -> dict[str, str]:
    """The new deliveries, with the ones they were resent from."""
    query = "SELECT id, resent_from FROM deliveries WHERE workspace_id = %s AND resent_from IS NOT NULL"
    return dict(rows(stack, query, shop.workspace_id))


def _history(stack: Stack, shop: Shop) -> set[tuple[Any, ...]]:
    query = """
        SELECT attempts.* FROM attempts JOIN deliveries ON deliveries.id = delivery_id
        WHERE deliveries.workspace_id = %s
    """
    return set(rows(stack, query, shop.workspace_id))
