"""Imports: many contacts in one job, each line an upsert of its own."""

from __future__ import annotations

import json
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import peewee
import pytest
from flask import Flask, request
from werkzeug.test import TestResponse

from app.api.parsing import bodies
from app.api.parsing.bodies import spooled_body
from app.database import rows
from app.domain import writes
from app.domain.contacts import contacts
from app.domain.lifecycle import import_lines, imports
from app.domain.retention import delete_old
from app.domain.writes import MOST_DEATHS
from app.mailbox import serving
from tests.cast import KEY, Api, all_of, event_bodies, event_kinds, in_threads, one, out_of_room, row_counts, working


def send(api: Api, *lines: dict[str, Any] | bytes, **options: Any) -> TestResponse:
    text = b"\n".join(line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines)
    return api.post("contacts/import", data=text, **{"content_type": "application/x-ndjson"} | options)


def customers(number: int) -> list[dict[str, Any]]:
    return [{"external_id": f"c-{each}", "email": f"c-{each}@example.com"} for each in range(number)]


def errors(api: Api, job: dict[str, Any]) -> list[dict[str, Any]]:
    return list(api.get(f"imports/{job['resource']['id']}/errors?limit=100").json["data"])


def one_step_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "SLICE_SECONDS", -1)


def test_an_import_is_accepted_as_one_job_with_its_progress(api: Api) -> None:
    answer = send(api, *customers(3))

    assert answer.status_code == 202
    job = answer.json["data"]
    assert (job["kind"], job["status"], job["resource"]["type"]) == ("contacts.import", "queued", "import")
    assert job["resource"]["url"].endswith(f"/imports/{job['resource']['id']}")
    assert job["progress"] == {"total": 3, "done": 0, "failed": 0}
    assert one("SELECT payload::text FROM jobs") == "{}"


def test_each_line_takes_effect_as_an_upsert(api: Api) -> None:
    known = api.contact(email="ada@example.com", tags=["old"])

    job = api.done(
        send(api, {"email": "ADA@example.com", "tags": ["new"], "first_name": "Ada"}, {"phone": "+4930123456"})
    )

    assert job["status"] == "succeeded"
    assert job["progress"] == {"total": 2, "done": 2, "failed": 0}
    changed = api.show_contact(known["id"])
    assert (changed["first_name"], changed["tags"]) == ("Ada", ["new", "old"])
    assert all_of("SELECT phone FROM contacts WHERE phone IS NOT NULL") == ["+4930123456"]


def test_lines_make_the_same_events_as_single_upserts(api: Api, others: Api) -> None:
    fields = [{"email": "ada@example.com", "tags": ["b", "a"]}, {"email": "ada@example.com", "last_name": "Lovelace"}]
    for each in fields:
        others.contact(**each)

    api.done(send(api, *fields))

    assert event_kinds(api.workspace_id) == event_kinds(others.workspace_id)
    assert event_kinds(api.workspace_id) == ["contact.created", "tag.added", "tag.added", "contact.updated"]


def test_a_bad_line_is_reported_with_its_number_and_the_good_ones_take_effect(api: Api) -> None:
    lines = [
        {"external_id": "c-1"},
        {"email": "nobody", "colour": 1},
        b"{",
        b"[]",
        {"first_name": "Ada"},
        {"external_id": "c-2"},
    ]

    answer = send(api, *lines)
    assert answer.json["data"]["progress"] == {"total": 6, "done": 0, "failed": 4}
    job = api.done(answer)

    assert (job["status"], job["progress"]) == ("succeeded", {"total": 6, "done": 2, "failed": 4})
    told = errors(api, job)
    assert [error["line"] for error in told] == [2, 3, 4, 5]
    assert [error["problem"]["type"].rpartition("/")[2] for error in told] == [
        "validation-failed",
        "malformed-request",
        "validation-failed",
        "validation-failed",
    ]
    pointers = sorted(fault["pointer"] for fault in told[0]["problem"]["errors"])
    assert pointers == ["/colour", "/email"]
    assert all(error["problem"]["detail"] for error in told)
    assert all_of("SELECT external_id FROM contacts ORDER BY external_id") == ["c-1", "c-2"]


