"""Choices of replays: what a filter selects, and what a preview says of it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from app import database
from app.domain.deliveries import replay_choices, replays
from app.domain.jobs import parts
from app.errors import Conflict
from app.lib import clock, ids
from app.models.endpoints import Endpoint
from app.models.jobs import Job
from tests.cast import Api, accept, apply, in_threads, one
from tests.replaying import another, outcomes, pending, progress, replayed
from tests.sending import make, set_state


@pytest.fixture
def endpoint(api: Api) -> Endpoint:
    return another(api)


def test_failed_and_held_deliveries_of_all_endpoints_are_sent_by_default_oldest_first(
    api: Api, endpoint: Endpoint
) -> None:
    failed = make(endpoint, 3)
    held = make(another(api), 2, "held")
    for status in ("delivered", "pending", "cancelled"):
        make(endpoint, 2, status)
    database.rows("UPDATE deliveries SET due_at = NULL")

    done = replayed(api.workspace_id, kinds=["contact.created"])

    assert progress(done) == ("done", 5, 5, 0)
    assert pending() == [*failed, *held]
    assert outcomes(done.id) == dict.fromkeys([*failed, *held])
    assert done.finished_at is not None
    assert one("SELECT count(*) FROM replay_parts") == 0


@pytest.mark.parametrize(
    ("chosen", "found"),
    [
        ({"endpoint_ids": ["{first}"]}, "abcd"),
        ({"endpoint_ids": ["{second}"]}, "e"),
        ({"endpoint_ids": ["{first}", "{second}"], "kinds": ["contact.created"]}, "abde"),
        ({"endpoint_ids": ["whe_none"]}, ""),
        ({"except_endpoint_ids": ["{first}"]}, "e"),
        ({"except_endpoint_ids": ["{second}"], "statuses": ["held"]}, "b"),
        ({"except_endpoint_ids": ["{first}", "{second}"]}, ""),
        ({"statuses": ["held"]}, "b"),
        ({"statuses": ["failed"]}, "acde"),
        ({"kinds": ["tag.added"]}, "c"),
        ({"error_codes": ["timeout"]}, "ad"),
        ({"error_codes": ["timeout"], "kinds": ["tag.added"]}, ""),
        ({"error_codes": ["status", "timeout"]}, "acd"),
        ({"status_codes": [503]}, "c"),
        ({"since": "2026-02-01T00:00:00+00:00"}, "abce"),
        ({"until": "2026-02-01T00:00:00+00:00"}, "d"),
        ({"since": "2026-01-01T00:00:00+00:00", "until": "2026-01-01T00:00:00.000001+00:00"}, "d"),
        ({"until": "2026-01-01T00:00:00+00:00"}, ""),
    ],
    ids=str,
)
def test_a_filter_chooses_what_matches_all_of_it(
    api: Api, endpoint: Endpoint, chosen: dict[str, Any], found: str
) -> None:
    second, old = another(api), clock.now().replace(2026, 1, 1, 0, 0, 0, 0)
    made = {
        "a": make(endpoint, 1, last_error_code="timeout"),
        "b": make(endpoint, 1, "held"),
        "c": make(endpoint, 1, kind="tag.added", last_error_code="status", last_status=503),
        "d": make(endpoint, 1, last_error_code="timeout", created_at=old),
        "e": make(second, 1),
    }
    database.rows("UPDATE deliveries SET id = %s WHERE id = %s", (early := ids.bound("dlv", old), made["d"][0]))
    made["d"] = [early]
    names = {"first": endpoint.id, "second": second.id}
    chosen = {
        name: [each.format(**names) if isinstance(each, str) else each for each in values]
        if isinstance(values, list)
        else values
        for name, values in chosen.items()
    }

    preview = replays.preview(api.workspace_id, chosen)
    done = replayed(api.workspace_id, **chosen)

    assert outcomes(done.id).keys() == {made[letter][0] for letter in found}
    assert preview["count"] == done.count == len(found)
    assert [each["id"] for each in preview["sample"]] == sorted(made[letter][0] for letter in found)


def test_nothing_of_another_workspace_is_chosen(api: Api, others: Api, endpoint: Endpoint) -> None:
    make(endpoint, 1)

    assert progress(replayed(others.workspace_id, endpoint_ids=[endpoint.id])) == ("done", 0, 0, 0)
    assert replays.preview(others.workspace_id, {"statuses": ["failed"]})["count"] == 0
    assert pending() == []


def test_a_preview_says_what_is_left_out_and_why_and_a_replay_is_about_what_it_counts(
    api: Api, endpoint: Endpoint
) -> None:
    stopped, deleted = another(api), another(api)
    good = make(endpoint, 12)
    make(endpoint, 2, body=False)
    make(endpoint, 3, "pending")
    make(endpoint, 4, "held", leased_until=clock.now() + timedelta(minutes=1))
    make(stopped, 5, "held")
    make(deleted, 6)
    set_state(stopped, "stopped")
    set_state(deleted, "deleted")
    Endpoint.delete().where(Endpoint.id == deleted.id).execute()
    chosen = {"statuses": ["failed", "held", "pending"]}

    preview = replays.preview(api.workspace_id, chosen)

    assert preview["count"] == 12
    assert preview["left_out"] == {"body_gone": 2, "in_progress": 7, "endpoint_stopped": 5, "endpoint_deleted": 6}
    assert [each["id"] for each in preview["sample"]] == good[:10]
    assert progress(replayed(api.workspace_id, **chosen)) == ("done", 12, 12, 0)


def test_a_preview_counts_what_may_arrive_twice(api: Api, endpoint: Endpoint) -> None:
    for code in ("timeout", "reset", "refused", "status", None):
        make(endpoint, 1, last_error_code=code)
    make(endpoint, 3, "delivered")
    make(endpoint, 1, last_error_code="timeout", body=False)

    found = replays.preview(api.workspace_id, {"statuses": ["failed", "delivered"]})

    assert (found["count"], found["may_arrive_twice"], found["left_out"]) == (8, 5, {"body_gone": 1})


def test_what_would_take_too_long_to_count_is_refused_with_advice(
    api: Api, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(endpoint, 3)
    monkeypatch.setattr(parts, "LONGEST_SECONDS", 0.001)
    slow = replay_choices._CHOSEN.replace("deliveries.claim,", "deliveries.claim, pg_sleep(1),", 1)
    monkeypatch.setattr(replay_choices, "_CHOSEN", slow)

    with pytest.raises(Conflict, match="Narrow the filter"):
        replays.preview(api.workspace_id, {"statuses": ["failed"]})

    job = accept(api.workspace_id, "replays.create", {"filter": {"statuses": ["failed"]}}, ids.new("rpl"))
    apply(api.workspace_id)
    problem = Job.get_by_id(job.id).problem
    assert (problem["status"], "Narrow the filter" in problem["detail"]) == (409, True)
    assert one("SELECT count(*) FROM replays") == 0
    assert one("SHOW statement_timeout") == "30s"


def test_a_workspace_counts_one_preview_at_a_time(api: Api, others: Api, endpoint: Endpoint) -> None:
    make(endpoint, 1)
    chosen = {"statuses": ["failed"]}

    with database.transaction():
        database.rows("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (f"previews:{api.workspace_id}",))
        [ours] = in_threads([lambda: replays.preview(api.workspace_id, chosen)])
        [theirs] = in_threads([lambda: replays.preview(others.workspace_id, chosen)])

    assert isinstance(ours, Conflict)
    assert theirs["count"] == 0
    assert replays.preview(api.workspace_id, chosen)["count"] == 1
