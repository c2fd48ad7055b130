"""Segments in the API: making and counting them, and listing who is in one."""

from __future__ import annotations

from typing import Any

import pytest

from app import bounds
from app.domain.segments import scans, segments
from app.lib import ids
from tests.cast import Api, one, row_counts

VIP = {"field": "contact.tags", "is": "contains", "value": "vip"}


def make(api: Api, condition: dict[str, Any] | None = None, name: str = "Regulars") -> str:
    return str(api.done(api.post("segments", {"name": name, "filter": condition or VIP}))["resource"]["id"])


def listed(api: Api, query: str) -> list[str]:
    return [each["id"] for each in api.get(f"contacts?{query}").json["data"]]


def test_a_segment_is_made_shown_listed_changed_and_deleted(api: Api) -> None:
    segment_id = make(api)

    shown = api.get(f"segments/{segment_id}").json["data"]
    assert shown == {"id": segment_id, "name": "Regulars", "filter": VIP, "created_at": shown["created_at"]}
    assert api.get("segments").json["data"] == [shown]

    changed = {"name": "Others", "filter": {"not": VIP}}
    api.done(api.patch(f"segments/{segment_id}", changed))
    assert api.get(f"segments/{segment_id}").json["data"] == shown | changed
    api.done(api.patch(f"segments/{segment_id}", {}))
    assert api.get(f"segments/{segment_id}").json["data"] == shown | changed

    assert api.done(api.delete(f"segments/{segment_id}"))["status"] == "succeeded"
    assert api.get(f"segments/{segment_id}").status_code == 404
    assert api.delete(f"segments/{segment_id}").status_code == 404


@pytest.mark.parametrize(
    ("condition", "pointer", "detail"),
    [
        ({"field": "contact.tgas", "is": "exists"}, "/filter/field", "There is no 'contact.tgas'. Did you mean"),
        ({"any": [{"field": "contact.last_recieved_at", "is": "exists"}]}, "/filter/any/0/field", "'contact.last_rec"),
        ({"field": "trigger.event.id", "is": "exists"}, "/filter/field", "There is no 'trigger'. There are: contact."),
        ({"field": "contact.tags", "is": "contains"}, "/filter/value", "Give the value to compare with"),
        ({"field": "contact.tags", "is": "contains", "days_ago": 3}, "/filter/days_ago", "Remove this: only"),
        ({}, "/filter/is", "Give one of equals"),
    ],
)
@pytest.mark.parametrize("path", ["segments", "segments/count"])
def test_a_filter_that_means_nothing_is_refused(
    api: Api, path: str, condition: dict[str, Any], pointer: str, detail: str
) -> None:
    before = row_counts()
    body = {"filter": condition} | ({"name": "Regulars"} if path == "segments" else {})

    answer = api.post(path, body)

    assert answer.status_code == 422
    assert [detail in each["detail"] for each in answer.json["errors"] if each["pointer"] == pointer] == [True]
    assert row_counts() == before


def test_a_filter_is_counted_with_a_sample(api: Api) -> None:
    ada = api.contact(email="ada@example.com", tags=["vip"])
    api.contact(email="bob@example.com")

    answer = api.post("segments/count", {"filter": VIP})

    shown = {name: value for name, value in ada.items() if name not in ("identities", "suggested_merges")}
    assert (answer.status_code, answer.json) == (200, {"data": {"count": 1, "is_complete": True, "sample": [shown]}})
    assert one("SELECT count(*) FROM jobs WHERE kind LIKE 'segments%%'") == 0


def test_the_contacts_of_a_segment_are_listed_with_other_filters(api: Api) -> None:
    ada, bob = (api.contact(email=f"{name}@example.com", tags=["vip"])["id"] for name in ("ada", "bob"))
    api.contact(email="eve@example.com")
    segment_id = make(api)

    assert listed(api, f"segment_id={segment_id}") == [bob, ada]
    assert listed(api, f"segment_id={segment_id}&email=ADA@example.com") == [ada]
    assert listed(api, f"segment_id={segment_id}&tag=other") == []


def test_pages_of_a_segment_follow_one_another(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"_FIRST_ROWS": 2, "_LEAST_ROWS": 2, "MOST_LISTED_SECONDS": 0}.items():
        monkeypatch.setattr(scans, name, value)
    made = [api.contact(external_id=f"c-{n}", tags=["vip"] if n in (0, 5) else [])["id"] for n in range(6)]
    unindexed = make(api, {"any": [VIP]})
    query, pages = f"segment_id={unindexed}&limit=1", []

    cursor = ""
    for _ in range(10):
        page = api.get(f"contacts?{query}{cursor}").json
        pages.append([each["id"] for each in page["data"]])
        if not page["meta"]["hasMore"]:
            break
        cursor = f"&cursor={page['meta']['nextCursor']}"

    assert [each for page in pages for each in page] == [made[5], made[0]]
    assert [] in pages


def test_a_cursor_is_for_the_filter_that_it_was_issued_for(api: Api) -> None:
    for number in range(2):
        api.contact(external_id=f"c-{number}", tags=["vip"])
    segment_id = make(api)
    page = api.get(f"contacts?segment_id={segment_id}&limit=1").json

    api.done(api.patch(f"segments/{segment_id}", {"filter": {"not": VIP}}))

    cursor = page["meta"]["nextCursor"]
    assert api.get(f"contacts?segment_id={segment_id}&limit=1&cursor={cursor}").status_code == 422


def test_contacts_of_another_workspace_are_not_counted(api: Api, others: Api) -> None:
    api.contact(email="ada@example.com", tags=["vip"])
    others.contact(email="eve@example.com", tags=["vip"])

    assert api.post("segments/count", {"filter": VIP}).json["data"]["count"] == 1


def test_a_workspace_has_a_bounded_number_of_segments(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments.QUOTA, "most", 1)
    make(api)

    answer = api.post("segments", {"name": "Another", "filter": VIP})

    assert answer.status_code == 409
    assert answer.json["detail"] == "A workspace has at most 1 segments. Delete one first."


def test_a_workspace_may_have_few_counts_under_way(api: Api) -> None:
    with bounds.reading_segment(api.workspace_id), bounds.reading_segment(api.workspace_id):
        answer = api.post("segments/count", {"filter": VIP})
        listed = api.get(f"contacts?segment_id={ids.new('seg')}")

    assert (answer.status_code, listed.status_code) == (429, 429)
    assert answer.headers["Retry-After"] == "1"
    assert api.post("segments/count", {"filter": VIP}).status_code == 200


def test_a_refusal_names_both_restrictions_that_would_do(api: Api) -> None:
    answer = api.restricted_to("inbox").get("segments")
    assert answer.json["detail"] == "This needs a token with access to automations or contacts, or an unrestricted one."
