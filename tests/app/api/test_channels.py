from __future__ import annotations

from typing import Any

import pytest
from werkzeug.test import TestResponse

from app.database import rows
from app.domain.channels import channels
from app.models.channels import Channel
from tests import playing
from tests.cast import KEY, Api, all_of, everything_stored, one, working
from tests.playing import connected
from tests.talks import make_member

CHAT = {"kind": "web_chat", "name": "Shop", "settings": {"origins": ["https://shop.example"]}}


def faults(response: TestResponse) -> dict[str, str]:
    assert response.status_code == 422, response.text
    return {fault["pointer"]: fault["detail"] for fault in response.json["errors"]}


def made(api: Api, **fields: Any) -> dict[str, Any]:
    job = api.done(api.post("channels", CHAT | fields))
    assert job["status"] == "succeeded", job
    return dict(api.get(f"channels/{job['resource']['id']}").json["data"])


def credentials_of(channel_id: str) -> dict[str, str]:
    return dict(channels.account_of(Channel.get_by_id(channel_id)).credentials)


def test_a_web_chat_is_connected_at_once_and_its_secret_is_shown_once(api: Api) -> None:
    response = api.post("channels", CHAT, key=KEY)
    job = api.done(response)

    shown = api.get(f"channels/{job['resource']['id']}")
    assert shown.json["data"] == {
        "id": job["resource"]["id"],
        "kind": "web_chat",
        "name": "Shop",
        "state": "connected",
        "problem": None,
        "settings": {"origins": ["https://shop.example"]},
        "hook_address": None,
        "created_at": shown.json["data"]["created_at"],
    }
    secret = response.json["secret"]
    assert credentials_of(job["resource"]["id"]) == {"secret": secret}
    assert "secret" not in api.post("channels", CHAT, key=KEY).json
    assert secret not in everything_stored()


def test_a_channel_of_a_provider_is_disconnected_until_that_has_agreed(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    playing.install(monkeypatch)
    channel_id = playing.create(api.workspace_id)

    shown = api.get(f"channels/{channel_id}").json["data"]

    assert (shown["state"], shown["problem"]["code"]) == ("disconnected", "connecting")
    assert shown["hook_address"] == f"https://bellhop.test/hooks/played/{channel_id}"
    assert "1:abc" not in everything_stored()


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        (CHAT | {"kind": "pigeon"}, "/kind"),
        (CHAT | {"name": " "}, "/name"),
        (CHAT | {"settings": {}}, "/settings/origins"),
        (CHAT | {"settings": {"origins": ["shop.example"]}}, "/settings/origins/0"),
        (CHAT | {"settings": {"origins": [], "colour": "red"}}, "/settings/colour"),
        (CHAT | {"credentials": {"token": "1"}}, "/credentials"),
        (CHAT | {"colour": "red"}, "/colour"),
        ({"name": "Shop"}, "/kind"),
    ],
)
def test_what_the_kind_cannot_use_is_refused(api: Api, body: dict[str, Any], pointer: str) -> None:
    assert pointer in faults(api.post("channels", body))
    assert one("SELECT count(*) FROM jobs") == 0


def test_channels_are_listed_newest_first_without_deleted_ones_and_those_of_others(api: Api, others: Api) -> None:
    first, gone, last = (made(api)["id"] for _ in range(3))
    made(others)
    api.done(api.delete(f"channels/{gone}"))

    listed = api.get("channels").json["data"]

    assert [channel["id"] for channel in listed] == [last, first]


def test_a_change_keeps_the_settings_that_are_not_given(api: Api) -> None:
    channel_id = made(api)["id"]

    job = api.done(api.patch(f"channels/{channel_id}", {"name": "Wool", "settings": {"reopen": False}}))

    assert job["status"] == "succeeded"
    changed = api.get(f"channels/{channel_id}").json["data"]
    assert changed["name"] == "Wool"
    assert changed["settings"] == {"origins": ["https://shop.example"], "reopen": False}


def test_a_change_to_settings_that_the_kind_does_not_have_is_refused(api: Api) -> None:
    channel_id = made(api)["id"]

    assert "/settings/reopen" in faults(api.patch(f"channels/{channel_id}", {"settings": {"reopen": "no"}}))
    assert "/settings/number" in faults(api.patch(f"channels/{channel_id}", {"settings": {"number": "5"}}))


def test_a_rule_for_assignment_names_members_of_the_workspace(api: Api, others: Api) -> None:
    member_id, channel_id = make_member(api.workspace_id), made(api)["id"]
    rule = {"assignment": "balanced", "member_ids": [member_id]}
    theirs = {"member_ids": [member_id, make_member(others.workspace_id)]}

    job = api.done(api.patch(f"channels/{channel_id}", {"settings": rule}))

    assert (job["status"], made(api, settings={**CHAT["settings"], **rule})["settings"]) == (
        "succeeded",
        {**CHAT["settings"], **rule},
    )
    assert "/settings/member_ids/1" in faults(api.patch(f"channels/{channel_id}", {"settings": theirs}))
    assert "/settings/member_ids/1" in faults(api.post("channels", {**CHAT, "settings": CHAT["settings"] | theirs}))


