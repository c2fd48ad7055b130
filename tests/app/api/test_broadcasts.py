"""Broadcasts by API: what is asked for, refused at once, shown, listed and moved."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from app.lib import clock
from tests.broadcasting import EVERYBODY, later, people, settle, work
from tests.cast import Api, one, row_counts
from tests.talks import make_channel, receive

SALE = {"name": "Sale", "filter": EVERYBODY, "message": {"text": "Hello {{ contact.first_name }}!"}}
UNKNOWN = "01kaj5bd40e6rr3f5y2kq0w9xz"


def tomorrow() -> str:
    return (clock.now() + timedelta(days=1)).isoformat()


def begun(api: Api, **body: Any) -> str:
    """The identifier of a new broadcast, not worked on yet."""
    job = api.done(api.post("broadcasts", SALE | body))
    assert job["status"] == "succeeded", job
    return str(job["resource"]["id"])


def without(name: str, **further: Any) -> dict[str, Any]:
    return {key: value for key, value in SALE.items() if key != name} | further


def test_a_broadcast_is_a_job_whose_resource_shows_what_came_of_it(api: Api) -> None:
    channel_id = make_channel(api.workspace_id)
    ada, bob = people(api, 2, first_name="Ada")
    opted_out = api.contact(phone="+49301234567")["id"]
    api.done(api.patch(f"contacts/{opted_out}", {"opted_out": True}))

    answer = api.post("broadcasts", SALE | {"channel_id": None, "per_second": None, "send_at": None})

    resource = answer.json["data"]["resource"]
    assert resource["type"] == "broadcast"
    assert resource["url"] == f"https://bellhop.test{api.path('broadcasts/' + resource['id'])}"
    api.done(answer)
    work(resource["id"])
    settle(resource["id"], "delivered")
    receive(api.workspace_id, ada, channel_id)
    later(resource["id"])
    shown = api.get(f"broadcasts/{resource['id']}").json["data"]
    assert shown == {
        "id": resource["id"],
        "name": "Sale",
        "state": "done",
        "problem": None,
        "segment_id": None,
        "filter": EVERYBODY,
        "channel_id": None,
        "message": {"text": "Hello {{ contact.first_name }}!", "template": None, "attachments": [], "buttons": []},
        "automation_id": None,
        "send_at": None,
        "time_zone": "workspace",
        "per_second": None,
        "canary": False,
        "count": 3,
        "handled": 3,
        "waiting": 0,
        "sent": 2,
        "delivered": 2,
        "read": 0,
        "replied": 1,
        "failed": 0,
        "unknown": 0,
        "started": 0,
        "skipped": {"opted_out": 1},
        "failures": {},
        "created_by": one("SELECT id FROM tokens WHERE workspace_id = %s", api.workspace_id),
        "created_at": shown["created_at"],
        "started_at": shown["started_at"],
        "finished_at": shown["finished_at"],
    }
    rows = api.get(f"broadcasts/{resource['id']}/rows").json["data"]
    assert [(row["contact_id"], row["outcome"], row["reason"]) for row in rows] == [
        (opted_out, "skipped", "opted_out"),
        (bob, "sent", None),
        (ada, "sent", None),
    ]
    message = api.get(f"messages/{rows[1]['message_id']}").json["data"]
    assert message["text"] == "Hello Ada!"
    assert message["author"] == {"type": "broadcast", "id": resource["id"]}
    replied = api.get(f"broadcasts/{resource['id']}/rows?replied=true").json["data"]
    assert [row["contact_id"] for row in replied] == [ada]


def test_a_dry_run_counts_and_leaves_no_trace(api: Api) -> None:
    make_channel(api.workspace_id)
    [ada] = people(api, 1)
    api.contact(email="ada@example.com")
    before = row_counts()

    answer = api.post("broadcasts", SALE | {"dry_run": True, "canary": True, "send_at": tomorrow()})

    assert answer.status_code == 200
    preview = answer.json["data"]
    assert [each["id"] for each in preview.pop("sample")][-1] == ada
    assert preview == {"count": 1, "is_complete": True, "left_out": {"no_channel": 1}, "looked_at": 2}
    assert row_counts() == before
    assert api.post("broadcasts", SALE | {"dry_run": True}, key="no key").status_code == 422


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        (without("name"), "/name"),
        (without("filter"), "/segment_id"),
        (without("message"), "/message"),
        (SALE | {"segment_id": f"seg_{UNKNOWN}"}, "/filter"),
        (SALE | {"automation_id": f"aut_{UNKNOWN}"}, "/automation_id"),
        (without("filter", segment_id=f"seg_{UNKNOWN}"), "/segment_id"),
        (without("message", automation_id=f"aut_{UNKNOWN}"), "/automation_id"),
        (SALE | {"channel_id": f"chn_{UNKNOWN}"}, "/channel_id"),
        (SALE | {"filter": {"field": "contact.nothing", "is": "exists"}}, "/filter/field"),
        (SALE | {"filter": {}}, "/filter/field"),
        (SALE | {"filter": []}, "/filter"),
        (SALE | {"message": {}}, "/message/text"),
        (SALE | {"message": {"text": " "}}, "/message/text"),
        (SALE | {"message": {"text": "x" * 4097}}, "/message/text"),
        (SALE | {"message": {"text": "{{ contact.nothing }}"}}, "/message/text"),
        (SALE | {"message": {"text": "{{ contact.first_name"}}, "/message/text"),
        (SALE | {"message": {"text": "{{ conversation.id }}"}}, "/message/text"),
        (SALE | {"message": {"template": {"a": ["{{ x }}"]}}}, "/message/template/a/0"),
        (SALE | {"message": {"template": {"a": "x" * 17_000}}}, "/message/template"),
        (SALE | {"message": {"attachments": [{"upload_id": f"upl_{UNKNOWN}"}]}}, "/message/attachments/0/upload_id"),
        (SALE | {"message": {"text": "Hello", "expires_at": "2027-01-01T00:00:00Z"}}, "/message/expires_at"),
        (SALE | {"send_at": "yesterday"}, "/send_at"),
        (SALE | {"send_at": "2099-01-01T00:00:00Z"}, "/send_at"),
        (SALE | {"send_at": "2020-01-01T00:00:00Z"}, "/send_at"),
        (SALE | {"time_zone": "contact"}, "/send_at"),
        (SALE | {"time_zone": "Europe/Berlin"}, "/time_zone"),
        (SALE | {"per_second": 0}, "/per_second"),
        (SALE | {"per_second": 1001}, "/per_second"),
        (SALE | {"canary": 1}, "/canary"),
        (SALE | {"dry_run": "true"}, "/dry_run"),
        (SALE | {"state": "done"}, "/state"),
    ],
    ids=str,
)
def test_a_bad_broadcast_is_refused_at_its_place(api: Api, body: dict[str, Any], pointer: str) -> None:
    answer = api.post("broadcasts", body)

    assert answer.status_code == 422, answer.text
    assert pointer in [error["pointer"] for error in answer.json["errors"]]
    assert one("SELECT count(*) FROM jobs") == 0


def test_nothing_of_another_workspace_can_be_named(api: Api, others: Api) -> None:
    segment = others.done(others.post("segments", {"name": "Theirs", "filter": EVERYBODY}))["resource"]["id"]

    for body in (without("filter", segment_id=segment), SALE | {"channel_id": make_channel(others.workspace_id)}):
        assert api.post("broadcasts", body).status_code == 422
        assert api.post("broadcasts", body | {"dry_run": True}).status_code == 422


def test_it_can_be_created_before_its_segment_is(api: Api) -> None:
    segment = api.post("segments", {"name": "Soon", "filter": EVERYBODY}).json["data"]["resource"]["id"]
    answer = api.post("broadcasts", without("filter", segment_id=segment, send_at=tomorrow()))
    broadcast = answer.json["data"]["resource"]["id"]
    assert api.patch(f"broadcasts/{broadcast}", {"name": "Changed at once"}).status_code == 202

    api.apply()

    shown = api.get(f"broadcasts/{broadcast}").json["data"]
    assert (shown["name"], shown["segment_id"], shown["filter"]) == ("Changed at once", segment, None)


def test_it_is_changed_while_scheduled_and_refused_later(api: Api) -> None:
    make_channel(api.workspace_id)
    people(api, 1)
    broadcast_id = begun(api, send_at=tomorrow())

    both = api.patch(f"broadcasts/{broadcast_id}", {"segment_id": f"seg_{UNKNOWN}", "filter": EVERYBODY})
    assert both.json["errors"][0]["pointer"] == "/filter"
    api.done(api.patch(f"broadcasts/{broadcast_id}", {"send_at": None, "per_second": 5}))
    shown = api.get(f"broadcasts/{broadcast_id}").json["data"]
    assert (shown["state"], shown["per_second"]) == ("running", 5)

    late = api.patch(f"broadcasts/{broadcast_id}", {"name": "Late"})
    assert (late.status_code, late.json["detail"]) == (
        409,
        "Only a scheduled broadcast can be changed; this one is running.",
    )


def test_it_is_paused_continued_and_aborted(api: Api) -> None:
    make_channel(api.workspace_id)
    people(api, 2)
    broadcast_id = begun(api, canary=True)
    path = f"broadcasts/{broadcast_id}"
    work(broadcast_id)

    states = []
    for verb in ("pause", "pause", "continue", "abort", "abort"):
        assert api.done(api.post(f"{path}/{verb}"))["status"] == "succeeded"
        states.append(api.get(path).json["data"]["state"])
    assert states == ["paused", "paused", "running", "aborted", "aborted"]
    refused = api.post(f"{path}/continue")
    assert (refused.status_code, refused.json["detail"]) == (409, "This broadcast is aborted.")


def test_lists_have_filters_and_pages(api: Api) -> None:
    found = [begun(api, send_at=tomorrow()) for _ in range(3)]
    api.done(api.post(f"broadcasts/{found[0]}/abort"))

    first = api.get("broadcasts?limit=2").json
    second = api.get(f"broadcasts?limit=2&cursor={first['meta']['nextCursor']}").json
    assert [each["id"] for each in first["data"] + second["data"]] == found[::-1]
    assert [each["id"] for each in api.get("broadcasts?state=aborted").json["data"]] == found[:1]
    assert api.get("broadcasts?state=lost").status_code == 422
    assert api.get(f"broadcasts/{found[0]}/rows?outcome=lost").status_code == 422


def test_a_list_costs_the_same_however_many_there_are(api: Api, statements: list[str]) -> None:
    begun(api, send_at=tomorrow())
    statements.clear()
    api.get("broadcasts")
    of_one = len(statements)
    for _ in range(4):
        begun(api, send_at=tomorrow())

    statements.clear()
    assert len(api.get("broadcasts").json["data"]) == 5
    assert len(statements) == of_one
