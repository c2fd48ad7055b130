from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from app import database
from app.lib import cursors, ids
from tests.cast import Api, all_of, found
from tests.conftest import Keys
from tests.surface import Operation, Scene, expect, sample_of

TIME = "2026-11-01T10:00:00Z"


def insert_contacts(workspace_id: str, count: int, tag: str = "vip") -> None:
    made = [(ids.new("con"), number) for number in range(count)]
    database.rows(
        "INSERT INTO contacts (id, workspace_id, external_id, tags)"
        " SELECT new.id, %s, new.id, ARRAY[%s] FROM unnest(%s::text[]) AS new(id)",
        (workspace_id, tag, [identifier for identifier, _ in made]),
    )


def pages(api: Api, path: str) -> Iterator[dict[str, Any]]:
    """Each page of a list, by its cursors."""
    mark = "&" if "?" in path else "?"
    answer = api.get(path).json
    yield answer
    while answer["meta"]["hasMore"]:
        answer = api.get(f"{path}{mark}cursor={answer['meta']['nextCursor']}").json
        yield answer


def listed(found: list[dict[str, Any]]) -> list[str]:
    return [row["id"] for page in found for row in page["data"]]


def newest_first() -> list[str]:
    return all_of("SELECT id FROM contacts ORDER BY id DESC")


@pytest.mark.parametrize(("limit", "sizes"), [(3, [3, 3, 1]), (7, [7]), (6, [6, 1]), (1, [1] * 7), (100, [7])])
def test_pages_hold_every_row_once_newest_first(api: Api, limit: int, sizes: list[int]) -> None:
    insert_contacts(api.workspace_id, 7)

    found = list(pages(api, f"contacts?limit={limit}"))

    assert [len(page["data"]) for page in found] == sizes
    assert listed(found) == newest_first()


def test_only_the_last_page_has_no_more(api: Api) -> None:
    insert_contacts(api.workspace_id, 5)

    found = list(pages(api, "contacts?limit=2"))

    assert [page["meta"]["hasMore"] for page in found] == [True, True, False]
    assert [page["meta"]["nextCursor"] is None for page in found] == [False, False, True]


def test_a_list_that_ends_with_its_page_has_no_more(api: Api) -> None:
    insert_contacts(api.workspace_id, 4)

    found = list(pages(api, "contacts?limit=2"))

    assert [page["meta"]["hasMore"] for page in found] == [True, False]


def test_a_page_has_50_rows_unless_asked_otherwise(api: Api) -> None:
    insert_contacts(api.workspace_id, 101)

    assert len(api.get("contacts").json["data"]) == 50
    assert len(api.get("contacts?limit=100").json["data"]) == 100


def test_rows_inserted_meanwhile_move_nothing(api: Api) -> None:
    insert_contacts(api.workspace_id, 9)
    before = newest_first()
    found = []

    for page in pages(api, "contacts?limit=2"):
        found.append(page)
        insert_contacts(api.workspace_id, 3)

    assert listed(found) == before


def test_rows_deleted_meanwhile_make_none_skipped(api: Api) -> None:
    insert_contacts(api.workspace_id, 9)
    before = newest_first()
    first = api.get("contacts?limit=3").json
    database.rows("DELETE FROM contacts WHERE id = ANY(%s)", (before[1:5],))

    second = api.get(f"contacts?limit=3&cursor={first['meta']['nextCursor']}").json

    assert listed([first, second]) == [*before[:3], *before[5:8]]


def test_the_row_of_the_cursor_itself_may_be_gone(api: Api) -> None:
    insert_contacts(api.workspace_id, 4)
    before = newest_first()
    cursor = api.get("contacts?limit=2").json["meta"]["nextCursor"]
    database.rows("DELETE FROM contacts WHERE id = %s", (before[1],))

    assert listed([api.get(f"contacts?cursor={cursor}").json]) == before[2:]


