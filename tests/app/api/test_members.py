"""Members in the API: who conversations can be assigned to."""

from __future__ import annotations

from typing import Any

import pytest

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
        "availability": "available",
        "capacity": None,
        "created_at": shown["created_at"],
    }


def test_a_token_for_the_inbox_changes_members(api: Api) -> None:
    member_id = make_member(api.workspace_id)

    changed = api.restricted_to("inbox").patch(f"members/{member_id}", {"availability": "away", "capacity": 7})
    shown = api.done(changed)["resource"]

    assert (shown["type"], shown["id"]) == ("member", member_id)
    told = api.get(f"members/{member_id}").json["data"]
    assert (told["availability"], told["capacity"]) == ("away", 7)
    assert api.restricted_to("contacts").patch(f"members/{member_id}", {"capacity": 1}).status_code == 403


@pytest.mark.parametrize(
    "body",
    [
        *({"availability": value} for value in ("here", None)),
        *({"capacity": value} for value in (-1, 10_001, 1.5, "7")),
        *({"reassign": value} for value in (1, None)),
        {"role": "owner"},
    ],
)
def test_what_a_member_cannot_be_is_refused(api: Api, body: dict[str, Any]) -> None:
    refused = api.patch(f"members/{make_member(api.workspace_id)}", body)

    assert (refused.status_code, refused.json["errors"][0]["pointer"]) == (422, f"/{next(iter(body))}")
