"""Deliveries that wait for their retry go out at once when somebody asks for it, on the schedule that they are on."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from app import bells, database, mailbox
from app.domain.deliveries import attempts, lanes, sweeps
from app.domain.deliveries.attempts import Dispatch
from app.lib import clock, ids
from app.mailbox import serving
from app.models.sweeps import Sweep
from app.outbound import Answer
from tests.cast import Api, all_of, in_another_process, one, rung_on, sweep
from tests.sending import BROKEN, FAULT, OK, outcome, record

DELIVERIES = "SELECT * FROM deliveries ORDER BY id"


@pytest.fixture
def endpoint(api: Api) -> str:
    return api.endpoint(events=["contact.created"])


@pytest.fixture
def due(api: Api, endpoint: str) -> Callable[[], str]:
    """Creates a delivery and returns its identifier."""

    def make() -> str:
        api.contact(external_id=ids.new("x"))
        return str(one("SELECT max(id) FROM deliveries"))

    return make


@pytest.fixture
def waiting(due: Callable[[], str], endpoint: str) -> Callable[[], str]:
    """Creates a delivery whose first attempt has failed."""

    def make() -> str:
        delivery_id = due()
        attempt(endpoint, BROKEN)
        return delivery_id

    return make


def take(endpoint: str, room: int = 100) -> list[Dispatch]:
    """Claims what is due by itself."""
    return attempts.claim(lanes.FAST, {endpoint: room})


def attempt(endpoint: str, answer: Answer) -> list[str]:
    """Makes an attempt at each delivery that is due; returns their identifiers, in order."""
    dispatches = take(endpoint)
    assert record(dispatches, answer) == []
    return [dispatch.claimed.id for dispatch in dispatches]


def let_time_pass() -> None:
    """Wakes the retries as if their time had come."""
    database.rows("UPDATE deliveries SET next_attempt_at = now() WHERE next_attempt_at IS NOT NULL")
    mailbox.wake_and_ring(lanes.WAITING)


def show(api: Api, delivery_id: str) -> dict[str, Any]:
    return dict(api.get(f"webhooks/deliveries/{delivery_id}").json["data"])


def resend(api: Api, delivery_id: str) -> dict[str, Any]:
    """The job that has resent the delivery."""
    return api.done(api.post(f"webhooks/deliveries/{delivery_id}/resend"))


def resend_all(api: Api, endpoint: str, **choice: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a dry run said, and the sweep that ended."""
    path = f"webhooks/endpoints/{endpoint}/resend"
    dry = api.post(path, choice | {"dry_run": True}).json["data"]
    sweep_id = api.done(api.post(path, choice))["resource"]["id"]
    sweep(endpoint)
    return dry, dict(api.get(f"webhooks/sweeps/{sweep_id}").json["data"])


def pauses() -> list[int]:
    """In how many minutes each waiting delivery is due, rounded up."""
    minutes = "SELECT ceil(extract(epoch FROM next_attempt_at - now()) / 60)::int FROM deliveries ORDER BY id"
    return all_of(minutes)


# One


def test_a_delivery_that_waits_for_its_retry_is_due_at_once(
    api: Api, endpoint: str, waiting: Callable[[], str]
) -> None:
    delivery_id = waiting()
    before = show(api, delivery_id)
    bells.flush(20)
    bells.flags().flushdb()

    job = resend(api, delivery_id)

    after = show(api, delivery_id)
    assert (job["status"], job["resource"]["id"]) == ("succeeded", delivery_id)
    assert after == before | {"next_attempt_at": after["next_attempt_at"]}
    assert (after["status"], after["attempts"]) == ("pending", 1)
    assert after["next_attempt_at"] < before["next_attempt_at"]
    assert rung_on("deliveries") == [endpoint]
    assert attempt(endpoint, OK) == [delivery_id]
    assert show(api, delivery_id)["status"] == "delivered"