def test_the_limit_may_change_between_pages(api: Api) -> None:
    insert_contacts(api.workspace_id, 6)
    cursor = api.get("contacts?limit=1").json["meta"]["nextCursor"]

    assert listed([api.get(f"contacts?limit=4&cursor={cursor}").json]) == newest_first()[1:5]


def test_a_cursor_serves_both_addresses(api: Api) -> None:
    insert_contacts(api.workspace_id, 4)
    cursor = api.get("contacts?limit=2").json["meta"]["nextCursor"]

    assert api.get(f"/api/v1/contacts?cursor={cursor}").json == api.get(f"contacts?cursor={cursor}").json


def test_a_cursor_serves_every_token_of_the_workspace(api: Api) -> None:
    insert_contacts(api.workspace_id, 4)
    cursor = api.get("contacts?limit=2").json["meta"]["nextCursor"]

    assert api.restricted_to("contacts").get(f"contacts?cursor={cursor}").status_code == 200


def test_a_filtered_list_pages_within_its_filter(api: Api) -> None:
    insert_contacts(api.workspace_id, 3, tag="vip")
    insert_contacts(api.workspace_id, 4, tag="beta")
    insert_contacts(api.workspace_id, 2, tag="vip")

    found = list(pages(api, "contacts?tag=vip&limit=2"))

    assert listed(found) == all_of("SELECT id FROM contacts WHERE 'vip' = ANY(tags) ORDER BY id DESC")
    assert len(found) == 3


@pytest.mark.parametrize("query", ["", "tag=beta", "tag=vip&q=con_", "email=ada@example.com"])
def test_a_cursor_with_other_filters_is_refused(api: Api, query: str) -> None:
    insert_contacts(api.workspace_id, 4)
    cursor = api.get("contacts?tag=vip&limit=2").json["meta"]["nextCursor"]

    assert api.get(f"contacts?{query}&cursor={cursor}").status_code == 422
    assert api.get(f"contacts?tag=vip&cursor={cursor}").status_code == 200


def test_a_cursor_with_a_time_among_its_filters_goes_on(api: Api) -> None:
    insert_contacts(api.workspace_id, 5)

    found = list(pages(api, "contacts?updated_since=2020-01-01T00:00:00Z&limit=2"))

    assert listed(found) == newest_first()


def test_a_cursor_reveals_nothing_of_the_row(api: Api) -> None:
    insert_contacts(api.workspace_id, 3)
    first = api.get("contacts?limit=1").json

    assert first["data"][0]["id"] not in first["meta"]["nextCursor"]


# Lists that are ordered by a time


@dataclass(frozen=True)
class Timed:
    """A list, the column of its times, and what a row of it has beside these."""

    path: str
    prefix: str
    column: str
    fields: dict[str, str]

    def insert(self, workspace_id: str, *offsets: str) -> None:
        """Rows whose times are so far from TIME, as PostgreSQL writes intervals, recorded in that order."""
        columns = ", ".join(["id", "workspace_id", self.column, *self.fields])
        values = ", ".join(["%s", "%s", "%s::timestamptz + %s::interval", *self.fields.values()])
        for offset in offsets:
            row = (ids.new(self.prefix), workspace_id, TIME, offset)
            database.rows(f"INSERT INTO {self.path} ({columns}) VALUES ({values})", row)

    def latest_first(self) -> list[str]:
        return all_of(f"SELECT id FROM {self.path} ORDER BY {self.column} DESC, id DESC")

    def since(self, time: str = TIME) -> str:
        return f"{self.path}?{self.column.removesuffix('_at')}_since={time}"


TIMED = [
    Timed("sales", "sal", "occurred_at", {"amount": "1", "currency": "'EUR'"}),
    Timed("bookings", "bkg", "starts_at", {"contact_id": "'con_1'", "title": "''", "ends_at": "'9999-12-31'"}),
]
timed_lists = pytest.mark.parametrize("timed", TIMED, ids=lambda timed: timed.path)