@pytest.mark.parametrize(
    ("name", "value"),
    [("assignment", "random"), ("assignment", None), ("member_ids", []), ("member_ids", ["me"]), ("member_ids", "x")],
)
def test_a_rule_that_there_is_not_is_refused(api: Api, name: str, value: object) -> None:
    refused = faults(api.patch(f"channels/{made(api)['id']}", {"settings": {name: value}}))

    assert [pointer.startswith(f"/settings/{name}") for pointer in refused] == [True]


def test_who_is_removed_before_the_job_runs_cannot_be_named(api: Api) -> None:
    member_id, channel_id = make_member(api.workspace_id), made(api)["id"]
    accepted = api.patch(f"channels/{channel_id}", {"settings": {"member_ids": [member_id]}})
    rows("DELETE FROM members WHERE id = %s", (member_id,))

    assert api.done(accepted)["problem"]["status"] == 422


def test_a_channel_can_be_changed_and_deleted_before_it_is_made(api: Api) -> None:
    channel_id = api.post("channels", CHAT).json["data"]["resource"]["id"]

    changed = api.patch(f"channels/{channel_id}", {"name": "Wool"})
    reauthorized = api.post(f"channels/{channel_id}/reauthorize")
    deleted = api.delete(f"channels/{channel_id}")
    api.apply()

    assert [api.job(each)["status"] for each in (changed, reauthorized, deleted)] == ["succeeded"] * 3
    assert api.get(f"channels/{channel_id}").status_code == 404
    assert one("SELECT name FROM channels") == "Wool"


def test_a_web_chat_gets_a_new_secret_and_takes_no_credentials(api: Api) -> None:
    channel_id = made(api)["id"]
    before = credentials_of(channel_id)

    refused = api.post(f"channels/{channel_id}/reauthorize", {"credentials": {"secret": "mine"}})
    response = api.post(f"channels/{channel_id}/reauthorize")
    api.done(response)

    assert "/credentials" in faults(refused)
    assert credentials_of(channel_id) == {"secret": response.json["secret"]} != before


def test_new_credentials_of_a_provider_are_stored_and_not_shown(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    playing.install(monkeypatch)
    channel_id = connected(api.workspace_id)

    missing = api.post(f"channels/{channel_id}/reauthorize")
    response = api.post(f"channels/{channel_id}/reauthorize", {"credentials": {"token": "1:new"}})
    job = api.done(response)

    assert "/credentials" in faults(missing)
    assert (job["status"], "secret" in response.json) == ("succeeded", False)
    assert credentials_of(channel_id)["token"] == "1:new"
    assert "1:new" not in everything_stored()


def test_a_fault_in_credentials_does_not_repeat_them(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    playing.install(monkeypatch)
    channel_id = connected(api.workspace_id)

    refused = api.post(f"channels/{channel_id}/reauthorize", {"credentials": {"token": "secret" * 50}})

    assert "/credentials/token" in faults(refused)
    assert "secretsecret" not in refused.text


def test_a_workspace_has_at_most_a_hundred_channels(api: Api) -> None:
    rows(
        """
        INSERT INTO channels (id, workspace_id, kind, name, state)
        SELECT 'chn_' || number, %s, 'web_chat', 'Shop', 'connected' FROM generate_series(1, 100) AS number
        """,
        (api.workspace_id,),
    )

    assert api.post("channels", CHAT).status_code == 409


def test_a_deletion_in_the_queue_makes_room(api: Api) -> None:
    channel_id = made(api)["id"]
    rows(
        """
        INSERT INTO channels (id, workspace_id, kind, name, state)
        SELECT 'chn_' || number, %s, 'web_chat', 'Shop', 'connected' FROM generate_series(1, 99) AS number
        """,
        (api.workspace_id,),
    )

    api.delete(f"channels/{channel_id}")
    job = api.done(api.post("channels", CHAT))

    assert job["status"] == "succeeded"


def test_a_deletion_waited_for_returns_204(api: Api) -> None:

    channel_id = made(api)["id"]

    with working():
        deleted = api.delete(f"channels/{channel_id}", wait=20)

    assert deleted.status_code == 204
    assert all_of("SELECT credentials FROM channels") == [None]


def test_a_second_deletion_is_not_found(api: Api) -> None:
    channel_id = made(api)["id"]
    api.done(api.delete(f"channels/{channel_id}"))

    assert api.delete(f"channels/{channel_id}").status_code == 404
