"""Outboxes: where a message begins, and how one is sent again."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from app.channels.base import Outcome, Verdict
from app.database import rows
from app.domain.conversations import messages, sending_outcomes, sendings
from app.domain.conversations.sendings import Sending
from app.errors import Conflict
from app.models.conversations import Message
from tests.cast import Api, all_of, event_kinds, in_threads
from tests.posts import make_post, open_talk, post, status_of
from tests.talks import change, locked
from tests.wires import WIRE


@pytest.fixture
def channel_id(api: Api) -> str:
    return make_post(api.workspace_id)


def end(channel_id: str, outcome: Outcome) -> None:
    """Claims what is due, and records that it came to this."""
    verdict = Verdict(outcome, code="why", detail="Because.")
    found = sendings.claim({channel_id: 100}).dispatches
    sending_outcomes.record([Sending(each.claimed, each.conversation_id, verdict, each.at) for each in found])


def resend(message_id: str) -> Any:
    message = Message.get_by_id(message_id)
    return locked(
        message.workspace_id,
        message.contact_id,
        lambda unit, _: messages.resend(replace(change(unit, message.workspace_id), resource_id=message_id)),
    )


def test_only_the_first_message_of_a_conversation_is_mail(api: Api, channel_id: str) -> None:
    post(open_talk(api, channel_id), "one", "two", "three")

    assert all_of("SELECT text FROM messages WHERE due_at IS NOT NULL") == ["one"]
    assert all_of("SELECT text FROM messages WHERE is_behind ORDER BY id") == ["two", "three"]


def test_however_queueing_and_recording_meet_nothing_is_left_behind(api: Api, channel_id: str) -> None:
    talk = open_talk(api, channel_id)
    for number in range(10):
        post(talk, f"first {number}")
        in_threads([lambda: end(channel_id, Outcome.SENT), lambda: post(talk, "second")])
        for _ in range(3):
            rows("UPDATE messages SET leased_until = NULL, status = 'queued' WHERE status = 'sending'")
            end(channel_id, Outcome.SENT)

    assert set(all_of("SELECT status FROM messages")) == {"sent"}


def test_a_message_to_a_contact_that_has_opted_out_fails_at_once(api: Api, channel_id: str) -> None:
    talk = open_talk(api, channel_id)
    rows("UPDATE contacts SET opted_out = true")

    [message_id] = post(talk, "Hello")

    message = Message.get_by_id(message_id)
    assert (message.status, message.failure["code"], message.due_at) == ("failed", "opted_out", None)
    assert event_kinds(api.workspace_id)[-1] == "message.failed"


def test_free_text_outside_the_window_fails_at_once_and_a_template_passes(
    api: Api, channel_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(WIRE), "window", timedelta(hours=24))
    talk = open_talk(api, channel_id)

    [refused] = post(talk, "Hello")
    [taken] = post(talk, "Hello", template={"name": "greeting"})

    assert (Message.get_by_id(refused).failure["code"], status_of(taken)) == ("window_closed", "queued")
    rows("UPDATE conversations SET window_ends_at = now() + interval '1 hour'")
    assert status_of(post(talk, "Hello")[0]) == "queued"


def test_over_a_channel_without_a_provider_a_message_is_sent_at_once(
    api: Api, channel_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(WIRE), "has_provider", False)

    [message_id] = post(open_talk(api, channel_id), "Hello")

    assert (status_of(message_id), Message.get_by_id(message_id).due_at) == ("sent", None)
    assert event_kinds(api.workspace_id)[-1] == "message.sent"


def test_over_a_deleted_channel_nothing_is_queued(api: Api, channel_id: str) -> None:
    talk = open_talk(api, channel_id)
    rows("UPDATE channels SET deleted_at = now()")

    [message_id] = post(talk, "Hello")

    assert Message.get_by_id(message_id).failure["code"] == "channel_deleted"


@pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.UNKNOWN])
def test_what_failed_or_is_unknown_can_be_sent_again(api: Api, channel_id: str, outcome: Outcome) -> None:
    [message_id] = post(open_talk(api, channel_id), "Hello")
    end(channel_id, outcome)
    assert Message.get_by_id(message_id).failure == {"code": "why", "detail": "Because."}

    resend(message_id)

    assert (status_of(message_id), Message.get_by_id(message_id).failure) == ("queued", None)
    end(channel_id, Outcome.SENT)
    assert status_of(message_id) == "sent"
    with pytest.raises(Conflict):
        resend(message_id)


def test_a_message_that_is_sent_again_keeps_its_place_before_those_that_wait(api: Api, channel_id: str) -> None:
    first, second, third = post(open_talk(api, channel_id), "one", "two", "three")
    end(channel_id, Outcome.UNKNOWN)

    resend(first)

    assert all_of("SELECT id FROM messages WHERE due_at IS NOT NULL") == [second]
    end(channel_id, Outcome.SENT)
    assert all_of("SELECT id FROM messages WHERE due_at IS NOT NULL") == [first]
    assert status_of(third) == "queued"
