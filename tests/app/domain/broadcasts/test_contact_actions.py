"""Sending: who gets a broadcast's message, over which channel, and why others are skipped."""

from __future__ import annotations

import json
from typing import Any

import pytest

from app.channels.base import Rate
from app.database import count, rows
from app.domain.broadcasts import broadcasts
from app.domain.broadcasts.contact_actions import SendMessage
from app.domain.conversations import sending_checks
from app.lib import clock
from tests.broadcasting import begin, later, move, outcomes, people, settle, shown, texts, work
from tests.cast import Api, one
from tests.talks import make_channel, make_member, receive, write
from tests.wires import WIRE


def whatsapp(workspace_id: str) -> str:
    channel_id = make_channel(workspace_id)
    count("UPDATE channels SET kind = 'whatsapp' WHERE id = %s", (channel_id,))
    return channel_id


def test_it_goes_to_the_latest_conversation_on_a_connected_channel(api: Api) -> None:
    first, second = make_channel(api.workspace_id), make_channel(api.workspace_id)
    [ada] = people(api, 1)
    conversations = {}
    for channel_id in (first, second):
        message = receive(api.workspace_id, ada, channel_id)
        count("UPDATE conversations SET peer = '1' WHERE id = %s", (message.conversation_id,))
        conversations[channel_id] = message.conversation_id

    work(latest := begin(api.workspace_id))
    work(chosen := begin(api.workspace_id, channel_id=first))

    assert one("SELECT conversation_id FROM messages WHERE broadcast_id = %s", latest) == conversations[second]
    assert one("SELECT conversation_id FROM messages WHERE broadcast_id = %s", chosen) == conversations[first]


def test_contacts_are_skipped_with_a_reason(api: Api) -> None:
    make_channel(api.workspace_id)
    opted_out, gone, reached = people(api, 3)
    nowhere = api.contact(email="ada@example.com")["id"]
    broadcast_id = begin(api.workspace_id)
    api.done(api.patch(f"contacts/{opted_out}", {"opted_out": True}))
    api.done(api.delete(f"contacts/{gone}"))

    work(broadcast_id)

    expected = {opted_out: "opted_out", gone: "erased", reached: "sent", nowhere: "no_channel"}
    assert {each: outcomes(broadcast_id).get(each) for each in expected if each != gone} == {
        each: reason for each, reason in expected.items() if each != gone
    }
    assert broadcasts.represent(shown(broadcast_id))["skipped"]["no_channel"] == 1


def test_one_who_is_erased_after_the_start_is_skipped(api: Api) -> None:
    make_channel(api.workspace_id)
    gone, reached = people(api, 2)
    broadcast_id = begin(api.workspace_id, per_second=1)
    work(broadcast_id)  # writes down whom it is for, and reaches one
    api.done(api.delete(f"contacts/{reached}"))

    later(broadcast_id)

    assert outcomes(broadcast_id) == {gone: "sent", reached: "erased"}


def test_free_text_needs_an_open_window_and_a_template_does_not(api: Api) -> None:
    whatsapp(api.workspace_id)
    [ada] = people(api, 1, first_name="Ada")

    work(text := begin(api.workspace_id))
    template = {"name": "sale", "parameters": ["{{ contact.first_name }}", 3]}
    work(templated := begin(api.workspace_id, message={"template": template}))

    assert outcomes(text) == {ada: "window_closed"}
    assert outcomes(templated) == {ada: "sent"}
    sent = one("SELECT template FROM messages WHERE broadcast_id = %s", templated)
    assert sent == {"name": "sale", "parameters": ["Ada", 3]}


def test_a_template_with_an_empty_parameter_skips_the_contact(api: Api) -> None:
    whatsapp(api.workspace_id)
    [nameless] = people(api, 1)
    parameters = [{"type": "text", "text": "{{ contact.first_name }}"}]
    template = {"name": "sale", "language": "de", "components": [{"type": "body", "parameters": parameters}]}

    work(broadcast_id := begin(api.workspace_id, message={"template": template}))

    assert outcomes(broadcast_id) == {nameless: "template"}
    assert one("SELECT count(*) FROM messages") == 0


def test_a_template_alone_goes_to_no_channel_without_templates(api: Api) -> None:
    telegram = make_channel(api.workspace_id)
    count("UPDATE channels SET kind = 'telegram' WHERE id = %s", (telegram,))
    [ada] = people(api, 1)
    message = receive(api.workspace_id, ada, telegram)
    count("UPDATE conversations SET peer = '1' WHERE id = %s", (message.conversation_id,))

    work(broadcast_id := begin(api.workspace_id, message={"template": {"name": "sale"}}))

    assert outcomes(broadcast_id) == {ada: "template"}