@timed_lists
def test_with_a_range_of_times_the_latest_come_first(api: Api, timed: Timed) -> None:
    timed.insert(api.workspace_id, "2 hours", "0", "3 hours", "1 hour", "2 hours 1 microsecond")

    found = list(pages(api, f"{timed.since()}&limit=2"))

    assert [len(page["data"]) for page in found] == [2, 2, 1]
    assert listed(found) == timed.latest_first()
    assert listed(found) != sorted(listed(found), reverse=True)


@timed_lists
def test_without_a_range_the_last_recorded_come_first(api: Api, timed: Timed) -> None:
    timed.insert(api.workspace_id, "2 hours", "0", "3 hours")

    found = listed(list(pages(api, f"{timed.path}?limit=2")))

    assert found == sorted(timed.latest_first(), reverse=True) != timed.latest_first()


@timed_lists
@pytest.mark.parametrize("limit", [1, 2, 3])
def test_rows_of_one_time_are_shown_once_each(api: Api, timed: Timed, limit: int) -> None:
    timed.insert(api.workspace_id, *["1 hour"] * 5, "2 hours", "0")

    assert listed(list(pages(api, f"{timed.since()}&limit={limit}"))) == timed.latest_first()


@timed_lists
def test_rows_recorded_meanwhile_make_none_shown_twice_or_skipped(api: Api, timed: Timed) -> None:
    timed.insert(api.workspace_id, "3 hours", "1 hour", "2 hours", "1 hour", "4 hours", "0")
    before = timed.latest_first()
    found = []

    for page in pages(api, f"{timed.since()}&limit=2"):
        found.append(page)
        timed.insert(api.workspace_id, "5 hours", "1 hour", "30 minutes")

    assert [row for row in listed(found) if row in before] == before
    assert len(set(listed(found))) == len(listed(found))


@timed_lists
def test_the_row_of_a_cursor_of_times_may_be_gone(api: Api, timed: Timed) -> None:
    timed.insert(api.workspace_id, "3 hours", "1 hour", "2 hours", "0")
    before = timed.latest_first()
    cursor = api.get(f"{timed.since()}&limit=2").json["meta"]["nextCursor"]
    database.rows(f"DELETE FROM {timed.path} WHERE id = %s", (before[1],))

    assert listed([api.get(f"{timed.since()}&cursor={cursor}").json]) == before[2:]


@timed_lists
@pytest.mark.parametrize("time", ["1970-01-01T00:00:00Z", "9998-12-31T23:59:59.999999Z"])
def test_a_cursor_of_the_earliest_and_latest_times_goes_on(api: Api, timed: Timed, time: str) -> None:
    timed.insert(api.workspace_id, "0", "0")
    database.rows(f"UPDATE {timed.path} SET {timed.column} = %s", (time,))

    assert listed(list(pages(api, f"{timed.since('1970-01-01T00:00:00Z')}&limit=1"))) == timed.latest_first()


@timed_lists
def test_a_cursor_of_one_order_is_refused_in_the_other(api: Api, timed: Timed) -> None:
    timed.insert(api.workspace_id, "3 hours", "1 hour", "2 hours")
    by_time = api.get(f"{timed.since()}&limit=1").json["meta"]["nextCursor"]
    by_id = api.get(f"{timed.path}?limit=1").json["meta"]["nextCursor"]

    for path, cursor in ((timed.path, by_time), (timed.since(), by_id), (timed.since("2026-01-01T00:00:00Z"), by_time)):
        mark = "&" if "?" in path else "?"
        answer = api.get(f"{path}{mark}cursor={cursor}")
        assert (answer.status_code, answer.get_json(force=True)["errors"][0]["pointer"]) == (422, "/cursor")


# Others


def test_every_empty_parameter_is_named(api: Api) -> None:
    errors = api.get("contacts?email=&q=ada&tag=&cursor=").get_json(force=True)["errors"]

    assert [error["pointer"] for error in errors] == ["/email", "/tag", "/cursor"]