def test_a_line_that_conflicts_fails_alone_and_names_the_other_contact(api: Api) -> None:
    holder = api.contact(external_id="c-0", email="ada@example.com")

    job = api.done(
        send(api, {"external_id": "c-1"}, {"external_id": "c-2", "email": "ada@example.com"}, {"phone": "+4930123456"})
    )

    [error] = errors(api, job)
    assert (error["line"], error["problem"]["status"]) == (2, 409)
    assert error["problem"]["conflicting_field"] == "external_id"
    assert error["problem"]["conflicting_contact_id"] == holder["id"]
    assert job["progress"] == {"total": 3, "done": 2, "failed": 1}
    assert event_kinds(api.workspace_id) == ["contact.created"] * 3


def test_lines_link_the_identifiers_of_one_contact(api: Api) -> None:
    lines = [
        {"email": "ada@example.com", "tags": ["newsletter"]},
        {"external_id": "c-1", "email": "ADA@example.com", "phone": ""},
        {"external_id": "c-1", "phone": "+4930123456"},
        {"external_id": "", "email": "", "phone": "+4930123456", "tags": ["shop"]},
    ]

    job = api.done(send(api, *lines))

    assert job["progress"] == {"total": 4, "done": 4, "failed": 0}
    [contact] = api.get("contacts").json["data"]
    assert [contact[name] for name in ("external_id", "email", "phone")] == ["c-1", "ADA@example.com", "+4930123456"]
    assert contact["tags"] == ["newsletter", "shop"]


def test_an_import_of_bad_lines_alone_ends_with_their_errors(api: Api) -> None:
    job = api.done(send(api, b"{}", b"nothing"))

    assert (job["status"], job["progress"]) == ("succeeded", {"total": 2, "done": 0, "failed": 2})
    assert [error["line"] for error in errors(api, job)] == [1, 2]


def test_empty_lines_count_and_do_nothing(api: Api) -> None:
    job = api.done(send(api, b"", {"external_id": "c-1"}, b"  \r", b"{", b""))

    assert job["progress"] == {"total": 2, "done": 1, "failed": 1}
    assert [error["line"] for error in errors(api, job)] == [4]


def test_lines_may_begin_with_a_byte_order_mark(api: Api) -> None:
    job = send(api, b'\xef\xbb\xbf{"email": "ann@example.com"}\r\n{"email": "bo@example.com"}\r\n').json["data"]
    api.apply()

    assert api.get(f"jobs/{job['id']}").json["data"]["progress"] == {"total": 2, "done": 2, "failed": 0}


def test_lines_may_end_with_a_carriage_return(api: Api) -> None:
    job = api.done(send(api, b'{"external_id": "c-1"}\r', b'{"external_id": "c-2"}\r', b""))

    assert job["progress"] == {"total": 2, "done": 2, "failed": 0}


