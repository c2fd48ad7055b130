"""Members in the API: who conversations can be assigned to."""

from __future__ import annotations

from app.lib import ids
from tests.cast import Api
from tests.talks import make_member


def test_members_are_listed_the_latest_first(api: Api, others: Api) -> None:
    first, second = make_member(api.workspace_id), make_member(api.workspace_id)
    make_member(others.workspace_id)

    page = api.get("members?limit=1").json
    rest = api.get(f"members?limit=1&cursor={page['meta']['nextCursor']}").json

    assert [each["id"] for each in page["data"] + rest["data"]] == [second, first]
    assert rest["meta"] == {"nextCursor": None, "hasMore": False}


def test_a_member_is_shown(api: Api) -> None:
    member_id = make_member(api.workspace_id)

    shown = api.get(f"members/{member_id}").json["data"]

    assert shown == {
        "id": member_id,
        "email": f"{member_id}@example.com",
        "role": "agent",
        "created_at": shown["created_at"],
    }


def test_the_members_of_others_are_not_found(api: Api, others: Api) -> None:
    for member_id in (make_member(others.workspace_id), ids.new("mem"), "me"):
        assert api.get(f"members/{member_id}").status_code == 404


def test_a_token_for_the_inbox_sees_members(api: Api) -> None:
    assert api.restricted_to("inbox").get("members").status_code == 200
    assert api.restricted_to("contacts").get("members").status_code == 403