def test_two_contacts_with_one_address_count_as_one(api: Api) -> None:
    channel_id = make_channel(api.workspace_id)
    ada, bob = people(api, 2)
    for each in (ada, bob):
        message = receive(api.workspace_id, each, channel_id)
        count("UPDATE conversations SET peer = 'chat-1' WHERE id = %s", (message.conversation_id,))

    work(together := begin(api.workspace_id))
    apart = begin(api.workspace_id, per_second=1)
    work(apart)
    later(apart)

    assert outcomes(together) == outcomes(apart) == {ada: "sent", bob: "duplicate"}


def test_a_contact_does_not_get_the_same_text_again_and_again(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending_checks, "MOST_IDENTICAL", 1)
    make_channel(api.workspace_id)
    [ada] = people(api, 1)

    work(begin(api.workspace_id))
    work(again := begin(api.workspace_id))

    assert outcomes(again) == {ada: "limit"}


LONG = "{% for each in (1..3000) %}abc{% endfor %}"


@pytest.mark.parametrize(
    "message",
    [
        {"text": "{{ contact.first_name }}"},
        {"text": LONG},
        {"template": {"parameters": [LONG, LONG]}},
        {"template": dict.fromkeys("abcdefgh", "{% for each in (1..9000) %}{% endfor %}")},
    ],
    ids=["empty", "too long", "template too long", "too many steps"],
)
def test_a_message_that_cannot_be_made_for_a_contact_skips_it(api: Api, message: dict[str, Any]) -> None:
    make_channel(api.workspace_id)
    [ada] = people(api, 1)

    work(broadcast_id := begin(api.workspace_id, message=message))

    assert outcomes(broadcast_id) == {ada: "template"}
    assert one("SELECT count(*) FROM conversations") == 0


def test_quiet_hours_are_kept_by_the_clock_of_each_contact(api: Api) -> None:
    make_channel(api.workspace_id)
    awake, asleep = people(api, 2)
    hour = clock.now().hour
    quiet = {"from": f"{(hour - 1) % 24:02}:00", "to": f"{(hour + 2) % 24:02}:00"}
    count("UPDATE workspaces SET quiet_hours = %s", (json.dumps(quiet),))
    api.done(api.patch(f"contacts/{awake}", {"timezone": "Etc/GMT+6"}))

    broadcast = work(broadcast_id := begin(api.workspace_id))

    assert outcomes(broadcast_id) == {awake: "sent"}
    assert broadcast.wakes_at is not None
    [(due_at,)] = rows("SELECT due_at FROM broadcast_parts")
    assert due_at.strftime("%H:%M") == quiet["to"]
    settle(broadcast_id)
    count("UPDATE workspaces SET quiet_hours = NULL")
    later(broadcast_id, 4 * 3_600)
    assert outcomes(broadcast_id) == {awake: "sent", asleep: "sent"}


def test_it_pauses_while_a_channel_has_to_be_connected_again(api: Api) -> None:
    make_channel(api.workspace_id)
    [ada] = people(api, 1)
    broadcast_id = begin(api.workspace_id)
    count("UPDATE channels SET state = 'reauthorization_required'")

    broadcast = work(broadcast_id)

    assert (broadcast.state, outcomes(broadcast_id)) == ("paused", {})
    assert broadcast.problem == "The channel 'Test' has to be connected again. Do that, then continue."
    count("UPDATE channels SET state = 'connected'")
    assert move(broadcast_id, "continue") is None
    assert work(broadcast_id).problem is None
    assert outcomes(broadcast_id) == {ada: "sent"}


def test_a_canary_that_could_not_go_goes_after_the_pause(api: Api) -> None:
    make_channel(api.workspace_id, "disconnected")
    ada, _ = people(api, 2)
    broadcast_id = begin(api.workspace_id, canary=True)
    assert work(broadcast_id).problem == "No channel is connected. Connect one, then continue."
    count("UPDATE channels SET state = 'connected'")

    assert move(broadcast_id, "continue") is None

    assert work(broadcast_id).state == "canary"
    assert outcomes(broadcast_id) == {ada: "sent"}


def test_the_messages_of_a_conversation_stay_in_order(api: Api) -> None:
    channel_id = make_channel(api.workspace_id)
    ada, bob = people(api, 2)
    receive(api.workspace_id, ada, channel_id)
    count("UPDATE conversations SET peer = 'chat-1'")
    work(broadcast_id := begin(api.workspace_id))

    message = write(api.workspace_id, ada, make_member(api.workspace_id), "Second")

    assert message.is_behind
    assert texts(broadcast_id).keys() == {ada, bob}


@pytest.mark.parametrize(("rate", "most"), [(None, 1_000), (Rate(80, 1), 160), (Rate(30, 1), 60)])
def test_two_seconds_of_a_rate_are_under_way(api: Api, monkeypatch: pytest.MonkeyPatch, rate: Any, most: int) -> None:
    monkeypatch.setattr(type(WIRE), "channel_rate", rate)
    make_channel(api.workspace_id)
    broadcast = shown(begin(api.workspace_id))

    assert SendMessage(broadcast).room() == most
