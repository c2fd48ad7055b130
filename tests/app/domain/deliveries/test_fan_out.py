"""Fan-out: few deliveries are made with their event, many afterwards in parts, each exactly once."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import peewee
import pytest

from app import bells
from app.database import rows
from app.domain import writes
from app.domain.deliveries import fan_out
from app.domain.triggers import fan_out_parts
from app.lib import ids, json
from app.mailbox import serving
from tests.cast import Api, accept, all_of, apply, in_threads, one


@pytest.fixture
def workspace_id(api: Api) -> str:
    return api.workspace_id


def make_endpoints(workspace_id: str, number: int, kinds: str = "{*}") -> list[str]:
    made = sorted(ids.new("whe") for _ in range(number))
    rows(
        "INSERT INTO endpoints (id, workspace_id, address, events, secret)"
        " SELECT id, %s, 'https://shop.example/', %s::text[], 'x' FROM unnest(%s::text[]) AS new(id)",
        (workspace_id, kinds, made),
    )
    return made


def happen(workspace_id: str, number: int = 1, **fields: Any) -> None:
    """Creates contacts: the events are recorded, and nothing more than follows in their transaction."""
    for _ in range(number):
        accept(workspace_id, "contacts.upsert", {"external_id": ids.new("con"), **fields})
    writes.work(workspace_id)


def mail() -> int:
    return int(one("SELECT count(*) FROM events WHERE due_at IS NOT NULL"))


def deliveries() -> int:
    return int(one("SELECT count(*) FROM deliveries"))


def assert_each_event_went_to_each_endpoint(workspace_id: str) -> None:
    expected = one(
        "SELECT count(*) FROM events, endpoints WHERE events.workspace_id = %s AND endpoints.workspace_id = %s",
        *(workspace_id, workspace_id),
    )
    assert deliveries() == expected
    assert one("SELECT count(DISTINCT (event_id, endpoint_id)) FROM deliveries") == expected
    assert mail() == 0


def test_few_deliveries_are_made_in_the_transaction_of_their_event(workspace_id: str) -> None:
    make_endpoints(workspace_id, 3)

    happen(workspace_id, 2)

    assert mail() == 0
    assert_each_event_went_to_each_endpoint(workspace_id)


def test_events_with_many_deliveries_are_recorded_first_and_rung_for(
    workspace_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fan_out, "PART", 10)
    make_endpoints(workspace_id, 6)
    bells.flush(20)
    bells.flags().flushdb()

    happen(workspace_id, 2)

    assert (mail(), deliveries()) == (2, 0)
    bells.flush(20)
    assert bells.flags().llen("dramatiq:fan-outs") == 1


@pytest.mark.parametrize("part", [1, 7, 10, 24, 25])
def test_parts_make_each_delivery_once(workspace_id: str, monkeypatch: pytest.MonkeyPatch, part: int) -> None:
    monkeypatch.setattr(fan_out, "PART", part)
    make_endpoints(workspace_id, 13)
    make_endpoints(workspace_id, 2, "{contact.deleted}")
    happen(workspace_id, 3)

    apply(workspace_id)

    assert deliveries() == 3 * 13
    assert one("SELECT count(DISTINCT (event_id, endpoint_id)) FROM deliveries") == 3 * 13
    assert mail() == 0


def test_no_transaction_makes_more_than_a_part(workspace_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fan_out, "PART", 20)
    make_endpoints(workspace_id, 15)
    happen(workspace_id, 10)
    sizes: list[int] = []
    real = fan_out.make
    monkeypatch.setattr(fan_out, "make", lambda owner, wanted: (sizes.append(len(wanted)), real(owner, wanted)))

    apply(workspace_id)

    assert max(sizes) == 20
    assert_each_event_went_to_each_endpoint(workspace_id)


def test_a_worker_that_dies_in_a_part_makes_nothing_twice(workspace_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fan_out, "PART", 10)
    make_endpoints(workspace_id, 15)
    happen(workspace_id, 4)
    real, parts = fan_out_parts._save, iter(range(1000))

    def die_now_and_then(*arguments: Any) -> None:
        if next(parts) % 2:
            raise peewee.OperationalError("killed")  # before the commit: the transaction never happened
        real(*arguments)

    monkeypatch.setattr(fan_out_parts, "_save", die_now_and_then)
    while mail():
        with suppress(peewee.OperationalError):
            fan_out_parts.work(workspace_id)

    assert_each_event_went_to_each_endpoint(workspace_id)


def test_several_workers_make_each_delivery_once(workspace_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fan_out, "PART", 10)
    make_endpoints(workspace_id, 25)
    happen(workspace_id, 20)

    assert in_threads([lambda: apply(workspace_id)] * 4) == [None] * 4

    assert_each_event_went_to_each_endpoint(workspace_id)


def test_a_worker_whose_lease_another_has_taken_makes_nothing(
    workspace_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fan_out, "PART", 1)
    make_endpoints(workspace_id, 2)
    happen(workspace_id)
    late = serving.claim_exclusive(fan_out.MAIL, {workspace_id: 10}, 0)[1]
    present = serving.claim_exclusive(fan_out.MAIL, {workspace_id: 10}, 60)[1]

    fan_out_parts._make_part(late)
    assert deliveries() == 0
    fan_out_parts._make_part(present)
    assert deliveries() == 1


def test_an_endpoint_made_after_an_event_does_not_get_it(workspace_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fan_out, "PART", 1)
    before = make_endpoints(workspace_id, 2)
    happen(workspace_id)
    make_endpoints(workspace_id, 1)

    apply(workspace_id)

    assert sorted(all_of("SELECT endpoint_id FROM deliveries")) == before


def test_an_endpoint_made_in_the_transaction_of_an_event_gets_it_only_if_it_was_there_first(
    workspace_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fan_out, "PART", 1)
    make_endpoints(workspace_id, 2)
    made = ids.new("whe")
    accept(workspace_id, "contacts.upsert", {"external_id": "before"})
    endpoint = {"address": "https://shop.example/", "events": ["*"], "sealed_secret": "x"}
    accept(workspace_id, "endpoints.create", endpoint, made)
    accept(workspace_id, "contacts.upsert", {"external_id": "after"})

    apply(workspace_id)

    got = "SELECT convert_from(body, 'UTF8')::jsonb #>> '{data,contact,external_id}' FROM deliveries"
    assert all_of(f"{got} JOIN events ON events.id = event_id WHERE endpoint_id = %s", made) == ["after"]


def test_what_follows_for_an_endpoint_that_was_stopped_meanwhile_is_held(
    workspace_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fan_out, "PART", 1)
    stopped, deleted, _ = make_endpoints(workspace_id, 3)
    happen(workspace_id)
    rows("UPDATE endpoints SET state = 'stopped' WHERE id = %s", (stopped,))
    rows("UPDATE endpoints SET state = 'deleted' WHERE id = %s", (deleted,))

    apply(workspace_id)

    assert sorted(all_of("SELECT status FROM deliveries")) == ["held", "pending"]
    assert one("SELECT endpoint_id FROM deliveries WHERE status = 'held'") == stopped


def test_an_event_for_one_endpoint_alone_goes_out_at_once(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fan_out, "PART", 1)
    endpoint_id, _ = make_endpoints(api.workspace_id, 2)
    accept(api.workspace_id, "contacts.upsert", {"external_id": "many"})
    testing = api.post(f"webhooks/endpoints/{endpoint_id}/test", {"kind": "contact.created"})

    writes.work(api.workspace_id)

    assert api.job(testing)["status"] == "succeeded"
    assert all_of("SELECT endpoint_id FROM deliveries") == [endpoint_id]


def test_an_import_of_many_tags_for_many_endpoints_succeeds(api: Api) -> None:
    make_endpoints(api.workspace_id, 20)
    lines = [{"external_id": f"c-{each}", "tags": [f"tag-{tag}" for tag in range(100)]} for each in range(10)]
    body = b"\n".join(json.dumps(line) for line in lines)

    importing = api.post("contacts/import", data=body, content_type="application/x-ndjson")
    writes.work(api.workspace_id)

    assert api.job(importing)["status"] == "succeeded"
    assert (mail(), deliveries()) == (10 * 101, 0)
    apply(api.workspace_id)
    assert_each_event_went_to_each_endpoint(api.workspace_id)
