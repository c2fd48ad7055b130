from __future__ import annotations

import json
import os

import pytest

from app import mailbox
from app.channels.base import Request
from app.database import rows
from app.domain.channels import channel_connections, channel_requests, channels
from app.domain.channels.channel_requests import MAIL
from app.models.channels import Channel
from app.outbound import Answer, Reason, answered
from tests import playing
from tests.cast import Api, accept, all_of, event_bodies, event_kinds, in_another_process, one, rung_on
from tests.conftest import Keys
from tests.playing import Provider, ask_providers, connected, create, reauthorize, state


@pytest.fixture(autouse=True)
def played(monkeypatch: pytest.MonkeyPatch) -> None:
    playing.install(monkeypatch)


@pytest.fixture
def provider() -> Provider:
    return Provider()


def wake() -> None:
    """Makes what waits for another attempt due."""
    rows("UPDATE channel_requests SET due_at = now(), next_attempt_at = NULL WHERE next_attempt_at IS NOT NULL")


def test_a_new_channel_waits_for_its_provider_and_is_connected_when_that_agrees(api: Api, provider: Provider) -> None:
    channel_id = create(api.workspace_id)
    before = state(channel_id)

    ask_providers(api.workspace_id, provider)

    assert (before, state(channel_id)) == (("disconnected", "connecting"), ("connected", None))
    assert provider.paths == ["/me", "/hook"]
    hook = f"https://bellhop.test/hooks/played/{channel_id}"
    assert json.loads(provider.asked[0][1]) == {"token": "1:abc", "hook": hook}
    assert one("SELECT account FROM channels") == "1"
    assert one("SELECT count(*) FROM channel_requests") == 0


def test_creating_a_channel_rings_and_connecting_it_rings_for_its_messages(api: Api, provider: Provider) -> None:
    channel_id = create(api.workspace_id)
    rung = rung_on("channel-requests")

    ask_providers(api.workspace_id, provider)

    assert rung == [api.workspace_id]
    assert rung_on("messages") == [channel_id]


def test_no_transaction_is_open_while_a_provider_is_asked(api: Api) -> None:
    create(api.workspace_id)
    open_ones: list[int] = []

    def ask(_: Request) -> Answer:
        ours = "datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
        open_ones.append(one(f"SELECT count(*) FROM pg_stat_activity WHERE xact_start IS NOT NULL AND {ours}"))
        return answered(200)

    ask_providers(api.workspace_id, ask)

    assert open_ones == [0, 0]


def test_refused_credentials_require_others_and_are_reported(api: Api, provider: Provider) -> None:
    channel_id = create(api.workspace_id)
    provider.refuse(401)

    ask_providers(api.workspace_id, provider)

    assert state(channel_id) == ("reauthorization_required", "played")
    assert provider.paths == ["/me"]
    assert event_kinds(api.workspace_id) == ["channel.reauthorization_required"]
    shown = event_bodies(api.workspace_id)[0]["data"]["channel"]
    assert (shown["id"], shown["problem"]["detail"]) == (channel_id, "The provider said no.")
    assert all_of("SELECT kind FROM notifications") == ["channel_refused"]
    assert one("SELECT count(*) FROM channel_requests") == 0


def test_new_credentials_connect_the_channel_again(api: Api, provider: Provider) -> None:
    channel_id = create(api.workspace_id)
    provider.refuse(401)
    ask_providers(api.workspace_id, provider)
    provider.replies.clear()

    reauthorize(api.workspace_id, channel_id, "1:new")
    asked = state(channel_id)
    ask_providers(api.workspace_id, provider)

    assert (asked, state(channel_id)) == (("disconnected", "connecting"), ("connected", None))
    assert json.loads(provider.asked[-1][1])["token"] == "1:new"


def test_a_refused_setting_leaves_the_channel_disconnected_without_further_attempts(
    api: Api, provider: Provider
) -> None:
    channel_id = create(api.workspace_id)
    provider.refuse(400, "/hook")

    ask_providers(api.workspace_id, provider)

    assert state(channel_id) == ("disconnected", "played")
    assert one("SELECT count(*) FROM channel_requests") == 0
    assert event_kinds(api.workspace_id) == []


@pytest.mark.parametrize("reason", [Reason.REFUSED, Reason.LATE, Reason.QUEUE])
def test_a_provider_that_cannot_be_reached_is_asked_again(api: Api, provider: Provider, reason: Reason) -> None:
    channel_id = create(api.workspace_id)
    provider.vanish(reason)

    ask_providers(api.workspace_id, provider)
    put_off = state(channel_id)
    provider.replies.clear()
    wake()
    ask_providers(api.workspace_id, provider)

    assert put_off == ("disconnected", "connecting")
    assert state(channel_id) == ("connected", None)


