"""The workspace: its name, time zone and quiet hours."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cast import Api, one, row_counts, working

QUIET = {"from": "21:00", "to": "08:00"}


def path(api: Api) -> str:
    return f"/api/v1/workspaces/{api.workspace_id}"


def test_a_workspace_is_shown(api: Api) -> None:
    shown = api.get(path(api)).json["data"]

    assert shown == {
        "id": api.workspace_id,
        "name": "Ours",
        "timezone": "UTC",
        "quiet_hours": None,
        "opt_out_words": None,
        "created_at": shown["created_at"],
    }


def test_the_given_fields_are_changed(api: Api, others: Api) -> None:
    before = api.get(path(api)).json["data"]

    job = api.done(api.patch(path(api), {"timezone": "Europe/Berlin", "quiet_hours": QUIET}))

    assert job["status"] == "succeeded"
    assert job["resource"] == {
        "type": "workspace",
        "id": api.workspace_id,
        "url": f"https://bellhop.test/api/v1/workspaces/{api.workspace_id}",
    }
    assert api.get(path(api)).json["data"] == before | {"timezone": "Europe/Berlin", "quiet_hours": QUIET}
    assert others.get(path(others)).json["data"]["timezone"] == "UTC"


def test_quiet_hours_are_ended_with_null(api: Api) -> None:
    api.done(api.patch(path(api), {"quiet_hours": QUIET}))

    api.done(api.patch(path(api), {"quiet_hours": None}))

    assert api.get(path(api)).json["data"]["quiet_hours"] is None
    assert one("SELECT quiet_hours IS NULL FROM workspaces WHERE id = %s", api.workspace_id)


def test_a_caller_who_waits_gets_the_workspace(api: Api) -> None:
    with working():
        answer = api.patch(path(api), {"name": "Our shop"}, wait=20)

    assert (answer.status_code, answer.json["data"]["name"]) == (200, "Our shop")


def test_an_empty_patch_changes_nothing(api: Api) -> None:
    before = api.get(path(api)).json

    assert api.done(api.patch(path(api), {}))["status"] == "succeeded"

    assert api.get(path(api)).json == before


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"name": None}, "/name"),
        ({"timezone": "Berlin"}, "/timezone"),
        ({"timezone": None}, "/timezone"),
        ({"quiet_hours": {"from": "21:00"}}, "/quiet_hours/to"),
        ({"quiet_hours": {"from": "21:00", "to": "21:00"}}, "/quiet_hours/to"),
        ({"quiet_hours": {"from": "24:00", "to": "08:00"}}, "/quiet_hours/from"),
        ({"quiet_hours": {"from": "9:00", "to": "08:00"}}, "/quiet_hours/from"),
        ({"quiet_hours": {"from": "21:00\n", "to": "08:00"}}, "/quiet_hours/from"),
        ({"quiet_hours": QUIET | {"days": []}}, "/quiet_hours/days"),
        ({"quiet_hours": "night"}, "/quiet_hours"),
        ({"id": "ws_1"}, "/id"),
    ],
    ids=str,
)
def test_what_cannot_be_is_refused(api: Api, body: dict[str, Any], pointer: str) -> None:
    before = row_counts()

    answer = api.patch(path(api), body)

    assert answer.status_code == 422
    assert [error["pointer"] for error in answer.get_json(force=True)["errors"]] == [pointer]
    assert row_counts() == before


def test_its_jobs_are_not_shown_to_restricted_tokens(api: Api) -> None:
    job = api.patch(path(api), {"name": "Our shop"}).json["data"]
    restricted = api.restricted_to("contacts", "inbox", "automations", "billing", "webhooks")

    assert restricted.get(f"jobs/{job['id']}").status_code == 403
    assert restricted.get("jobs").json["data"] == []
    assert [each["id"] for each in api.get("jobs").json["data"]] == [job["id"]]