def test_its_schedule_goes_on_and_the_log_says_which_attempt_was_asked_for(
    api: Api, endpoint: str, waiting: Callable[[], str]
) -> None:
    delivery_id = waiting()
    assert pauses() == [1]

    resend(api, delivery_id)
    assert attempt(endpoint, BROKEN) == [delivery_id]
    assert pauses() == [5]
    let_time_pass()
    attempt(endpoint, BROKEN)
    assert pauses() == [30]

    log = show(api, delivery_id)["attempts_log"]
    assert [(each["number"], each["trigger"]) for each in log] == [(1, "automatic"), (2, "resend"), (3, "automatic")]


def test_a_delivery_has_six_attempts_however_often_it_was_brought_forward(
    api: Api, endpoint: str, waiting: Callable[[], str]
) -> None:
    delivery_id = waiting()

    for _ in range(5):
        database.rows("UPDATE endpoints SET consecutive_failures = 0")  # so that it is not probed
        resend(api, delivery_id)
        attempt(endpoint, BROKEN)

    assert (show(api, delivery_id)["status"], show(api, delivery_id)["attempts"]) == ("failed", 6)


def test_a_failed_delivery_has_one_attempt_that_was_asked_for_and_then_automatic_ones(
    api: Api, endpoint: str, waiting: Callable[[], str]
) -> None:
    delivery_id = waiting()
    database.rows("UPDATE deliveries SET status = 'failed', next_attempt_at = NULL")

    resend(api, delivery_id)
    attempt(endpoint, BROKEN)
    assert pauses() == [1]
    let_time_pass()
    attempt(endpoint, BROKEN)

    triggers = [each["trigger"] for each in show(api, delivery_id)["attempts_log"]]
    assert triggers == ["automatic", "resend", "automatic"]


def test_a_fault_of_ours_is_not_the_attempt_that_was_asked_for(api: Api, endpoint: str, due: Callable[[], str]) -> None:
    delivery_id = due()
    for _ in range(2):
        [dispatch] = take(endpoint)
        attempts.record([outcome(dispatch, FAULT, pause_seconds=600)])
        assert resend(api, delivery_id)["status"] == "succeeded"
    attempt(endpoint, BROKEN)

    shown = show(api, delivery_id)
    assert (shown["attempts"], [each["trigger"] for each in shown["attempts_log"]]) == (1, ["resend"])
    assert pauses() == [1]


def test_the_time_of_a_retry_that_was_brought_forward_does_not_come_again(
    api: Api, endpoint: str, waiting: Callable[[], str]
) -> None:
    delivery_id = waiting()
    resend(api, delivery_id)

    assert mailbox.wake_and_ring(lanes.WAITING) == 0
    assert attempt(endpoint, OK) == [delivery_id]
    assert mailbox.wake_and_ring(lanes.WAITING) == 0
    assert attempt(endpoint, OK) == []


@pytest.mark.parametrize("lease", [None, timedelta(seconds=-1)], ids=["never claimed", "its worker died"])
def test_a_delivery_that_is_due_stays_as_it_is(
    api: Api, endpoint: str, due: Callable[[], str], lease: timedelta | None
) -> None:
    delivery_id = due()
    database.rows("UPDATE deliveries SET leased_until = now() + %s", (lease,))
    before = database.rows(DELIVERIES)

    job = resend(api, delivery_id)

    assert (job["status"], job["resource"]["id"]) == ("succeeded", delivery_id)
    assert database.rows(DELIVERIES) == before
    assert all_of("SELECT action FROM audit_entries WHERE action LIKE '%%resend'") == []
    assert attempt(endpoint, OK) == [delivery_id]


def test_asking_twice_makes_one_attempt(api: Api, endpoint: str, waiting: Callable[[], str]) -> None:
    delivery_id = waiting()

    jobs = [resend(api, delivery_id), resend(api, delivery_id)]

    assert [job["status"] for job in jobs] == ["succeeded"] * 2
    assert attempt(endpoint, BROKEN) == [delivery_id]
    assert attempt(endpoint, BROKEN) == []
    entries = api.get("webhooks/audit-log?action=deliveries.resend").json["data"]
    assert [entry["detail"] for entry in entries] == [{"endpoint_id": endpoint, "sent_as": delivery_id}]


