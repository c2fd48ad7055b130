"""Many failed and held deliveries are discarded in parts, each that a preview has counted, and no other."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from app.database import now, rows
from app.domain import writes
from app.domain.deliveries import discards, explanations, replay_choices
from app.domain.jobs import parts
from app.errors import Conflict
from app.lib import clock
from app.mailbox import serving
from app.models.deliveries import Delivery
from app.models.endpoints import Endpoint
from app.models.jobs import Job
from tests.app.web.counting import counted_statements
from tests.cast import Api, accept, all_of, apply, elsewhere, one, replay
from tests.replaying import another, outcomes
from tests.replaying import begin as begin_replay
from tests.sending import BROKEN, make, record, set_state, take

ALL = {"statuses": ["failed", "held"]}


@pytest.fixture
def endpoint(api: Api) -> Endpoint:
    return another(api)


def begin(api: Api, as_of: Any = None, /, **chosen: Any) -> Job:
    return accept(api.workspace_id, "deliveries.discard", discards.payload(chosen or ALL, "Known.", as_of))


def discarded(api: Api, as_of: Any = None, /, **chosen: Any) -> Job:
    job = begin(api, as_of, **chosen)
    apply(api.workspace_id)
    return Job.get_by_id(job.id)


def cancelled() -> list[str]:
    return all_of("SELECT id FROM deliveries WHERE status = 'cancelled' ORDER BY id")


@pytest.mark.parametrize("part", [1, 2, 7, 200])
def test_a_cause_is_discarded_in_parts_and_nothing_else(
    api: Api, others: Api, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch, part: int
) -> None:
    monkeypatch.setattr(parts, "PART", part)
    monkeypatch.setattr(parts, "LOOKED_AT", 3)
    failed = make(endpoint, 4, last_error_code="dns")
    make(endpoint, 3, last_error_code="timeout")
    held = make(endpoint, 3, "held", last_error_code="dns")
    for status in ("pending", "delivered"):
        make(endpoint, 2, status, last_error_code="dns")
    make(another(others), 2, last_error_code="dns")
    assert replay_choices.preview(api.workspace_id, {"error_codes": ["dns"]}).discardable == 7

    job = discarded(api, error_codes=["dns"])

    assert (job.status, parts.progress_of(job)) == ("succeeded", parts.Progress(7, 7))
    assert cancelled() == sorted([*failed, *held])
    assert one("SELECT count(*) FROM deliveries WHERE status = 'pending' AND due_at IS NOT NULL") == 2
    assert parts.progress_of(discarded(api, error_codes=["dns"])) == parts.Progress(0, 0)


def test_what_cannot_be_sent_can_be_discarded_and_the_audit_log_has_one_entry(api: Api, endpoint: Endpoint) -> None:
    make(endpoint, 3, body=False)
    stopped, deleted = another(api), another(api)
    make(stopped, 4, "held")
    make(deleted, 2)
    set_state(stopped, "stopped")
    set_state(deleted, "deleted")

    discarded(api, **ALL)

    assert len(cancelled()) == 9
    [(action, detail)] = rows("SELECT action, detail FROM audit_entries WHERE action LIKE 'deliveries.%%'")
    assert (action, detail["reason"], detail["count"]) == ("deliveries.discard", "Known.", 9)


def test_what_fails_after_the_preview_is_left_even_a_retry_of_an_older_delivery(api: Api, endpoint: Endpoint) -> None:
    first = make(endpoint, 2)
    older = make(endpoint, 1, "pending")
    as_of = replay_choices.preview(api.workspace_id, ALL).as_of
    later = make(endpoint, 1)
    record(take(endpoint), BROKEN)
    rows("UPDATE deliveries SET status = 'failed', next_attempt_at = NULL WHERE id = %s", (older[0],))

    discarded(api, as_of, **ALL)

    assert cancelled() == first
    discarded(api, **ALL)
    assert cancelled() == sorted([*first, *older, *later])


def test_what_a_stop_holds_after_the_preview_is_left(api: Api, endpoint: Endpoint) -> None:
    make(endpoint, 2, "held")
    as_of = replay_choices.preview(api.workspace_id, ALL).as_of
    rows("UPDATE endpoints SET state = 'stopped', stopped_at = clock_timestamp() WHERE id = %s", (endpoint.id,))

    discarded(api, as_of, **ALL)

    assert cancelled() == []


def test_an_attempt_under_way_is_left_alone(api: Api, endpoint: Endpoint) -> None:
    [under_way, free] = make(endpoint, 2, "held")
    rows("UPDATE deliveries SET leased_until = now() + interval '1 minute' WHERE id = %s", (under_way,))

    assert replay_choices.preview(api.workspace_id, ALL).discardable == 1
    discarded(api, **ALL)

    assert cancelled() == [free]


def test_a_replay_that_began_before_passes_over_what_is_discarded(api: Api, endpoint: Endpoint) -> None:
    made = make(endpoint, 3)
    replay_id = begin_replay(api.workspace_id, statuses=["failed"])
    discarded(api, **ALL)

    replay(replay_id)

    assert outcomes(replay_id) == dict.fromkeys(made, "discarded")
    assert cancelled() == made


def test_what_somebody_sent_again_meanwhile_is_not_touched(
    api: Api, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "PART", 1)
    made = make(endpoint, 3)
    job = begin(api, **ALL)
    assert api.post(f"webhooks/deliveries/{made[2]}/resend").status_code == 202
    apply(api.workspace_id)

    assert parts.progress_of(Job.get_by_id(job.id)) == parts.Progress(3, 2)
    assert cancelled() == made[:2]


def test_it_does_not_wait_for_a_delivery_that_somebody_else_holds_and_comes_back_to_it(
    api: Api, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "SLICE_SECONDS", 0)
    made = make(endpoint, 4)
    begin(api, **ALL)

    with elsewhere(lambda: rows("SELECT FROM deliveries WHERE id = %s FOR NO KEY UPDATE", (made[2],))):
        for _ in range(5):
            writes.work(api.workspace_id)
        assert cancelled() == made[:2]
    apply(api.workspace_id)

    assert cancelled() == made


def test_a_discarded_delivery_is_not_sent_again_and_says_so(api: Api, endpoint: Endpoint) -> None:
    [delivery_id] = make(endpoint, 1)
    discarded(api, **ALL)
    delivery = Delivery.get_by_id(delivery_id)

    assert "discarded" in explanations.of(delivery, endpoint).happened
    assert "deleted" in explanations.of(delivery, None).happened
    assert api.post(f"webhooks/deliveries/{delivery_id}/resend").status_code == 409
    assert replay_choices.preview(api.workspace_id, ALL).count == 0


def test_a_part_asks_few_questions_however_many_have_failed(api: Api, endpoint: Endpoint) -> None:
    def statements(number: int) -> int:
        make(endpoint, number)
        begin(api, **ALL)
        with counted_statements() as asked:
            apply(api.workspace_id)
        return len(asked)

    assert statements(150) == statements(3)


def test_a_part_reads_failed_and_held_deliveries_in_the_order_of_their_index(api: Api, endpoint: Endpoint) -> None:
    make(endpoint, 20)
    able, values = replay_choices.matching(ALL)
    values |= {"workspace_id": api.workspace_id, "last_id": "dlv_~", "after": "", "most": 5, "looked_at": 5}

    plan = "\n".join(line for (line,) in rows(f"EXPLAIN {discards._FOLLOWING.format(able=able)}", values))

    assert plan.count("Index Cond: ((workspace_id") >= 2
    assert not any(word in plan for word in ("Seq Scan", "deliveries_page")), plan


def test_only_one_is_under_way_in_a_workspace(api: Api, others: Api, endpoint: Endpoint) -> None:
    make(endpoint, 1)
    begin(api, **ALL)

    with pytest.raises(Conflict, match="already"):
        parts.refuse_more(api.workspace_id)
    parts.refuse_more(others.workspace_id)
    apply(api.workspace_id)
    parts.refuse_more(api.workspace_id)


def test_a_time_in_the_future_is_now() -> None:
    assert discards.payload(ALL, "Known.", clock.now() + timedelta(days=1))["as_of"] <= now().isoformat()
