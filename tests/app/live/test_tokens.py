"""Tokens of the API listen to their own workspace, to the kinds of resources that they may read."""

from __future__ import annotations

import pytest

from app.domain.people import notifications, tokens
from tests import talks
from tests.app.live.conftest import Listen, Running
from tests.bounding import set_bound
from tests.cast import Api, until
from tests.listening import Ear

USAGE = {"meter": "contacts", "used": 81, "percent": 81, "included": 100}
WORKSPACE = "/live/workspace"


def opened(realtime: Running, api: Api, path: str = WORKSPACE) -> Ear:
    return Ear(realtime.port, path, {"Authorization": f"Bearer {api.token}"}).open()


def kinds(ear: Ear) -> set[str]:
    return {each.kind for each in ear.heard}


def test_a_token_for_the_inbox_listens_to_its_own_workspace(api: Api, others: Api, realtime: Running) -> None:
    inbox = api.restricted_to("inbox")

    assert opened(realtime, inbox).status == 200
    assert opened(realtime, inbox, f"{WORKSPACE}?workspace={api.workspace_id}").status == 200
    assert opened(realtime, inbox, f"{WORKSPACE}?workspace={others.workspace_id}").status == 404


def test_a_token_without_the_inbox_is_refused(api: Api, realtime: Running) -> None:
    refused = opened(realtime, api.restricted_to("contacts", "automations"))

    assert (refused.status, refused.body()["detail"]) == (
        403,
        "This needs a token with access to inbox, or an unrestricted one.",
    )


@pytest.mark.parametrize("value", ["Bearer bhp_forged", "Bearer", "Basic YTpi", "Bearer bhv_x"])
def test_what_is_no_token_gets_no_stream_whatever_cookie_is_with_it(
    api: Api, realtime: Running, listen: Listen, value: str
) -> None:
    headers = {**listen(api).headers, "Authorization": value}

    assert Ear(realtime.port, WORKSPACE, headers).open().status == 401


def test_a_revoked_and_an_expired_token_get_no_stream(api: Api, realtime: Running) -> None:
    token_id, token = tokens.issue(api.workspace_id, "Old", ["inbox"])
    tokens.authenticate(token)
    tokens.revoke(token_id)
    expired = tokens.issue(api.workspace_id, "Older", ["inbox"], 0)[1]

    assert opened(realtime, api.with_token(token)).status == 401
    assert opened(realtime, api.with_token(expired)).status == 401


@pytest.mark.parametrize(
    ("restrictions", "hears_runs"), [(["inbox"], False), (["inbox", "automations"], True), (None, True)]
)
def test_a_token_hears_what_it_may_read(
    api: Api, contact_id: str, realtime: Running, restrictions: list[str] | None, hears_runs: bool
) -> None:
    token = tokens.issue(api.workspace_id, "Listener", restrictions)[1]
    ear = opened(realtime, api.with_token(token)).until_placed()

    notifications.note(api.workspace_id, "usage_high", "once", USAGE)
    talks.make_run(api.workspace_id, contact_id)
    channel_id = talks.make_channel(api.workspace_id)
    said = talks.receive(api.workspace_id, contact_id, channel_id)
    talks.add_note(api, said.conversation_id)
    talks.receive(api.workspace_id, contact_id, channel_id)
    ear.until(lambda heard: [each.kind for each in heard].count("message") == 2)

    assert kinds(ear) == {"conversation", "message"} | ({"run"} if hears_runs else set())


@pytest.mark.usefixtures("signs")
def test_the_stream_of_a_revoked_token_ends_at_once(api: Api, realtime: Running) -> None:
    token_id, token = tokens.issue(api.workspace_id, "Leaves", ["inbox"])
    ear, other = opened(realtime, api.with_token(token)).until_placed(), opened(realtime, api).until_placed()

    tokens.revoke(token_id)

    until(lambda: ear.listen().is_over, 5)
    assert not other.listen().is_over
    assert opened(realtime, api.with_token(token)).status == 401


def test_a_revocation_that_nobody_heard_of_is_found_by_the_check(
    monkeypatch: pytest.MonkeyPatch, api: Api, realtime: Running
) -> None:
    monkeypatch.setattr("app.live.hub.CHECKED_EVERY_SECONDS", 0.05)
    token_id, token = tokens.issue(api.workspace_id, "Leaves", ["inbox"])
    ear = opened(realtime, api.with_token(token)).until_placed()

    tokens.revoke(token_id)

    until(lambda: ear.listen().is_over)


def test_the_streams_of_a_token_are_counted_as_those_of_one_actor(
    monkeypatch: pytest.MonkeyPatch, api: Api, realtime: Running
) -> None:
    set_bound(monkeypatch, "LIVE_STREAMS_PER_ACTOR", 2)
    another = api.restricted_to("inbox")
    first, elsewhere = opened(realtime, api).until_placed(), opened(realtime, another).until_placed()

    more = [opened(realtime, api).until_placed() for _ in range(2)]

    until(lambda: first.listen().is_over)
    assert not any(ear.listen().is_over for ear in more)
    assert not elsewhere.listen().is_over


def test_a_token_that_comes_back_is_sent_what_it_missed(api: Api, contact_id: str, realtime: Running) -> None:
    ear = opened(realtime, api).until_placed()
    ear.close()
    talks.make_run(api.workspace_id, contact_id)

    ear.open().until(lambda heard: "run" in [each.kind for each in heard])


def test_the_place_of_a_member_is_none_of_a_token(api: Api, realtime: Running, listen: Listen) -> None:
    member = listen(api)
    ear = Ear(realtime.port, WORKSPACE, {"Authorization": f"Bearer {api.token}"}, member.place).open()

    ear.until(lambda heard: [each.kind for each in heard] == ["reset"])