def test_a_delivery_in_progress_is_a_conflict_until_its_attempt_has_ended(
    api: Api, endpoint: str, due: Callable[[], str]
) -> None:
    delivery_id = due()
    [dispatch] = take(endpoint)
    before = database.rows(DELIVERIES)

    refused = resend(api, delivery_id)

    assert (refused["status"], refused["problem"]["status"]) == ("failed", 409)
    assert refused["problem"]["type"].endswith("/conflict")
    assert "in progress" in refused["problem"]["detail"]
    assert database.rows(DELIVERIES) == before
    record([dispatch], BROKEN)
    assert resend(api, delivery_id)["status"] == "succeeded"


def test_nothing_is_brought_forward_to_a_stopped_endpoint(api: Api, endpoint: str, waiting: Callable[[], str]) -> None:
    delivery_id = waiting()
    database.rows("UPDATE endpoints SET state = 'stopped'")
    before = database.rows(DELIVERIES)

    job = resend(api, delivery_id)

    assert (job["status"], job["problem"]["status"]) == ("failed", 409)
    assert "Enable it first" in job["problem"]["detail"]
    assert database.rows(DELIVERIES) == before


# Many


def copies(number: int, **columns: Any) -> list[str]:
    """So many more deliveries like the newest, oldest first; they wait for their second retry."""
    made = [ids.new("dlv") for _ in range(number)]
    later = {"status": "pending", "tries": 2, "attempts": 2, "next_attempt_at": clock.now() + timedelta(hours=1)}
    columns = later | {"due_at": None, "leased_until": None, "kind": "contact.created"} | columns
    database.rows(
        f"""
        INSERT INTO deliveries (id, workspace_id, event_id, endpoint_id, {", ".join(columns)})
        SELECT made.id, workspace_id, event_id, endpoint_id, {", ".join(["%s"] * len(columns))}
        FROM (SELECT * FROM deliveries ORDER BY id DESC LIMIT 1) AS newest CROSS JOIN unnest(%s::text[]) AS made(id)
        """,
        (*columns.values(), made),
    )
    return made


def test_pending_ones_that_wait_are_brought_forward_and_the_others_left_alone(
    api: Api, endpoint: str, due: Callable[[], str]
) -> None:
    due()
    database.rows("UPDATE deliveries SET status = 'delivered', due_at = NULL")
    now, later = clock.now(), clock.now() + timedelta(hours=1)
    first = copies(2)
    copies(1, next_attempt_at=None, due_at=now)
    copies(1, next_attempt_at=None, due_at=now, leased_until=later)
    copies(1, next_attempt_at=None, due_at=now, leased_until=now)
    for status in ("failed", "held", "cancelled"):
        copies(1, status=status, next_attempt_at=None)
    copies(1, kind="tag.added")
    last = copies(1)
    others = "SELECT * FROM deliveries WHERE NOT id = ANY(%s) ORDER BY id"
    before = database.rows(others, (first + last,))

    dry, done = resend_all(api, endpoint, statuses=["pending"], kinds=["contact.created"])

    assert (dry["count"], dry["gone"]) == (3, 0)
    assert (done["count"], done["changed"], done["skipped"], done["statuses"]) == (3, 3, 0, ["pending"])
    assert database.rows(others, (first + last,)) == before
    brought = "SELECT (status, tries, attempts, trigger, next_attempt_at)::text FROM deliveries WHERE id = ANY(%s)"
    assert set(all_of(brought, first + last)) == {"(pending,2,2,resend,)"}
    in_order = "SELECT id FROM deliveries WHERE id = ANY(%s) AND due_at <= now() ORDER BY due_at"
    assert all_of(in_order, first + last) == first + last


