"""Channels on pages."""

from __future__ import annotations

import re
import uuid
from typing import Any

import pytest
from flask import Flask
from werkzeug.test import TestResponse

from app.channels.base import Field, Form
from app.database import rows
from app.domain.channels import channels
from app.models.channels import Channel
from app.outbound import answered
from tests import pages, playing
from tests.cast import Api, everything_stored, one
from tests.pages import Person
from tests.playing import Provider, ask_providers
from tests.talks import make_member, receive

CHANNELS = "settings/channels"
CHAT = {"name": "Shop", "origins": "https://shop.example\r\nhttps://www.shop.example", "reopen": "true"}
TOKEN = "123456789:" + "A" * 35
WITH_PROVIDER = Form(
    "Played",
    "For tests.",
    settings=(Field("number", "Number", "Any.", "Give a number."),),
    credentials=(Field("token", "Token", "From the provider.", "This is no token."),),
    afterwards="Messages arrive here:",
)


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> None:
    playing.install(monkeypatch)
    monkeypatch.setattr(playing.Played, "form", WITH_PROVIDER)


def shown(text: str) -> list[str]:
    return re.findall(r"<code>(chs_[\w-]+)</code>", text)


def made(owner: Person, **changes: Any) -> tuple[str, str]:
    """Connects a web chat on the page; returns its identifier and its secret."""
    answer = owner.post(f"{CHANNELS}/new/web_chat", CHAT | changes)
    assert answer.status_code == 200, answer.text
    [secret] = shown(answer.text)
    return one("SELECT max(id) FROM channels"), secret


def refused(workspace_id: str) -> str:
    channel_id = playing.create(workspace_id)
    provider = Provider()
    provider.replies["/me"] = lambda: answered(401)
    ask_providers(workspace_id, provider)
    return channel_id


def test_a_web_chat_is_made_as_by_the_api_and_its_secret_shown_once(owner: Person, api: Api) -> None:
    channel_id, secret = made(owner)

    found = api.get(f"channels/{channel_id}").json["data"]
    assert (found["name"], found["state"]) == ("Shop", "connected")
    assert found["settings"] == {
        "origins": ["https://shop.example", "https://www.shop.example"],
        "new_visitors_per_minute": 300,
        "reopen": True,
    }
    assert channels.account_of(Channel.get_by_id(channel_id)).credentials == {"secret": secret}
    assert secret not in owner.get(f"{CHANNELS}/{channel_id}").text
    assert secret not in everything_stored()
    assert one("SELECT actor_type FROM audit_entries WHERE target_id = %s", channel_id) == "member"


def test_the_page_of_a_web_chat_has_the_line_to_paste(owner: Person) -> None:
    channel_id, _ = made(owner)

    assert f'<script src="https://bellhop.test/chat/{channel_id}.js" async></script>' in owner.page(
        f"{CHANNELS}/{channel_id}"
    )


def test_a_second_click_makes_no_second_channel_and_shows_no_secret(owner: Person) -> None:
    once = CHAT | {"once": str(uuid.uuid4())}
    owner.post(f"{CHANNELS}/new/web_chat", once)

    again = owner.post(f"{CHANNELS}/new/web_chat", once)

    assert (again.status_code, shown(again.text)) == (200, [])
    assert one("SELECT count(*) FROM channels") == 1


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"name": ""}, "A name has 1 to 255 characters"),
        ({"origins": "shop.example"}, "Give origins such as https://shop.example"),
        ({"origins": "https://shop.example/path"}, "Give origins such as https://shop.example"),
        ({"new_visitors_per_minute": "many"}, "Give a number from 1 to 6,000."),
        ({"new_visitors_per_minute": "0"}, "Give a number from 1 to 6,000."),
    ],
)
def test_a_bad_form_is_shown_again_with_what_was_typed(owner: Person, changes: dict[str, Any], sentence: str) -> None:
    answer = owner.post(f"{CHANNELS}/new/web_chat", CHAT | {"name": "Kept"} | changes)

    assert answer.status_code == 422
    assert sentence in answer.text
    assert (changes.get("origins") or CHAT["origins"].splitlines()[0]) in answer.text
    assert one("SELECT count(*) FROM jobs") == 0


