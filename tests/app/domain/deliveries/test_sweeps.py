"""Sweeps: every delivery once and none left out, whatever happens to workers, deliveries and the endpoint meanwhile."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import peewee
import pytest

from app import bells, database, mailbox
from app.domain.deliveries import attempts, lanes, sweeps
from app.domain.deliveries.attempts import Outcome
from app.domain.retention import delete_old
from app.lib import clock, ids
from app.mailbox import serving
from app.models.deliveries import Delivery
from app.models.endpoints import Endpoint
from app.models.sweeps import Sweep
from app.outbound import answered
from scheduler.timetable import Timetable
from tests.cast import Api, all_of, in_threads, make_endpoint, one, sweep, until
from tests.growth import blocks_read
from tests.sending import locked, make, record_all, set_state

OK = answered(204, b"", 12)
BROKEN = answered(500, b"oops", 7)


@pytest.fixture
def endpoint(api: Api) -> Endpoint:
    identifier, _ = make_endpoint(api.workspace_id, "https://shop.example/hooks")
    return Endpoint.get_by_id(identifier)


def begin(endpoint: Endpoint, action: str, *statuses: str, **options: Any) -> str:
    return sweeps.begin(endpoint.workspace_id, endpoint.id, action, statuses, "trace-1", **options)


def swept(endpoint: Endpoint, action: str, *statuses: str, **options: Any) -> Sweep:
    """A sweep that has ended."""
    sweep_id = begin(endpoint, action, *statuses, **options)
    sweep(endpoint.id)
    done = Sweep.get_by_id(sweep_id)
    assert done.finished_at is not None
    assert done.due_at is None
    return done


def tally(endpoint: Endpoint) -> dict[str, int]:
    return dict(Counter(all_of("SELECT status FROM deliveries WHERE endpoint_id = %s", endpoint.id)))


def in_due_order(endpoint: Endpoint) -> list[str]:
    return all_of(
        "SELECT id FROM deliveries WHERE endpoint_id = %s AND due_at IS NOT NULL ORDER BY due_at", endpoint.id
    )


# The actions


def test_a_stopped_endpoint_has_what_is_pending_held(endpoint: Endpoint) -> None:
    make(endpoint, 3, "pending")
    make(endpoint, 2, "failed")
    make(endpoint, 1, "delivered")
    set_state(endpoint, "stopped")

    done = swept(endpoint, "hold", "pending")

    assert tally(endpoint) == {"held": 3, "failed": 2, "delivered": 1}
    assert in_due_order(endpoint) == []
    assert (done.changed, done.skipped) == (3, 0)


def test_what_waits_for_its_retry_is_held_and_released_at_once(endpoint: Endpoint) -> None:
    waiting = make(endpoint, 2, "pending", tries=1, next_attempt_at=clock.now() + timedelta(hours=1))
    database.rows("UPDATE deliveries SET due_at = NULL")
    set_state(endpoint, "stopped")

    swept(endpoint, "hold", "pending")
    assert tally(endpoint) == {"held": 2}
    assert one("SELECT count(*) FROM deliveries WHERE coalesce(due_at, next_attempt_at) IS NOT NULL") == 0

    set_state(endpoint, "active")
    swept(endpoint, "release", "held")
    assert in_due_order(endpoint) == waiting
    assert one("SELECT count(*) FROM deliveries WHERE next_attempt_at IS NOT NULL") == 0


def test_an_attempt_under_way_is_recorded_when_its_delivery_was_held_meanwhile(endpoint: Endpoint) -> None:
    make(endpoint, 1, "pending")
    [dispatch] = attempts.claim(lanes.FAST, {endpoint.id: 1})
    set_state(endpoint, "stopped")
    swept(endpoint, "hold", "pending")

    attempts.record([Outcome(dispatch, clock.now(), OK)])

    assert tally(endpoint) == {"delivered": 1}


@pytest.mark.parametrize("action", ["release", "resend"])
def test_what_goes_out_again_while_its_attempt_is_under_way_does_so_only_if_that_is_not_recorded(
    endpoint: Endpoint, action: str
) -> None:
    make(endpoint, 2, "pending")
    [recorded, _lost] = attempts.claim(lanes.FAST, {endpoint.id: 2})
    set_state(endpoint, "stopped")
    swept(endpoint, "hold", "pending")
    set_state(endpoint, "active")
    swept(endpoint, action, "held")

    assert attempts.claim(lanes.FAST, {endpoint.id: 2}) == []
    attempts.record([Outcome(recorded, clock.now(), OK)])
    assert tally(endpoint) == {"delivered": 1, "pending": 1}
    database.rows("UPDATE deliveries SET leased_until = now()")
    assert len(attempts.claim(lanes.FAST, {endpoint.id: 2})) == 1


def test_a_deleted_endpoint_has_what_has_not_ended_cancelled(endpoint: Endpoint) -> None:
    for status in ("pending", "held", "failed", "delivered"):
        make(endpoint, 2, status)
    set_state(endpoint, "deleted")

    swept(endpoint, "cancel", "pending", "held")

    assert tally(endpoint) == {"cancelled": 4, "failed": 2, "delivered": 2}
    assert in_due_order(endpoint) == []


def test_the_sweeps_of_an_endpoint_whose_row_is_gone_end(endpoint: Endpoint) -> None:
    make(endpoint, 2, "held")
    Endpoint.delete().execute()

    swept(endpoint, "release", "held")
    assert tally(endpoint) == {"held": 2}
    swept(endpoint, "cancel", "pending", "held")

    assert tally(endpoint) == {"cancelled": 2}


def test_what_is_released_goes_out_oldest_first(endpoint: Endpoint) -> None:
    made = make(endpoint, 1200, "held", tries=3, attempts=3)
    failed = make(endpoint, 1, "failed")

    done = swept(endpoint, "release", "held")

    assert in_due_order(endpoint) == made
    assert Delivery.get_by_id(failed[0]).status == "failed"
    assert all_of(
        "SELECT DISTINCT (status, tries, attempts, trigger)::text FROM deliveries WHERE status = 'pending'"
    ) == ["(pending,3,3,automatic)"]
    assert done.changed == 1200


def test_what_is_resent_begins_the_schedule_anew_and_keeps_its_history(endpoint: Endpoint) -> None:
    failed = make(endpoint, 2, "failed", tries=6, attempts=6, last_error="Refused.")
    held = make(endpoint, 2, "held", tries=2, attempts=2)

    done = swept(endpoint, "resend", "failed", "held", matched=4)

    assert in_due_order(endpoint) == failed + held
    assert all_of("SELECT (status, tries, trigger, attempts)::text FROM deliveries ORDER BY id") == [
        "(pending,0,resend,6)",
        "(pending,0,resend,6)",
        "(pending,0,resend,2)",
        "(pending,0,resend,2)",
    ]
    assert Delivery.get_by_id(failed[0]).last_error == "Refused."
    assert (done.matched, done.changed, done.skipped) == (4, 4, 0)


def test_what_was_delivered_stays_so_and_goes_out_as_a_new_delivery(endpoint: Endpoint) -> None:
    delivered = make(endpoint, 3, "delivered", attempts=1)
    before = list(Delivery.select().order_by(Delivery.id).dicts())

    swept(endpoint, "resend", "delivered")

    made = list(Delivery.select().where(Delivery.resent_from.is_null(False)).order_by(Delivery.due_at))
    found = list(Delivery.select().where(Delivery.id.in_(delivered)).order_by(Delivery.id).dicts())
    assert found == [each | {"claim": each["claim"] + 1} for each in before]
    assert [each.resent_from for each in made] == delivered
    assert {(each.status, each.trigger, each.attempts, each.event_id) for each in made} == {
        ("pending", "resend", 0, before[0]["event_id"])
    }
    assert in_due_order(endpoint) == [each.id for each in made]


def test_a_resend_of_everything_does_not_send_what_it_made_itself(endpoint: Endpoint) -> None:
    make(endpoint, 700, "delivered")
    sweep_id = begin(endpoint, "resend", "failed", "held", "delivered")
    # What is sent is delivered at once, and another machine's clock is far ahead.
    database.rows("UPDATE sweeps SET last_id = 'dlv_zzz'")
    database.rows(
        "CREATE FUNCTION at_once() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN NEW.status := 'delivered'; NEW.due_at := NULL; RETURN NEW; END $$;"
        "CREATE TRIGGER at_once BEFORE INSERT ON deliveries FOR EACH ROW EXECUTE FUNCTION at_once()"
    )
    try:
        for _ in range(8):  # without end, where it is wrong
            sweeps.work(endpoint.id)
    finally:
        database.rows("DROP TRIGGER at_once ON deliveries; DROP FUNCTION at_once()")

    assert tally(endpoint) == {"delivered": 1400}
    assert Sweep.get_by_id(sweep_id).changed == 700


def test_what_has_lost_its_body_is_left_as_it_was_and_counted(endpoint: Endpoint) -> None:
    make(endpoint, 2, "failed", body=False, last_error="Refused.", attempts=6, tries=6)
    make(endpoint, 1, "delivered", body=False)
    sent = make(endpoint, 1, "failed")
    before = list(Delivery.select().where(Delivery.id.not_in(sent)).order_by(Delivery.id).dicts())

    done = swept(endpoint, "resend", "failed", "delivered")

    assert list(Delivery.select().where(Delivery.id.not_in(sent)).order_by(Delivery.id).dicts()) == before
    assert in_due_order(endpoint) == sent
    assert (done.changed, done.skipped) == (1, 3)


def test_a_resend_is_about_what_was_chosen(endpoint: Endpoint, api: Api) -> None:
    noon = clock.now() - timedelta(days=2)
    other, _ = make_endpoint(api.workspace_id, "https://other.example/")
    make(Endpoint.get_by_id(other), 1, created_at=noon)
    make(endpoint, 1, created_at=noon - timedelta(microseconds=1))
    make(endpoint, 1, "held", created_at=noon)
    make(endpoint, 1, kind="tag.added", created_at=noon)
    make(endpoint, 1, created_at=noon + timedelta(hours=1))
    chosen = make(endpoint, 1, created_at=noon) + make(endpoint, 1, created_at=noon + timedelta(minutes=59))
    choice: dict[str, Any] = {"kinds": ["contact.created"], "since": noon, "until": noon + timedelta(hours=1)}

    assert sweeps.count_matching(endpoint.id, statuses=["failed"], **choice) == 2
    assert sweeps.count_resendable(endpoint.id, statuses=["failed"], **choice) == (2, 0)
    done = swept(endpoint, "resend", "failed", **choice)

    assert in_due_order(endpoint) == chosen
    assert done.changed == 2


# Exactness


@pytest.mark.parametrize("number", [0, 1, 499, 500, 501, 1000, 3000])
def test_any_number_is_done_in_full(endpoint: Endpoint, number: int) -> None:
    made = make(endpoint, number, "held")

    done = swept(endpoint, "release", "held")

    assert in_due_order(endpoint) == made
    assert done.changed == number


def test_few_among_many_others_are_all_found(endpoint: Endpoint) -> None:
    make(endpoint, 1100, "failed")
    first = make(endpoint, 1, "held")
    make(endpoint, 1100, "failed")
    last = make(endpoint, 1, "held")

    swept(endpoint, "release", "held")

    assert in_due_order(endpoint) == first + last


def test_what_is_made_afterwards_is_left_alone(endpoint: Endpoint) -> None:
    before = make(endpoint, 3, "failed")
    begin(endpoint, "resend", "failed")
    make(endpoint, 3, "failed")

    sweep(endpoint.id)

    assert in_due_order(endpoint) == before


def test_what_has_an_identifier_after_the_last_that_was_there_is_left_alone(endpoint: Endpoint) -> None:
    before = make(endpoint, 3, "failed")
    with database.transaction():  # as where a later job of the same batch makes some
        begin(endpoint, "resend", "failed")
        make(endpoint, 3, "failed", created_at=clock.now() - timedelta(hours=1))

    sweep(endpoint.id)

    assert in_due_order(endpoint) == before


def test_what_another_machine_made_afterwards_with_its_clock_behind_is_left_alone(endpoint: Endpoint) -> None:
    early = ids.new("dlv")
    before = make(endpoint, 3, "failed")
    begin(endpoint, "resend", "failed")
    [late] = make(endpoint, 1, "failed")
    database.rows("UPDATE deliveries SET id = %s, created_at = now() WHERE id = %s", (early, late))

    sweep(endpoint.id)

    assert in_due_order(endpoint) == before


def test_a_worker_that_dies_between_or_within_batches_leaves_nothing_out_and_does_nothing_twice(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(endpoint, 1600, "delivered")
    begin(endpoint, "resend", "delivered")
    real, batches = sweeps._save, 0

    def die_now_and_then(*args: Any) -> None:
        nonlocal batches
        batches += 1
        if batches % 2:
            raise peewee.OperationalError("killed")  # before the commit: the transaction never happened
        real(*args)

    monkeypatch.setattr(sweeps, "_save", die_now_and_then)
    for _ in range(4):
        with pytest.raises(peewee.OperationalError):
            sweeps.work(endpoint.id)
        assert one("SELECT count(*) FROM deliveries WHERE resent_from IS NOT NULL") % 500 == 0
    monkeypatch.undo()
    sweep(endpoint.id)

    assert batches == 7
    assert one("SELECT count(*) FROM deliveries WHERE resent_from IS NOT NULL") == 1600
    assert one("SELECT count(DISTINCT resent_from) FROM deliveries") == 1600
    assert one("SELECT changed FROM sweeps") == 1600


def test_several_workers_do_everything_once(endpoint: Endpoint) -> None:
    make(endpoint, 3000, "delivered")
    begin(endpoint, "resend", "delivered")

    assert in_threads([lambda: sweep(endpoint.id)] * 4) == [None] * 4

    assert one("SELECT count(*) FROM deliveries WHERE resent_from IS NOT NULL") == 3000
    assert one("SELECT count(DISTINCT resent_from) FROM deliveries") == 3000
    assert one("SELECT changed FROM sweeps") == 3000


def test_a_worker_that_was_stopped_past_its_lease_changes_nothing(endpoint: Endpoint) -> None:
    make(endpoint, 1100, "held")
    begin(endpoint, "release", "held")
    late = mailbox.claim(sweeps.MAIL, {endpoint.id: 1}, 0)
    present = mailbox.claim(sweeps.MAIL, {endpoint.id: 1}, 60)

    sweeps._step(late)
    assert tally(endpoint) == {"held": 1100}
    sweeps._step(present)
    assert tally(endpoint) == {"held": 600, "pending": 500}
    sweeps._step(late)
    assert tally(endpoint) == {"held": 600, "pending": 500}


def test_a_worker_whose_turn_is_over_gives_the_sweep_back_and_rings(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(endpoint, 1100, "held")
    begin(endpoint, "release", "held")
    monkeypatch.setattr(serving, "SLICE_SECONDS", -1)
    bells.flush(20)
    bells.flags().flushdb()

    sweeps.work(endpoint.id)

    assert tally(endpoint) == {"held": 600, "pending": 500}
    bells.flush(20)
    assert bells.flags().llen("dramatiq:sweeps") == 1
    sweeps.work(endpoint.id)
    assert tally(endpoint) == {"held": 100, "pending": 1000}


def test_each_batch_rings_for_what_it_sends(endpoint: Endpoint) -> None:
    make(endpoint, 1, "held")
    begin(endpoint, "release", "held")
    bells.flush(20)
    bells.flags().flushdb()

    sweep(endpoint.id)

    bells.flush(20)
    assert bells.flags().llen("dramatiq:deliveries") == 1


def test_the_sweeps_of_an_endpoint_are_done_in_order(endpoint: Endpoint) -> None:
    make(endpoint, 600, "held")
    begin(endpoint, "release", "held")
    set_state(endpoint, "stopped")
    begin(endpoint, "hold", "pending")
    set_state(endpoint, "active")
    begin(endpoint, "release", "held")

    in_threads([lambda: sweep(endpoint.id)] * 2)

    assert tally(endpoint) == {"pending": 600}
    assert all_of("SELECT changed FROM sweeps ORDER BY id") == [600, 0, 0]


# What changes meanwhile


def test_a_delivery_that_somebody_else_is_changing_is_waited_for_and_not_left_out(endpoint: Endpoint) -> None:
    made = make(endpoint, 700, "pending")
    set_state(endpoint, "stopped")
    begin(endpoint, "hold", "pending")

    with locked(made[100], made[300]):
        sweeps.work(endpoint.id)
        assert tally(endpoint) == {"held": 100, "pending": 600}
        assert one("SELECT position FROM sweeps") == made[99]
    sweep(endpoint.id)

    assert tally(endpoint) == {"held": 700}
    assert one("SELECT changed FROM sweeps") == 700


def test_a_delivery_that_ended_between_the_look_and_the_lock_is_left_as_it_is(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = make(endpoint, 20, "pending")
    set_state(endpoint, "stopped")
    begin(endpoint, "hold", "pending")
    real = sweeps._look

    def look_and_be_late(walking: Sweep) -> list[tuple[str, bool]]:
        looked_at = real(walking)
        ended = "UPDATE deliveries SET status = 'delivered', due_at = NULL WHERE id = %s"
        in_threads([lambda: database.rows(ended, (made[10],))])
        return looked_at

    monkeypatch.setattr(sweeps, "_look", look_and_be_late)

    sweep(endpoint.id)

    assert tally(endpoint) == {"held": 19, "delivered": 1}
    assert one("SELECT changed FROM sweeps") == 19


def test_no_lock_is_waited_for_so_that_recording_never_deadlocks(endpoint: Endpoint) -> None:
    made = make(endpoint, 20, "pending")
    set_state(endpoint, "stopped")
    begin(endpoint, "hold", "pending")

    def work() -> None:
        database.rows("SET lock_timeout = '1ms'")
        sweeps.work(endpoint.id)

    with locked(made[10]):
        assert in_threads([work]) == [None]

    assert tally(endpoint) == {"held": 10, "pending": 10}


def test_a_release_ends_early_when_the_endpoint_stops_again(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(endpoint, 1600, "held")
    sweep_id = begin(endpoint, "release", "held")
    monkeypatch.setattr(serving, "SLICE_SECONDS", -1)
    sweeps.work(endpoint.id)
    set_state(endpoint, "stopped")
    begin(endpoint, "hold", "pending")

    sweep(endpoint.id)

    assert tally(endpoint) == {"held": 1600}
    ended = Sweep.get_by_id(sweep_id)
    assert (ended.changed, ended.finished_at is not None) == (500, True)


@pytest.mark.parametrize("state", ["stopped", "deleted"])
def test_a_resend_ends_early_when_the_endpoint_is_not_active_any_more(endpoint: Endpoint, state: str) -> None:
    make(endpoint, 2, "failed")
    set_state(endpoint, state)

    assert swept(endpoint, "resend", "failed").changed == 0
    assert tally(endpoint) == {"failed": 2}


def test_a_hold_ends_early_when_the_endpoint_was_enabled_again(endpoint: Endpoint) -> None:
    make(endpoint, 2, "pending")

    assert swept(endpoint, "hold", "pending").changed == 0
    assert tally(endpoint) == {"pending": 2}


@contextmanager
def alongside(*works: Callable[[], Any]) -> Iterator[list[BaseException]]:
    """These again and again, each in a thread of its own, until the block ends; what they raised."""
    stopping, raised = threading.Event(), list[BaseException]()

    def run(work: Callable[[], Any]) -> None:
        try:
            while not stopping.is_set():
                work()
        except BaseException as error:
            raised.append(error)
        finally:
            database.database.close()

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    try:
        yield raised
    finally:
        stopping.set()
        for thread in threads:
            thread.join(60)


@pytest.fixture
def long_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    """No delivery is taken again only because the machine is busy."""
    monkeypatch.setattr(lanes, "RECORDING_SECONDS", 60)


def test_two_workers_beside_senders_and_new_deliveries_send_each_once(endpoint: Endpoint, long_lease: None) -> None:
    failed = make(endpoint, 1000, "failed", attempts=6, tries=6)
    held = make(endpoint, 1000, "held")
    make(endpoint, 200, "pending")
    sent: Counter[str] = Counter()
    guard = threading.Lock()

    def send() -> None:
        batch = attempts.claim(lanes.FAST, {endpoint.id: 32})
        with guard:
            sent.update(dispatch.claimed.id for dispatch in batch)
        # Not in the order of their identifiers, as answers come.
        record_all([Outcome(dispatch, clock.now(), OK) for dispatch in reversed(batch)])

    def happen() -> None:
        make(endpoint, 20, "pending")

    with alongside(send, send, happen, lambda: sweeps.work(endpoint.id), lambda: sweeps.work(endpoint.id)) as raised:
        sweep_id = begin(endpoint, "resend", "failed", "held")
        until(lambda: Sweep.get_by_id(sweep_id).finished_at, seconds=60)
    while one("SELECT count(*) FROM deliveries WHERE due_at IS NOT NULL"):
        send()

    assert raised == []
    assert Sweep.get_by_id(sweep_id).changed == 2000
    assert {sent[id] for id in failed + held} == {1}
    assert set(sent.values()) == {1}
    assert set(tally(endpoint)) == {"delivered"}
    assert all_of("SELECT DISTINCT attempts FROM deliveries WHERE id = ANY(%s)", failed) == [7]


def test_an_endpoint_that_fails_and_stops_while_senders_record_loses_nothing(
    endpoint: Endpoint, long_lease: None, without_probing: None
) -> None:
    make(endpoint, 1500, "held")

    def send() -> None:
        batch = attempts.claim(lanes.FAST, {endpoint.id: 16})
        record_all([Outcome(dispatch, clock.now(), BROKEN) for dispatch in reversed(batch)])

    def mend() -> None:
        sweeps.begin_missing([endpoint.id])
        sweeps.work(endpoint.id)

    begin(endpoint, "release", "held")
    with alongside(send, send, send, mend, mend) as raised:
        until(lambda: Endpoint.get_by_id(endpoint.id).state == "stopped", seconds=60)
        until(lambda: tally(endpoint) == {"held": 1500}, seconds=60)

    assert raised == []
    assert in_due_order(endpoint) == []
    sweep(endpoint.id)


# What slips through


@pytest.mark.parametrize(("state", "becomes"), [("stopped", "held"), ("deleted", "cancelled"), ("active", "pending")])
def test_mail_of_an_endpoint_that_is_not_served_is_put_aside(endpoint: Endpoint, state: str, becomes: str) -> None:
    make(endpoint, 2, "pending")
    set_state(endpoint, state)

    assert sweeps.begin_missing([endpoint.id]) == (state != "active")
    assert sweeps.begin_missing([endpoint.id]) == 0  # it is under way
    sweep(endpoint.id)

    assert tally(endpoint) == {becomes: 2}


def test_the_scheduler_finds_mail_that_nobody_takes(endpoint: Endpoint) -> None:
    make(endpoint, 2, "pending")
    database.rows("UPDATE deliveries SET due_at = now() - interval '2 seconds'")
    set_state(endpoint, "stopped")

    Timetable().run_due()
    sweep(endpoint.id)

    assert tally(endpoint) == {"held": 2}
    before = one("SELECT count(*) FROM sweeps")
    Timetable().run_due()
    assert one("SELECT count(*) FROM sweeps") == before


# What a batch costs


@pytest.mark.parametrize("statuses", [["failed"], ["delivered"], ["failed", "held", "delivered"]], ids=str)
def test_a_batch_reads_as_much_at_the_end_as_at_the_beginning_and_nothing_of_others(
    endpoint: Endpoint, api: Api, no_autovacuum: None, statuses: list[str]
) -> None:
    made = make(endpoint, 10_000, statuses[0])
    other, _ = make_endpoint(api.workspace_id, "https://other.example/")
    make(Endpoint.get_by_id(other), 10_000, statuses[0])
    made += make(endpoint, 1_000, statuses[0])
    database.rows("VACUUM ANALYZE deliveries")
    begun = blocks_read("deliveries")
    sweep_id = begin(endpoint, "resend", *statuses, kinds=["tag.added"])
    assert blocks_read("deliveries") - begun < 100  # the planner looks at each index of each partition

    def read_from(position: str) -> int:
        walking = Sweep.get_by_id(sweep_id)
        walking.position = position
        before = blocks_read("deliveries")
        assert len(sweeps._look(walking)) == 500
        return blocks_read("deliveries") - before

    at_the_beginning = read_from("")
    assert 0 < at_the_beginning < 100
    assert read_from(made[-501]) < 100
    assert read_from(made[9_700]) < 100  # past the others'


# Kept


def test_a_sweep_is_forgotten_when_history_is_and_not_while_it_runs(endpoint: Endpoint) -> None:
    make(endpoint, 1)
    old, recent = swept(endpoint, "resend", "failed"), swept(endpoint, "resend", "failed")
    running = begin(endpoint, "resend", "failed")
    database.rows("UPDATE sweeps SET created_at = now() - interval '91 days'")
    database.rows("UPDATE sweeps SET finished_at = now() - interval '91 days' WHERE id = %s", (old.id,))

    assert [delete_old("old_sweeps"), delete_old("old_sweeps")] == [1, 0]

    assert all_of("SELECT id FROM sweeps ORDER BY id") == [recent.id, running]


def test_sweeps_are_forgotten_a_batch_at_a_time(endpoint: Endpoint) -> None:
    for _ in range(3):
        swept(endpoint, "resend", "failed")
    database.rows("UPDATE sweeps SET finished_at = now() - interval '91 days'")

    assert [delete_old("old_sweeps", 2) for _ in range(3)] == [2, 1, 0]