def test_a_line_that_breaks_unexpectedly_fails_alone_and_shows_nothing(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = contacts.upsert

    def broken(change: Any) -> Any:
        if change.payload["external_id"] == "c-1":
            rows("SELECT 'hunter2'::int")
        return real(change)

    monkeypatch.setattr(contacts, "upsert", broken)

    job = api.done(send(api, *customers(3)))

    [error] = errors(api, job)
    assert (error["line"], error["problem"]["status"]) == (2, 500)
    assert "hunter2" not in str(error)
    assert all_of("SELECT external_id FROM contacts ORDER BY id") == ["c-0", "c-2"]


# What is refused as a whole


@pytest.mark.parametrize(
    ("options", "status"),
    [
        ({"data": b""}, 422),
        ({"data": b"\n \n\r\n"}, 422),
        ({"data": b"{}\n" * 10_001}, 422),
        ({"data": b" " * (16 * 1024 * 1024 + 1)}, 413),
        ({"content_type": "application/json"}, 415),
        ({"content_type": None}, 415),
        ({"headers": {"Content-Encoding": "gzip"}}, 415),
        ({"key": "no key"}, 422),
    ],
    ids=["nothing", "blank", "too many", "too large", "JSON", "no type", "compressed", "key"],
)
def test_what_cannot_be_read_as_a_whole_is_refused_and_leaves_no_trace(
    api: Api, options: dict[str, Any], status: int
) -> None:
    before = row_counts()

    answer = api.post(
        "contacts/import", **{"data": b'{"external_id": "c-1"}', "content_type": "application/jsonl"} | options
    )

    assert (answer.status_code, answer.mimetype) == (status, "application/problem+json")
    assert row_counts() == before


def test_an_import_of_10_000_lines_is_not_too_many(api: Api) -> None:
    answer = send(api, *[b"{}"] * 10_000)

    assert (answer.status_code, answer.json["data"]["progress"]["total"]) == (202, 10_000)


def test_the_body_may_be_larger_than_that_of_other_writes_but_no_line(api: Api) -> None:
    filler = {"custom_fields": {str(number): "x" * 4096 for number in range(60)}}

    answer = send(
        api, *({"external_id": f"c-{each}"} | filler for each in range(4)), b'{"first_name": "' + b"x" * 300_000 + b'"}'
    )

    job = api.done(answer)
    assert job["progress"] == {"total": 5, "done": 4, "failed": 1}
    assert [(error["line"], error["problem"]["status"]) for error in errors(api, job)] == [(5, 413)]


# No room


def is_unavailable(answer: TestResponse) -> bool:
    return (answer.status_code, answer.get_json(force=True)["type"], int(answer.headers["Retry-After"]) > 0) == (
        503,
        "https://bellhop.test/problems/unavailable",
        True,
    )


def test_an_import_that_the_database_has_no_room_for_can_be_sent_again(api: Api) -> None:
    before = row_counts()

    with out_of_room("import_lines"):
        refused = send(api, *customers(2), key=KEY)
    assert row_counts() == before
    later = send(api, *customers(2), key=KEY)

    assert is_unavailable(refused)
    assert (later.status_code, later.headers.get("Idempotent-Replayed")) == (202, None)


@pytest.mark.parametrize("buffering", [0, -1], ids=["at once", "in the end"])
def test_a_body_that_this_machine_has_no_room_for_can_be_sent_again(
    api: Api, monkeypatch: pytest.MonkeyPatch, buffering: int
) -> None:
    with Path("/dev/full").open("wb", buffering) as file, monkeypatch.context() as full:
        full.setattr(bodies, "SpooledTemporaryFile", lambda _: file)
        refused = send(api, *customers(2))

    assert is_unavailable(refused)
    assert send(api, *customers(2)).status_code == 202


def test_an_import_goes_on_when_the_database_has_room_again(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    one_step_at_a_time(monkeypatch)
    importing = send(api, *customers(2 * imports.BATCH))
    writes.work(api.workspace_id)

    with out_of_room("contacts"):
        for _ in range(2 * MOST_DEATHS):
            with pytest.raises(peewee.OperationalError):
                writes.work(api.workspace_id)
    assert (api.job(importing)["status"], api.job(importing)["progress"]["done"]) == ("running", imports.BATCH)
    api.apply()

    assert api.job(importing)["progress"] == {"total": 2 * imports.BATCH, "done": 2 * imports.BATCH, "failed": 0}
    assert event_kinds(api.workspace_id) == ["contact.created"] * 2 * imports.BATCH


# In memory

LARGE = [{"external_id": f"c-{number}", "first_name": "x" * 250} for number in range(1000)]


def test_a_large_import_waits_for_its_turn_and_one_that_does_not_get_it_can_be_sent_again(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_lines, "PATIENCE_SECONDS", 0.05)
    before = row_counts()

    with import_lines._large_file:
        refused = send(api, *LARGE, key=KEY)
        assert row_counts() == before
        small = send(api, *customers(1))
    later = send(api, *LARGE, key=KEY)

    assert (refused.status_code, refused.headers["Retry-After"]) == (503, "5")
    assert refused.get_json(force=True)["type"] == "https://bellhop.test/problems/unavailable"
    assert "imports" in refused.get_json(force=True)["detail"]
    assert (small.status_code, later.status_code) == (202, 202)
    assert "Idempotent-Replayed" not in later.headers


def test_one_large_import_is_in_memory_at_a_time(api: Api, app: Flask, monkeypatch: pytest.MonkeyPatch) -> None:
    real, at_work, seen = import_lines.read, [], []

    def watched(lines: Any) -> Any:
        at_work.append(1)
        seen.append(len(at_work))
        found = real(lines)
        at_work.pop()
        return found

    monkeypatch.setattr(import_lines, "read", watched)
    monkeypatch.setattr(import_lines, "PATIENCE_SECONDS", 60)
    callers = [replace(api, client=app.test_client()) for _ in range(4)]

    answers = in_threads([lambda caller=caller: send(caller, *LARGE) for caller in callers])

    assert [answer.status_code for answer in answers] == [202] * 4
    assert seen == [1] * 4


def test_a_body_takes_no_memory_while_it_comes(app: Flask) -> None:
    with app.test_request_context(method="POST", data=b"x" * import_lines.MOST_BYTES):
        tracemalloc.start()
        with spooled_body(request, import_lines.MOST_BYTES) as body:
            size = body.tell()
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()

    assert size == import_lines.MOST_BYTES
    assert most < size / 8


# As every write


def test_a_replay_gets_the_same_job_and_imports_nothing(api: Api) -> None:
    first = send(api, *customers(2), key=KEY)
    again = send(api, *customers(2), key=KEY)
    other = send(api, *customers(3), key=KEY)

    assert again.json == first.json
    assert again.headers["Idempotent-Replayed"] == "true"
    assert other.status_code == 422
    assert (one("SELECT count(*) FROM imports"), one("SELECT count(*) FROM import_lines")) == (1, 2)


def test_a_caller_who_waits_gets_the_import(api: Api) -> None:
    with working():
        answer = send(api, *customers(120), b"{", wait=30)

    assert answer.status_code == 201
    found = answer.json["data"]
    assert (found["status"], found["total"], found["done"], found["failed"]) == ("finished", 121, 120, 1)
    assert answer.headers["Location"].endswith(f"/imports/{found['id']}")
    assert api.get(f"imports/{found['id']}").json["data"] == found


def test_lines_take_effect_in_their_order_and_in_that_of_other_writes(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    one_step_at_a_time(monkeypatch)
    before = api.post("contacts", {"external_id": "one", "first_name": "before"})
    send(api, *({"external_id": "one", "first_name": str(number)} for number in range(2 * imports.BATCH + 1)))
    after = [api.post("contacts", {"external_id": "one", "first_name": f"after {number}"}) for number in range(3)]

    api.apply()

    told = [body["data"]["contact"]["first_name"] for body in event_bodies(api.workspace_id)]
    assert told == ["before", *map(str, range(2 * imports.BATCH + 1)), "after 0", "after 1", "after 2"]
    assert {api.job(job)["status"] for job in [before, *after]} == {"succeeded"}


def test_an_import_takes_several_transactions_and_what_is_behind_it_waits(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    one_step_at_a_time(monkeypatch)
    importing = send(api, *customers(2 * imports.BATCH + 5))
    behind = api.post("contacts", {"external_id": "behind"})
    seen = []

    for _ in range(4):
        writes.work(api.workspace_id)
        seen.append((api.job(importing)["status"], api.job(importing)["progress"]["done"], api.job(behind)["status"]))

    assert seen == [
        ("running", imports.BATCH, "queued"),
        ("running", 2 * imports.BATCH, "queued"),
        ("succeeded", 2 * imports.BATCH + 5, "queued"),
        ("succeeded", 2 * imports.BATCH + 5, "succeeded"),
    ]


def test_another_workspaces_writes_do_not_wait_for_an_import(
    api: Api, others: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    one_step_at_a_time(monkeypatch)
    importing = send(api, *customers(3 * imports.BATCH))
    writes.work(api.workspace_id)

    theirs = others.contact(external_id="c-1")

    assert theirs["external_id"] == "c-1"
    assert api.job(importing)["status"] == "running"


# Workers that die


def test_after_a_loss_in_the_middle_each_line_takes_effect_once(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    one_step_at_a_time(monkeypatch)
    importing = send(api, *customers(2 * imports.BATCH))
    writes.work(api.workspace_id)
    real, left = contacts._record, iter(range(imports.BATCH // 2))

    def lose(*arguments: Any, **further: Any) -> None:
        if next(left, None) is None:
            raise peewee.OperationalError("server closed the connection unexpectedly")
        real(*arguments, **further)

    with monkeypatch.context() as away:
        away.setattr(contacts, "_record", lose)
        with pytest.raises(peewee.OperationalError):
            writes.work(api.workspace_id)
    assert api.job(importing)["progress"]["done"] == imports.BATCH
    api.apply()

    assert api.job(importing)["progress"]["done"] == 2 * imports.BATCH
    assert one("SELECT count(*) FROM contacts") == 2 * imports.BATCH
    assert event_kinds(api.workspace_id) == ["contact.created"] * 2 * imports.BATCH


def die(times: int) -> None:
    """As if that many workers had died while they worked on what is waiting."""
    rows(
        "UPDATE jobs SET deaths = deaths + %s, leased_until = now() - interval '1 second' WHERE due_at IS NOT NULL",
        (times,),
    )


def test_deaths_at_different_places_do_not_end_an_import(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    one_step_at_a_time(monkeypatch)
    importing = send(api, *customers(4 * imports.BATCH))
    for _ in range(3):
        die(MOST_DEATHS - 1)
        writes.work(api.workspace_id)

    api.apply()

    assert (api.job(importing)["status"], api.job(importing)["progress"]["done"]) == ("succeeded", 4 * imports.BATCH)


def test_an_import_that_ends_worker_after_worker_fails_and_keeps_no_line(api: Api) -> None:
    importing = send(api, *customers(2))
    die(MOST_DEATHS)
    behind = api.post("contacts", {"external_id": "behind"})

    api.apply()

    job = api.job(importing)
    assert (job["status"], job["problem"]["status"], job["progress"]["done"]) == ("failed", 500, 0)
    assert api.get(f"imports/{job['resource']['id']}").json["data"]["status"] == "finished"
    assert one("SELECT count(*) FROM import_lines") == 0
    assert api.job(behind)["status"] == "succeeded"


# What is kept, and for whom


def test_a_line_is_kept_until_it_has_taken_effect(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    one_step_at_a_time(monkeypatch)
    send(api, *customers(imports.BATCH + 1))
    writes.work(api.workspace_id)

    assert all_of("SELECT number FROM import_lines") == [imports.BATCH + 1]


def test_errors_page_in_the_order_of_the_lines(api: Api) -> None:
    job = api.done(send(api, *[b"{}"] * 5))
    path = f"imports/{job['resource']['id']}/errors"

    first = api.get(f"{path}?limit=2").json
    second = api.get(f"{path}?limit=2&cursor={first['meta']['nextCursor']}").json
    third = api.get(f"/api/v1/{path}?limit=2&cursor={second['meta']['nextCursor']}").json

    assert [[error["line"] for error in page["data"]] for page in (first, second, third)] == [[1, 2], [3, 4], [5]]
    assert [page["meta"]["hasMore"] for page in (first, second, third)] == [True, True, False]


def test_a_cursor_of_another_import_is_refused(api: Api) -> None:
    one_of_two, other = (api.done(send(api, *[b"{}"] * 3))["resource"]["id"] for _ in range(2))
    cursor = api.get(f"imports/{one_of_two}/errors?limit=1").json["meta"]["nextCursor"]

    assert api.get(f"imports/{other}/errors?cursor={cursor}").status_code == 422


def test_old_imports_are_forgotten_with_their_errors_and_running_ones_are_not(api: Api) -> None:
    old, waiting = api.done(send(api, b"{}")), send(api, *customers(1)).json["data"]
    recent = api.done(send(api, b"{}"))
    rows("UPDATE imports SET created_at = now() - interval '91 days' WHERE id <> %s", (recent["resource"]["id"],))
    rows("UPDATE imports SET finished_at = NULL WHERE id = %s", (waiting["resource"]["id"],))

    assert delete_old("old_imports") == 1

    assert set(all_of("SELECT id FROM imports")) == {waiting["resource"]["id"], recent["resource"]["id"]}
    assert all_of("SELECT import_id FROM import_errors") == [recent["resource"]["id"]]
    assert "progress" not in api.get(f"jobs/{old['id']}").json["data"]