def test_a_kind_that_does_not_exist_has_no_form(owner: Person) -> None:
    assert owner.get(f"{CHANNELS}/new/pigeon").status_code == 404
    assert owner.post(f"{CHANNELS}/new/pigeon", CHAT).status_code == 404


def test_the_list_says_what_to_do_while_it_is_empty(owner: Person) -> None:
    text = owner.page(CHANNELS)

    assert "No channels yet" in text
    assert "Connect a channel" in text


def test_kinds_can_be_chosen(owner: Person) -> None:
    assert "Web chat" in owner.page(f"{CHANNELS}/new")


def test_a_channel_is_changed(owner: Person, api: Api) -> None:
    channel_id, _ = made(owner)
    assert "https://www.shop.example" in owner.page(f"{CHANNELS}/{channel_id}/edit")

    answer = owner.post(
        f"{CHANNELS}/{channel_id}/edit",
        {"name": "Wool", "origins": "https://wool.example", "new_visitors_per_minute": "20"},
    )

    assert answer.status_code == 303
    found = api.get(f"channels/{channel_id}").json["data"]
    assert (found["name"], found["settings"]) == (
        "Wool",
        {"origins": ["https://wool.example"], "new_visitors_per_minute": 20, "reopen": False},
    )


def test_a_web_chat_gets_a_new_secret(owner: Person) -> None:
    channel_id, before = made(owner)

    answer = owner.post(f"{CHANNELS}/{channel_id}/reauthorize")

    [after] = shown(answer.text)
    assert after != before
    assert channels.account_of(Channel.get_by_id(channel_id)).credentials == {"secret": after}


def test_a_deleted_channel_is_gone_from_the_list(owner: Person) -> None:
    channel_id, _ = made(owner)

    answer = owner.post(f"{CHANNELS}/{channel_id}/delete")

    assert answer.status_code == 303
    assert channel_id not in owner.page(CHANNELS)
    assert owner.get(f"{CHANNELS}/{channel_id}").status_code == 404


def test_a_channel_of_a_provider_is_connecting_at_first(owner: Person) -> None:
    answer = owner.post(f"{CHANNELS}/new/telegram", {"name": "Bot", "bot_token": TOKEN})

    channel_id = one("SELECT id FROM channels")
    assert answer.headers["Location"].endswith(channel_id)
    text = owner.page(f"{CHANNELS}/{channel_id}")
    assert "Not connected yet." in text
    assert f"https://bellhop.test/hooks/telegram/{channel_id}" in text
    assert TOKEN not in text
    assert TOKEN not in everything_stored()


def test_credentials_are_never_shown_again_not_even_after_a_mistake(owner: Person) -> None:
    fields = {"name": "", "phone_number_id": "12345", "app_secret": "a" * 32, "verify_token": "made-up"}

    answer = owner.post(f"{CHANNELS}/new/whatsapp", fields | {"access_token": "EAAsecret"})

    assert answer.status_code == 422
    assert 'value="12345"' in answer.text
    assert not [value for value in ("EAAsecret", "made-up", "a" * 32) if value in answer.text]


@pytest.mark.usefixtures("played")
def test_a_channel_that_its_provider_refuses_asks_for_new_credentials(owner: Person, api: Api) -> None:
    channel_id = refused(api.workspace_id)
    before = owner.page(f"{CHANNELS}/{channel_id}")

    answer = owner.post(f"{CHANNELS}/{channel_id}/reauthorize", {"token": "1:new"})
    ask_providers(api.workspace_id, Provider())

    assert "refuses the credentials" in before
    assert answer.status_code == 303
    assert playing.state(channel_id) == ("connected", None)
    assert "refuses the credentials" not in owner.page(f"{CHANNELS}/{channel_id}")


@pytest.mark.usefixtures("played")
def test_bad_new_credentials_are_refused_beside_their_field(owner: Person, api: Api) -> None:
    channel_id = refused(api.workspace_id)

    answer = owner.post(f"{CHANNELS}/{channel_id}/reauthorize", {"token": ""})

    assert answer.status_code == 422
    assert "This is no token." in answer.text


@pytest.mark.usefixtures("played")
def test_members_are_notified_of_a_channel_that_is_refused(owner: Person, api: Api) -> None:
    channel_id = refused(api.workspace_id)

    text = owner.page("notifications")

    assert "The channel Shop needs new credentials. The provider said no." in text
    assert f"/settings/channels/{channel_id}" in text