def test_a_cursor_survives_a_new_key_and_fails_clearly_without_its_own(api: Api, keys: Keys) -> None:
    insert_contacts(api.workspace_id, 3)
    old, new = "old-key-" * 4, "new-key-" * 4
    keys(old)
    cursor = api.get("contacts?limit=1").json["meta"]["nextCursor"]

    keys(new, old)
    assert api.get(f"contacts?cursor={cursor}").json["data"] == api.get("contacts").json["data"][1:]

    keys(new)
    answer = api.get(f"contacts?cursor={cursor}")
    assert (answer.status_code, answer.get_json(force=True)["errors"][0]["pointer"]) == (422, "/cursor")


# Every list


def test_an_empty_list_is_one_empty_page(scene: Scene) -> None:
    new = found(scene.ours.client, "New")

    for operation in [operation for operation in scene.lists if not operation.nouns]:
        shown = new.get(operation.path(new.workspace_id, {})).json
        assert shown == {"data": [], "meta": {"nextCursor": None, "hasMore": False}}, operation


def test_every_list_pages_alike(scene: Scene) -> None:
    for operation in scene.lists:
        path = scene.path(operation)
        whole = scene.ours.get(f"{path}?limit=100").json["data"]
        found = [page["data"] for page in pages(scene.ours, f"{path}?limit=1")]
        assert found == ([[row] for row in whole] or [[]]), operation


def second_pages(api: Api, lists: list[Operation], known: dict[str, str]) -> dict[Operation, str]:
    """A cursor of each list that has a second page."""
    answers = {each: api.get(f"{each.path(api.workspace_id, known)}?limit=1").json["meta"] for each in lists}
    return {operation: meta["nextCursor"] for operation, meta in answers.items() if meta["hasMore"]}


def other_than(character: str) -> str:
    return "A" if character != "A" else "B"


def test_a_cursor_that_is_not_of_the_list_is_refused_by_every_list(scene: Scene) -> None:
    own = second_pages(scene.ours, scene.lists, scene.own)
    theirs = second_pages(scene.theirs, scene.lists, scene.foreign)
    others = dict(zip(own, [*own.values()][1:] + [*own.values()][:1], strict=True))
    forged = cursors.seal(b"another key", "any list", ["zzz"])

    assert len(own) > 20
    assert theirs.keys() == own.keys()
    for cursor in (forged, "AAAA"):
        expect("422 validation-failed /cursor", ((each, continued(scene, each, cursor)) for each in scene.lists))
    for altered in (others, theirs, {each: other_than(cursor[0]) + cursor[1:] for each, cursor in own.items()}):
        expect("422 validation-failed /cursor", ((each, continued(scene, each, altered[each])) for each in own))


def continued(scene: Scene, operation: Operation, cursor: str) -> Any:
    return scene.ask(operation, query=f"cursor={cursor}")


def test_a_forged_cursor_is_refused_wherever_it_was_altered(scene: Scene) -> None:
    contacts = scene.named("GET /contacts")
    cursor = second_pages(scene.ours, [contacts], scene.own)[contacts]
    wrong = [cursor[:place] + other_than(each) + cursor[place + 1 :] for place, each in enumerate(cursor)]
    wrong += [cursor[:place] for place in range(len(cursor))]
    wrong += [cursor + "A", cursor + "=", cursor * 2, cursor.swapcase(), f"%20{cursor}", f"{cursor}%0A"]
    wrong += ["x", "%00", "é", "a" * 5000, "con_01kaj5bd40e6rr3f5y2kq0w9xz", "===="]

    expect("422 validation-failed /cursor", ((each, continued(scene, contacts, each)) for each in wrong))


def test_a_cursor_is_refused_with_a_filter_that_it_was_not_made_with(scene: Scene) -> None:
    for operation, cursor in second_pages(scene.ours, scene.lists, scene.own).items():
        for name, field in operation.query.load_fields.items():
            if name not in ("limit", "cursor"):
                value = {"phone": "%2B4930123456"}.get(name) or sample_of(name, field, scene.own)
                answer = scene.ask(operation, query=f"cursor={cursor}&{name}={value}")
                assert answer.status_code == 422, (operation, name)
