"""The order of writes beside bulk work and what stops it: people come before parts, a stop before everything."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from app import mailbox
from app.database import rows
from app.domain import writes
from app.domain.inbox import selections
from app.domain.inbox.choices import Choice
from app.domain.jobs import jobs
from app.domain.jobs.jobs import MAIL
from app.domain.work.changes import Write
from app.lib import ids
from app.mailbox import serving
from app.models.jobs import Job
from tests.broadcasting import begin
from tests.cast import Api, accept, all_of, apply, in_threads, one
from tests.talks import receive


@pytest.fixture(autouse=True)
def one_batch_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "SLICE_SECONDS", 0.0)
    monkeypatch.setattr(selections, "PART", 1)


@pytest.fixture
def label(api: Api, channel_id: str) -> Callable[..., str]:
    """Accepts a change of all four conversations, or of the ticked ones; returns its job."""
    for number in range(4):
        receive(api.workspace_id, api.contact(external_id=str(number))["id"], channel_id)

    def label(name: str, ticked: list[str] | None = None) -> str:
        action = {"do": "label", "label": name}
        store = partial(selections.store, api.workspace_id, ids.new("sel"), choice=Choice("all"), action=action)
        write = Write(api.workspace_id, "selections.apply", {}, "trace-1", api.workspace_id)
        return writes.accept(write, store=lambda job_id: store(job_id=job_id, ticked=ticked))[0].id

    return label


def upsert(api: Api, name: str) -> Job:
    return accept(api.workspace_id, "contacts.upsert", {"external_id": name})


def status(job: Job | str) -> str:
    return str(one("SELECT status FROM jobs WHERE id = %s", getattr(job, "id", job)))


@pytest.mark.parametrize("parts", range(8))
def test_a_write_is_next_however_many_parts_of_bulk_work_wait(api: Api, label: Callable[..., str], parts: int) -> None:
    bulk = [label(str(number)) for number in range(selections.MOST_UNFINISHED)]
    for _ in range(parts):
        writes.work(api.workspace_id)
    written = [upsert(api, name) for name in ("first", "second")]

    writes.work(api.workspace_id)

    assert [status(each) for each in written] == ["succeeded"] * 2
    assert "succeeded" not in map(status, bulk)
    apply(api.workspace_id)
    assert {status(each) for each in bulk} == {"succeeded"}
    assert {len(labels) for labels in all_of("SELECT labels FROM conversations")} == {5}


def test_a_change_of_ticked_conversations_begins_in_its_place(api: Api, label: Callable[..., str]) -> None:
    ticked = label("seen", all_of("SELECT id FROM conversations"))
    after = upsert(api, "after")

    writes.work(api.workspace_id)
    assert (one("SELECT changed FROM selections"), status(after)) == (1, "queued")
    writes.work(api.workspace_id)

    assert (one("SELECT changed FROM selections"), status(after), status(ticked)) == (1, "succeeded", "running")


def test_so_many_writes_pass_a_part_and_no_more(
    api: Api, label: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "MOST_PASSING", 3)
    monkeypatch.setattr(writes, "BATCH", 1)
    label("seen")
    done = []
    for number in range(8):
        upsert(api, str(number))
        upsert(api, f"also {number}")
        writes.work(api.workspace_id)
        done.append(one("SELECT total IS NOT NULL FROM selections"))

    assert done.index(True) in range(1, 4)


@pytest.mark.parametrize("kind", ["broadcasts.pause", "broadcasts.abort"])
def test_a_stop_comes_before_all_that_waits(api: Api, kind: str) -> None:
    broadcast_id = begin(api.workspace_id)
    waiting = [upsert(api, str(number)) for number in range(3)]
    stop = accept(api.workspace_id, kind, {}, broadcast_id)

    [first, *_] = mailbox.claim(MAIL, {api.workspace_id: 10}, 5)

    assert first.id == stop.id
    assert {status(each) for each in waiting} == {"running"}


def test_a_stop_keeps_its_place_behind_a_write_about_the_same(api: Api) -> None:
    broadcast_id = ids.new("bct")
    payload = {"name": "Sale", "filter": {"field": "contact.email", "is": "exists"}, "message": {"text": "Hello"}}
    accept(api.workspace_id, "broadcasts.create", payload, broadcast_id)
    accept(api.workspace_id, "broadcasts.pause", {}, broadcast_id)
    accept(api.workspace_id, "broadcasts.continue", {}, broadcast_id)
    accept(api.workspace_id, "broadcasts.abort", {}, broadcast_id)

    apply(api.workspace_id)

    assert all_of("SELECT status FROM jobs") == ["succeeded"] * 4
    assert one("SELECT state FROM broadcasts") == "aborted"


def test_the_order_of_stops_stays(api: Api) -> None:
    broadcast_ids = [begin(api.workspace_id, name=str(number)) for number in range(3)]
    upsert(api, "before")
    for each in broadcast_ids:
        accept(api.workspace_id, "broadcasts.pause", {}, each)
        accept(api.workspace_id, "broadcasts.abort", {}, each)

    found = mailbox.claim(MAIL, {api.workspace_id: 10}, 5)

    targets = dict(rows("SELECT id, resource_id FROM jobs"))
    assert [targets[each.id] for each in found[:3]] == broadcast_ids
    assert [targets[each.id] for each in found[4:]] == broadcast_ids


def test_what_a_dead_worker_leased_holds_up_nothing_before_it(api: Api, label: Callable[..., str]) -> None:
    bulk = label("seen")
    [dead] = mailbox.claim(MAIL, {api.workspace_id: 1}, 60)
    before = upsert(api, "before")

    apply(api.workspace_id)

    assert (dead.id, status(bulk), status(before)) == (bulk, "running", "succeeded")


def test_what_waits_behind_a_leased_write_is_claimed_by_nobody(api: Api) -> None:
    first = upsert(api, "first")
    mailbox.claim(MAIL, {api.workspace_id: 1}, 60)
    upsert(api, "second")
    broadcast_id = ids.new("bct")

    stop = accept(api.workspace_id, "broadcasts.abort", {}, broadcast_id)

    assert [each.id for each in mailbox.claim(MAIL, {api.workspace_id: 10}, 60)] == [stop.id]
    assert mailbox.claim(MAIL, {api.workspace_id: 10}, 60) == []
    assert status(first) == "running"


def test_several_workers_apply_each_write_once_beside_bulk_work(api: Api, label: Callable[..., str]) -> None:
    bulk = [label(str(number)) for number in range(5)]
    for number in range(60):
        accept(api.workspace_id, "contacts.upsert", {"external_id": "one", "first_name": str(number)})

    in_threads([lambda: apply(api.workspace_id)] * 3)
    apply(api.workspace_id)

    told = "SELECT convert_from(body, 'UTF8')::jsonb #>> '{data,contact,first_name}' FROM events"
    names = all_of(f"{told} WHERE kind IN ('contact.created', 'contact.updated') ORDER BY id")
    assert [name for name in names if name is not None] == [str(number) for number in range(60)]
    assert {status(each) for each in bulk} == {"succeeded"}
    assert all_of("SELECT DISTINCT changed FROM selections") == [4]


@pytest.mark.parametrize(
    ("what", "ends_as"),
    [("write_down", (None, 0)), ("_save", (4, 1))],
    ids=["it is written down", "a part is under way"],
)
def test_a_change_is_stopped_while(
    api: Api, label: Callable[..., str], monkeypatch: pytest.MonkeyPatch, what: str, ends_as: tuple[Any, int]
) -> None:
    job_id = label("seen")
    owner: Any = Choice if what == "write_down" else selections
    real = getattr(owner, what)

    def stopped_meanwhile(*arguments: Any) -> Any:
        in_threads([lambda: selections.stop(selections.of_job(job_id))])
        return real(*arguments)

    monkeypatch.setattr(owner, what, stopped_meanwhile)
    apply(api.workspace_id)

    assert rows("SELECT total, changed FROM selections") == [ends_as]
    assert (status(job_id), one("SELECT count(*) FROM selection_parts")) == ("succeeded", 0)
    assert not selections.stop(selections.of_job(job_id))


def test_a_stopped_change_makes_room_for_another_at_once(api: Api, label: Callable[..., str]) -> None:
    begun = [label(str(number)) for number in range(selections.MOST_UNFINISHED)]

    selections.stop(selections.of_job(begun[0]))

    assert label("one more")