def test_agents_see_channels_and_change_nothing(app: Flask, owner: Person) -> None:
    channel_id, _ = made(owner)
    agent = pages.member(app, owner.workspace_id, "agent")

    text = agent.page(f"{CHANNELS}/{channel_id}")

    assert "Delete the channel" not in text
    assert agent.get(f"{CHANNELS}/new").status_code == 403
    assert agent.post(f"{CHANNELS}/{channel_id}/delete").status_code == 403
    assert "Ask an owner or admin" not in agent.page(CHANNELS)


def assigned(owner: Person, channel_id: str, assignment: str, *member_ids: str) -> TestResponse:
    """Changes who gets the conversations of the channel, on the page."""
    fields = CHAT | {"new_visitors_per_minute": "20", "assignment": assignment, "member_ids": [*member_ids]}
    return owner.post(f"{CHANNELS}/{channel_id}/edit", fields)


def stored_of(channel_id: str) -> dict[str, Any]:
    kept = Channel.get_by_id(channel_id).settings
    return {name: kept[name] for name in ("assignment", "member_ids") if name in kept}


def test_who_gets_conversations_is_chosen(owner: Person, agent: Person, api: Api) -> None:
    member_id = one("SELECT id FROM members WHERE role = 'agent'")
    channel_id, _ = made(owner, assignment="some", member_ids=[member_id])
    assert stored_of(channel_id) == {"assignment": "balanced", "member_ids": [member_id]}
    text = owner.page(f"{CHANNELS}/{channel_id}/edit")
    assert 'value="some" checked' in text
    assert f'value="{member_id}" checked' in text

    assigned(owner, channel_id, "all")
    assert stored_of(channel_id) == {"assignment": "balanced", "member_ids": None}
    assigned(owner, channel_id, "none", member_id)

    assert stored_of(channel_id)["assignment"] == "none"
    assert "They stay unassigned until somebody takes them." in owner.page(f"{CHANNELS}/{channel_id}")


def test_a_bad_choice_of_members_is_refused(owner: Person, others: Api) -> None:
    theirs = make_member(others.workspace_id)
    channel_id, _ = made(owner)

    for ticked, said in (((), "Tick at least one member."), ((theirs,), "There is no such member in this workspace.")):
        answer = assigned(owner, channel_id, "some", *ticked)
        assert answer.status_code == 422
        assert said in answer.text
    assert owner.post(
        f"{CHANNELS}/new/web_chat", CHAT | {"assignment": "some", "member_ids": [theirs]}
    ).status_code == (422)

    assert one("SELECT count(*) FROM channels") == 1
    assert stored_of(channel_id) == {}


def test_the_page_says_who_is_next_or_why_nobody_is(owner: Person, agent: Person, api: Api) -> None:
    member_id = one("SELECT id FROM members WHERE role = 'agent'")
    channel_id, _ = made(owner, assignment="all")

    def says(change: str = "") -> str:
        if change:
            rows(f"UPDATE members SET {change} WHERE id = %s", (member_id,))
        return owner.page(f"{CHANNELS}/{channel_id}")

    assert "Next is owner@shop.example, with 0 open conversations." in re.sub("</?strong>", "", says())
    assigned(owner, channel_id, "some", member_id)
    assert "of these: agent@shop.example" in says()
    assert "<strong>Next is agent@shop.example</strong>" in says()
    assert "have as many open conversations as their limit allows" in says("capacity = 0")
    receive(api.workspace_id, api.contact(email="ada@example.com")["id"], channel_id)
    assert "1 unassigned conversation waits in the queue." in says("availability = 'away'")
    assert "All of them are away." in says()
    owner.post(f"settings/members/{member_id}/remove")

    assert "None of the chosen members is in the workspace any more" in says()


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("telegram", ["@BotFather", "/newbot", "token", "The webhook is set by itself"]),
        ("whatsapp", ["Phone number ID", "System users", "App secret", "Callback URL", "verify token", "messages"]),
        ("web_chat", ["https://shop.example", "shown once", "before </body>"]),
    ],
)
def test_the_form_says_step_by_step_what_to_do(owner: Person, kind: str, said: list[str]) -> None:
    page = owner.page(f"settings/channels/new/{kind}")

    steps = page[page.index("step by step") : page.index("</ol>")]
    assert [each for each in said if each not in steps] == []