def test_a_connected_channel_stays_in_use_while_its_provider_cannot_be_told_of_something_new(
    api: Api, provider: Provider
) -> None:
    channel_id = connected(api.workspace_id)
    channel_requests.ask(api.workspace_id, channel_id, "connect")
    provider.vanish()

    ask_providers(api.workspace_id, provider)
    put_off = state(channel_id)
    provider.replies.clear()
    wake()
    ask_providers(api.workspace_id, provider)

    assert put_off == state(channel_id) == ("connected", None)
    assert one("SELECT count(*) FROM channel_requests") == 0


def test_a_throttle_is_obeyed(api: Api, provider: Provider) -> None:
    create(api.workspace_id)
    provider.refuse(429)

    ask_providers(api.workspace_id, provider)

    assert 6 < one("SELECT extract(epoch FROM next_attempt_at - now())::float FROM channel_requests") <= 7


def test_attempts_end_some_day(api: Api, provider: Provider) -> None:
    channel_id = create(api.workspace_id)
    rows("UPDATE channel_requests SET tries = %s", (channel_connections.MOST_TRIES["connect"] - 1,))
    provider.vanish()

    ask_providers(api.workspace_id, provider)

    assert state(channel_id) == ("disconnected", "unreachable")
    assert one("SELECT count(*) FROM channel_requests") == 0


def test_a_fault_of_ours_spends_no_attempt(api: Api, provider: Provider) -> None:
    create(api.workspace_id)
    provider.vanish(Reason.QUEUE)

    ask_providers(api.workspace_id, provider)

    assert one("SELECT tries FROM channel_requests") == 0


def test_what_comes_of_replaced_credentials_is_not_recorded(api: Api, provider: Provider) -> None:
    channel_id = create(api.workspace_id)

    def replaced() -> Answer:
        provider.replies.clear()
        reauthorize(api.workspace_id, channel_id, "1:new")
        return answered(401)

    provider.replies["/me"] = replaced
    ask_providers(api.workspace_id, provider)

    assert state(channel_id) == ("connected", None)
    assert [json.loads(body)["token"] for _, body in provider.asked] == ["1:abc", "1:new", "1:new"]
    assert event_kinds(api.workspace_id) == []


def test_a_provider_is_not_asked_twice_at_once(api: Api, provider: Provider) -> None:
    channel_id = create(api.workspace_id)
    mailbox.claim(MAIL, {api.workspace_id: 1}, 60)

    reauthorize(api.workspace_id, channel_id, "1:new")
    ask_providers(api.workspace_id, provider)

    assert provider.asked == []


def test_a_request_whose_worker_died_is_made_again(api: Api, provider: Provider) -> None:
    channel_id = create(api.workspace_id)

    assert in_another_process(lambda: ask_providers(api.workspace_id, lambda _: os._exit(9))) == 9
    rows("UPDATE channel_requests SET leased_until = now()")
    ask_providers(api.workspace_id, provider)

    assert state(channel_id) == ("connected", None)


def test_credentials_that_cannot_be_decrypted_have_to_be_entered_again(
    api: Api, provider: Provider, keys: Keys
) -> None:
    channel_id = create(api.workspace_id)

    keys("another-key-" * 4)
    ask_providers(api.workspace_id, provider)

    assert state(channel_id) == ("reauthorization_required", "unreadable")
    assert provider.asked == []