def test_all_statuses_may_be_sent_again_together(api: Api, endpoint: str, due: Callable[[], str]) -> None:
    delivered = due()
    database.rows("UPDATE deliveries SET status = 'delivered', due_at = NULL")
    failed, held = (copies(1, status=status, next_attempt_at=None) for status in ("failed", "held"))
    waiting = copies(1)
    copies(1, next_attempt_at=None, due_at=clock.now(), leased_until=clock.now() + timedelta(hours=1))

    dry, done = resend_all(api, endpoint, statuses=["pending", "failed", "held", "delivered"])

    assert dry["count"] == done["count"] == done["changed"] == 4
    sent = database.rows("SELECT coalesce(resent_from, id), tries FROM deliveries WHERE trigger = 'resend'")
    assert sorted(sent) == sorted([(delivered, 0), (failed[0], 0), (held[0], 0), (waiting[0], 2)])


def test_pending_ones_are_not_brought_forward_unless_asked_for(
    api: Api, endpoint: str, waiting: Callable[[], str]
) -> None:
    waiting()
    before = database.rows(DELIVERIES)

    dry, done = resend_all(api, endpoint)

    assert (dry["count"], done["count"], done["changed"]) == (0, 0, 0)
    assert database.rows(DELIVERIES) == before


def test_a_waiting_one_that_has_lost_its_body_is_skipped(api: Api, endpoint: str, waiting: Callable[[], str]) -> None:
    waiting()
    database.rows("DELETE FROM events")
    before = database.rows(DELIVERIES)

    dry, done = resend_all(api, endpoint, statuses=["pending"])

    assert (dry["count"], dry["gone"]) == (0, 1)
    assert (done["count"], done["changed"], done["skipped"]) == (1, 0, 1)
    assert database.rows(DELIVERIES) == before


def test_one_that_fell_due_between_the_look_and_the_lock_is_left_as_it_is(
    api: Api, endpoint: str, due: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    attempt(endpoint, OK)
    due()
    attempt(endpoint, OK)
    made = copies(20)
    real = sweeps._look
    taken: list[Dispatch] = []

    def look_and_be_late(walking: Sweep) -> list[tuple[str, bool]]:
        looked_at = real(walking)
        if not taken:
            database.rows("UPDATE deliveries SET next_attempt_at = now() WHERE id = %s", (made[10],))
            mailbox.wake_and_ring(lanes.WAITING)
            taken.extend(take(endpoint))
        return looked_at

    monkeypatch.setattr(sweeps, "_look", look_and_be_late)
    _, done = resend_all(api, endpoint, statuses=["pending"])

    assert [dispatch.claimed.id for dispatch in taken] == [made[10]]
    assert (done["count"], done["changed"]) == (20, 19)
    assert all_of("SELECT trigger FROM deliveries WHERE id = %s", made[10]) == ["automatic"]
    assert record(taken, OK) == []


def test_a_sweep_that_is_killed_midway_brings_each_forward_once(
    api: Api, endpoint: str, due: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    due()
    attempt(endpoint, OK)
    made = copies(1200)
    accepted = api.done(api.post(f"webhooks/endpoints/{endpoint}/resend", {"statuses": ["pending"]}))
    real, saved = sweeps._save, iter(range(1))

    def die(*args: Any) -> None:
        real(*args)
        if next(saved, None) is None:
            os.kill(os.getpid(), signal.SIGKILL)

    with monkeypatch.context() as dying:
        dying.setattr(sweeps, "_save", die)
        dying.setattr(serving, "SLICE_SECONDS", 60)
        assert in_another_process(lambda: sweeps.work(endpoint)) == -signal.SIGKILL

    # One batch is committed, the second is undone. What the first brought forward fails and waits again.
    assert one("SELECT count(*) FROM deliveries WHERE due_at IS NOT NULL") == 500
    begun = take(endpoint, 1000)
    record(begun, FAULT)
    database.rows("UPDATE sweeps SET leased_until = now()")
    sweep(endpoint)
    rest = take(endpoint, 2000)

    assert Counter(dispatch.claimed.id for dispatch in begun + rest) == Counter(made)
    done = api.get(f"webhooks/sweeps/{accepted['resource']['id']}").json["data"]
    assert (done["status"], done["count"], done["changed"]) == ("finished", 1200, 1200)