def test_a_channel_of_a_kind_that_this_version_does_not_know_waits(
    api: Api, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel_id = create(api.workspace_id)
    monkeypatch.setattr(channel_connections, "CHANNEL_KINDS", {})

    ask_providers(api.workspace_id, provider)

    assert state(channel_id) == ("disconnected", "connecting")
    assert one("SELECT next_attempt_at > now() FROM channel_requests")


def test_an_account_belongs_to_the_channel_that_was_connected_last(api: Api, others: Api) -> None:
    first, of_another_account = connected(others.workspace_id), connected(others.workspace_id, "2:abc")

    second = connected(api.workspace_id)

    assert (state(first), state(second)) == (("disconnected", "account_in_use"), ("connected", None))
    assert state(of_another_account) == ("connected", None)


def test_credentials_of_another_account_are_refused_before_anything_is_changed_there(
    api: Api, provider: Provider
) -> None:
    channel_id = connected(api.workspace_id, "1:abc")

    reauthorize(api.workspace_id, channel_id, "2:abc")
    ask_providers(api.workspace_id, provider)

    assert state(channel_id) == ("reauthorization_required", "other_account")
    assert provider.paths == ["/me"]
    assert one("SELECT account FROM channels") == "1"
    detail = event_bodies(api.workspace_id)[0]["data"]["channel"]["problem"]["detail"]
    assert detail.startswith("The credentials and settings are those of account 2; this channel belongs to account 1.")


def test_after_credentials_of_another_account_those_of_its_own_connect_a_channel(api: Api, provider: Provider) -> None:
    channel_id = connected(api.workspace_id, "1:abc")
    reauthorize(api.workspace_id, channel_id, "2:abc")
    ask_providers(api.workspace_id, provider)

    reauthorize(api.workspace_id, channel_id, "1:new")
    ask_providers(api.workspace_id, provider)

    assert state(channel_id) == ("connected", None)


def test_a_channel_whose_account_went_to_another_channel_keeps_to_that_account(api: Api, provider: Provider) -> None:
    first = connected(api.workspace_id, "1:abc")
    connected(api.workspace_id, "1:abc")

    reauthorize(api.workspace_id, first, "2:abc")
    ask_providers(api.workspace_id, provider)
    refused = state(first)
    reauthorize(api.workspace_id, first, "1:abc")
    ask_providers(api.workspace_id, provider)

    assert (refused[1], state(first)) == ("other_account", ("connected", None))
    assert all_of("SELECT problem->>'code' FROM channels WHERE id <> %s", first) == ["account_in_use"]


def test_a_channel_that_never_was_connected_takes_any_account(api: Api, provider: Provider) -> None:
    channel_id = create(api.workspace_id, "1:abc")
    provider.refuse(401)
    ask_providers(api.workspace_id, provider)
    provider.replies.clear()

    reauthorize(api.workspace_id, channel_id, "2:abc")
    ask_providers(api.workspace_id, provider)

    assert state(channel_id) == ("connected", None)


def test_a_changed_setting_has_the_provider_asked_again(api: Api, provider: Provider) -> None:
    channel_id = connected(api.workspace_id)

    accept(api.workspace_id, "channels.update", {"settings": {"number": "5"}}, channel_id)
    api.apply()
    between = state(channel_id)
    ask_providers(api.workspace_id, provider)

    assert (between, state(channel_id)) == (("disconnected", "connecting"), ("connected", None))


def test_settings_of_ours_and_the_name_concern_no_provider(api: Api) -> None:
    channel_id = connected(api.workspace_id)

    accept(api.workspace_id, "channels.update", {"name": "New", "settings": {"reopen": False}}, channel_id)
    api.apply()

    assert state(channel_id) == ("connected", None)
    assert one("SELECT count(*) FROM channel_requests") == 0


def test_deleting_a_channel_ends_the_connection_and_forgets_the_credentials(api: Api, provider: Provider) -> None:
    channel_id = connected(api.workspace_id)

    accept(api.workspace_id, "channels.delete", {}, channel_id)
    api.apply()
    ask_providers(api.workspace_id, provider)

    assert provider.asked == [("/unhook", b"1:abc")]
    assert rows("SELECT credentials, account FROM channels WHERE id = %s", (channel_id,)) == [(None, None)]


def test_what_the_provider_answers_to_a_deletion_does_not_matter(api: Api, provider: Provider) -> None:
    channel_id = connected(api.workspace_id)
    provider.refuse(401, "/unhook")

    accept(api.workspace_id, "channels.delete", {}, channel_id)
    api.apply()
    ask_providers(api.workspace_id, provider)

    assert one("SELECT credentials FROM channels WHERE id = %s", channel_id) is None
    assert event_kinds(api.workspace_id) == []


def test_a_deletion_is_told_to_a_provider_that_was_away(api: Api, provider: Provider) -> None:
    channel_id = connected(api.workspace_id)
    provider.vanish(path="/unhook")
    accept(api.workspace_id, "channels.delete", {}, channel_id)
    api.apply()

    ask_providers(api.workspace_id, provider)
    provider.replies.clear()
    wake()
    ask_providers(api.workspace_id, provider)

    assert provider.paths == ["/unhook", "/unhook"]
    assert one("SELECT credentials FROM channels WHERE id = %s", channel_id) is None


def test_a_refusal_is_noted_once(api: Api) -> None:
    channel_id = connected(api.workspace_id)
    problem = {"code": "401", "detail": "Unauthorized"}

    said = [channels.require_reauthorization(channel_id, problem) for _ in range(2)]

    assert said == [True, False]
    assert event_kinds(api.workspace_id) == ["channel.reauthorization_required"]


def test_a_refusal_of_credentials_that_were_replaced_changes_nothing(api: Api) -> None:
    channel_id = connected(api.workspace_id)
    used = channels.account_of(Channel.get_by_id(channel_id)).credentials
    reauthorize(api.workspace_id, channel_id, "1:new")
    ask_providers(api.workspace_id, Provider())

    changed = channels.require_reauthorization(channel_id, {"code": "401", "detail": "Unauthorized"}, used)

    assert not changed
    assert state(channel_id) == ("connected", None)


def test_a_deleted_channel_requires_nothing(api: Api) -> None:
    channel_id = connected(api.workspace_id)
    accept(api.workspace_id, "channels.delete", {}, channel_id)
    api.apply()

    assert not channels.require_reauthorization(channel_id, {"code": "401", "detail": "Unauthorized"})


def test_another_wish_replaces_one_that_waits(api: Api) -> None:
    channel_id = create(api.workspace_id)
    rows("UPDATE channel_requests SET due_at = NULL, next_attempt_at = now() + interval '1 hour', tries = 9")

    channel_requests.ask(api.workspace_id, channel_id, "disconnect")

    found = "SELECT action, revision, tries, next_attempt_at, due_at IS NOT NULL FROM channel_requests"
    assert rows(found) == [("disconnect", 2, 0, None, True)]
