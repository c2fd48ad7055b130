"""Sendings: which messages are claimed, and when."""

from __future__ import annotations

import itertools
from typing import Any, Literal

import pytest

from app.channels.base import Outcome, Rate, Verdict
from app.database import rows
from app.domain.channels import outboxes
from app.domain.conversations import sending_outcomes, sendings
from app.domain.conversations.sendings import Dispatch, Sending
from app.mailbox import Found
from app.models.conversations import Message
from tests.cast import Api, all_of, event_kinds, in_threads, one, rung_on
from tests.posts import API, AUTOMATION, BROADCAST, MEMBER, make_post, open_talk, post, status_of
from tests.wires import WIRE

SENT = Verdict(Outcome.SENT)


@pytest.fixture
def channel_id(api: Api) -> str:
    return make_post(api.workspace_id)


def claim(*channel_ids: str, room: int = 100) -> Found[Dispatch, Sending]:
    return sendings.claim(dict.fromkeys(channel_ids, room))


def texts(batch: Found[Dispatch, Sending]) -> list[str | None]:
    return [dispatch.text for dispatch in batch.dispatches]


def finish(dispatch: Dispatch, verdict: Verdict = SENT) -> dict[str, float]:
    sending = Sending(dispatch.claimed, dispatch.conversation_id, verdict, dispatch.at, dispatch.kind.conversation_rate)
    later, due = sending_outcomes.record([sending])
    assert not later
    return due


def codes(batch: Found[Dispatch, Sending]) -> list[str | None]:
    return [sending.verdict.code for sending in batch.settled]


def test_a_claim_has_all_that_a_request_needs_and_commits_that_it_is_made(api: Api, channel_id: str) -> None:
    talk = open_talk(api, channel_id)
    [message_id] = post(talk, "Hello", template={"name": "greeting"})

    [dispatch] = claim(channel_id).dispatches

    assert (dispatch.claimed.id, dispatch.claimed.owner, dispatch.claimed.claim) == (message_id, channel_id, 1)
    assert (dispatch.to, dispatch.text, dispatch.template) == ("ada", "Hello", {"name": "greeting"})
    assert (dispatch.kind, dispatch.account.credentials) == (WIRE, {"token": "good"})
    assert status_of(message_id) == "sending"
    assert claim(channel_id).dispatches == []


def test_queueing_rings_for_the_channel(api: Api, channel_id: str) -> None:
    post(open_talk(api, channel_id), "Hello")

    assert rung_on("messages") == [channel_id]


def test_of_a_conversation_one_message_goes_out_at_a_time_in_the_order_of_queueing(api: Api, channel_id: str) -> None:
    talk = open_talk(api, channel_id)
    post(talk, "one", "two")
    post(talk, "three")
    seen = []

    for _ in range(3):
        batch = claim(channel_id)
        seen.append(texts(batch))
        assert claim(channel_id).dispatches == []
        finish(batch.dispatches[0])

    assert seen == [["one"], ["two"], ["three"]]
    assert claim(channel_id).dispatches == []


def test_conversations_do_not_wait_for_each_other(api: Api, channel_id: str) -> None:
    for name in ("ada", "bob"):
        post(open_talk(api, channel_id, name), f"{name} 1", f"{name} 2")

    assert sorted(filter(None, texts(claim(channel_id)))) == ["ada 1", "bob 1"]


def test_the_room_of_each_channel_is_kept(api: Api, channel_id: str) -> None:
    other_id = make_post(api.workspace_id)
    for each, name in itertools.product((channel_id, other_id), ("ada", "bob", "eve")):
        post(open_talk(api, each, name), "Hello")

    batch = sendings.claim({channel_id: 1, other_id: 2})

    assert sorted(dispatch.claimed.owner for dispatch in batch.dispatches) == sorted([channel_id, other_id, other_id])
    assert batch.pauses == {channel_id: (0, False), other_id: (0, False)}


def test_people_go_before_automations(api: Api, channel_id: str) -> None:
    for name in ("ada", "bob", "eve"):
        post(open_talk(api, channel_id, name), name, author=AUTOMATION if name != "eve" else API)

    assert texts(claim(channel_id, room=1)) == ["eve"]
    assert texts(claim(channel_id, room=1)) == ["ada"]


def test_broadcasts_go_last(api: Api, channel_id: str) -> None:
    for name in ("ada", "bob"):
        post(open_talk(api, channel_id, name), name, author=BROADCAST, broadcast_id=BROADCAST["id"])
    post(open_talk(api, channel_id, "cem"), "cem", author=AUTOMATION)
    post(open_talk(api, channel_id, "eve"), "eve")

    claimed = [texts(claim(channel_id, room=room)) for room in (1, 2, 9)]

    assert [sorted(filter(None, each)) for each in claimed] == [["eve"], ["ada", "cem"], ["bob"]]


@pytest.mark.parametrize(
    "condition",
    ["state = 'reauthorization_required'", "state = 'disconnected'", "deleted_at = now()"],
)
def test_only_connected_channels_are_served(api: Api, channel_id: str, condition: str) -> None:
    post(open_talk(api, channel_id), "Hello")
    rows(f"UPDATE channels SET {condition}")

    batch = claim(channel_id)

    assert (batch.dispatches, batch.pauses) == ([], {})
    assert outboxes.ring_connected([channel_id]) == 0
    rows("UPDATE channels SET state = 'connected', deleted_at = NULL")
    assert texts(claim(channel_id)) == ["Hello"]
    assert outboxes.ring_connected([channel_id]) == 1


def test_a_paused_channel_is_looked_into_when_its_pause_ends(api: Api, channel_id: str) -> None:
    post(open_talk(api, channel_id), "Hello")
    rows("UPDATE channels SET paused_until = now() + interval '60 seconds'")

    batch = claim(channel_id)

    assert batch.dispatches == []
    seconds, is_closed = batch.pauses[channel_id]
    assert is_closed
    assert 55 < seconds <= 60


def test_a_message_for_later_is_looked_for_then(api: Api, channel_id: str) -> None:
    post(open_talk(api, channel_id), "Hello")
    [dispatch] = claim(channel_id).dispatches

    due = finish(dispatch, Verdict(Outcome.LATER, pause_seconds=60))

    batch = claim(channel_id)
    assert batch.dispatches == []
    assert 55 < batch.pauses[channel_id][0] <= 60
    assert 55 < due[channel_id] <= 60
    assert not batch.pauses[channel_id][1]


# What is no longer right


def test_nothing_is_sent_to_a_contact_that_has_opted_out_meanwhile(api: Api, channel_id: str) -> None:
    post(open_talk(api, channel_id), "Hello")
    rows("UPDATE contacts SET opted_out = true")

    batch = claim(channel_id)

    assert (batch.dispatches, codes(batch)) == ([], ["opted_out"])


def test_a_member_may_answer_for_a_day_a_contact_that_has_opted_out(api: Api, channel_id: str) -> None:
    talk = open_talk(api, channel_id)
    rows("UPDATE contacts SET opted_out = true")

    for hours, status in ((23, "queued"), (25, "failed")):
        rows("UPDATE conversations SET asked_at = now() - %s * interval '1 hour'", (hours,))
        sent = {name: post(talk, name, author={"type": name, "id": "x"})[0] for name in ("member", "api", "automation")}
        assert [status_of(each) for each in sent.values()] == [status, "failed", "failed"]

    batch = claim(channel_id)  # a day has passed since it was queued
    assert (batch.dispatches, codes(batch)) == ([], ["opted_out"])
    sending_outcomes.record(batch.settled)
    rows("UPDATE conversations SET asked_at = now() - interval '23 hours'")
    post(talk, "Here it is", author=MEMBER)
    assert texts(claim(channel_id)) == ["Here it is"]


def test_nothing_is_sent_to_a_contact_that_was_deleted(api: Api, channel_id: str) -> None:
    post(open_talk(api, channel_id), "Hello")
    rows("DELETE FROM contacts")

    assert codes(claim(channel_id)) == ["gone"]


def test_nothing_is_sent_without_an_address(api: Api, channel_id: str) -> None:
    post(open_talk(api, channel_id), "Hello")
    rows("UPDATE conversations SET peer = NULL")

    assert codes(claim(channel_id)) == ["no_address"]


def test_free_text_whose_window_has_closed_is_not_sent_but_a_template_is(
    api: Api, channel_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from datetime import timedelta

    post(open_talk(api, channel_id, "ada"), "Hello")
    post(open_talk(api, channel_id, "bob"), "Hello", template={"name": "greeting"})
    rows("UPDATE conversations SET window_ends_at = now() - interval '1 second'")
    monkeypatch.setattr(type(WIRE), "window", timedelta(hours=24))

    batch = claim(channel_id)

    assert [dispatch.to for dispatch in batch.dispatches] == ["bob"]
    assert codes(batch) == ["window_closed"]


def test_a_message_whose_worker_died_is_unknown_and_the_next_one_goes_out(api: Api, channel_id: str) -> None:
    talk = open_talk(api, channel_id)
    first, second = post(talk, "one", "two")
    [dispatch] = claim(channel_id).dispatches
    rows("UPDATE messages SET leased_until = now() - interval '1 second' WHERE leased_until IS NOT NULL")

    batch = claim(channel_id)

    assert batch.dispatches == []
    sending_outcomes.record(batch.settled)
    assert (status_of(first), status_of(second)) == ("unknown", "queued")
    assert Message.get_by_id(first).failure["code"] == "interrupted"
    finish(dispatch)  # the worker was only frozen
    assert status_of(first) == "unknown"
    assert texts(claim(channel_id)) == ["two"]


def test_while_no_key_reads_its_credentials_a_channel_waits(api: Api, channel_id: str) -> None:
    [message_id] = post(open_talk(api, channel_id), "Hello")
    rows("UPDATE channels SET credentials = 'sealed with another key'")

    batch = claim(channel_id)
    sending_outcomes.record(batch.settled)

    assert (batch.dispatches, status_of(message_id)) == ([], "queued")
    assert one("SELECT paused_until > now() FROM channels")


# Rates


def test_a_channel_gets_no_more_than_its_rate(api: Api, channel_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(WIRE), "channel_rate", Rate(20))
    for number in range(10):
        post(open_talk(api, channel_id, str(number)), "Hello")

    batch = claim(channel_id)

    # One, and what was missed in a tenth of a second.
    assert len(batch.dispatches) == 3
    seconds, is_closed = batch.pauses[channel_id]
    assert is_closed
    assert 0 < seconds <= 0.05
    rows("UPDATE channels SET paced_until = paced_until + interval '60 seconds'")
    assert claim(channel_id).dispatches == []
    rows("UPDATE channels SET paced_until = now() - interval '60 seconds'")
    assert len(claim(channel_id).dispatches) == 3


def test_workers_share_the_rate_of_a_channel(api: Api, channel_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(WIRE), "channel_rate", Rate(0.01))
    for number in range(10):
        post(open_talk(api, channel_id, str(number)), "Hello")

    batches: list[Any] = in_threads([lambda: claim(channel_id)] * 8)

    assert sum(len(batch.dispatches) for batch in batches) == 1


def test_a_conversation_gets_no_more_than_its_rate(api: Api, channel_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(WIRE), "conversation_rate", Rate(1 / 60, burst=3))
    talk = open_talk(api, channel_id)
    post(talk, *map(str, range(4)))
    post(open_talk(api, channel_id, "bob"), "Hello", author=AUTOMATION)

    assert texts(claim(channel_id, room=1)) == ["0"]
    assert len(claim(channel_id).dispatches) == 1
    rows("UPDATE messages SET leased_until = NULL, status = 'queued' WHERE text = '0'")
    for text in "012":
        [dispatch] = claim(channel_id, room=1).dispatches
        assert dispatch.text == text
        due = finish(dispatch)

    assert 55 < due[channel_id] <= 60
    assert claim(channel_id).dispatches == []
    assert all_of("SELECT text FROM messages WHERE due_at > now()") == ["3"]


def test_a_message_that_is_queued_later_keeps_the_rate_of_its_conversation(
    api: Api, channel_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(WIRE), "conversation_rate", Rate(1 / 60))
    talk = open_talk(api, channel_id)
    post(talk, "one")
    finish(claim(channel_id).dispatches[0])

    post(talk, "two")

    batch = claim(channel_id)
    assert batch.dispatches == []
    assert 55 < batch.pauses[channel_id][0] <= 60


# Expiry


def test_a_message_that_expired_while_it_waited_fails_and_is_not_sent(api: Api, channel_id: str) -> None:
    late, timely = (post(open_talk(api, channel_id, name), name)[0] for name in ("late", "timely"))
    rows("UPDATE messages SET expires_at = now() + interval '1 hour'")
    rows("UPDATE messages SET expires_at = now() WHERE id = %s", (late,))

    claimed = claim(channel_id)

    assert (texts(claimed), codes(claimed)) == (["timely"], ["expired"])
    sending_outcomes.record(claimed.settled)
    failure = {"code": "expired", "detail": "The message expired before it could be sent."}
    assert (status_of(late), Message.get_by_id(late).failure) == ("failed", failure)
    assert event_kinds(api.workspace_id)[-1] == "message.failed"
    assert status_of(timely) == "sending"


# What a provider puts off


def put_off(channel_id: str, code: str | None = "throttled") -> None:
    """Claims what there is, whenever it is due; the provider asks to send it later."""
    rows("UPDATE messages SET due_at = now() WHERE due_at IS NOT NULL")
    for dispatch in claim(channel_id).dispatches:
        finish(dispatch, Verdict(Outcome.LATER, code=code, detail="Not now.", pause_seconds=60))


def test_a_message_that_its_provider_puts_off_for_a_day_fails_and_the_next_one_goes_out(
    api: Api, channel_id: str
) -> None:
    first, second = post(open_talk(api, channel_id), "one", "two")
    put_off(channel_id)
    assert (status_of(first), Message.get_by_id(first).failure) == ("queued", None)
    rows("UPDATE messages SET put_off_at = put_off_at - interval '23 hours'")
    put_off(channel_id)
    assert status_of(first) == "queued"
    rows("UPDATE messages SET put_off_at = put_off_at - interval '2 hours'")

    put_off(channel_id)

    failure = {"code": "expired", "detail": "The provider did not take it for a day. Not now."}
    assert (status_of(first), Message.get_by_id(first).failure) == ("failed", failure)
    assert event_kinds(api.workspace_id)[-1] == "message.failed"
    assert texts(claim(channel_id)) == ["two"]
    assert status_of(second) == "sending"


def test_a_message_that_is_sent_again_has_another_day(api: Api, channel_id: str) -> None:
    [message_id] = post(open_talk(api, channel_id), "Hello")
    put_off(channel_id)
    rows("UPDATE messages SET put_off_at = put_off_at - interval '25 hours'")
    put_off(channel_id)

    api.done(api.post(f"messages/{message_id}/resend"))
    put_off(channel_id)

    assert status_of(message_id) == "queued"


@pytest.mark.parametrize(("code", "status"), [(None, "queued"), ("unreachable", "failed")])
def test_a_message_expires_whose_provider_is_not_reached_for_a_day_but_not_by_our_own_delays(
    api: Api, channel_id: str, code: str | None, status: str
) -> None:
    [message_id] = post(open_talk(api, channel_id), "Hello")
    put_off(channel_id, "unreachable")
    rows("UPDATE messages SET put_off_at = put_off_at - interval '25 hours'")

    put_off(channel_id, code)

    assert status_of(message_id) == status


@pytest.mark.parametrize("pauses", ["channel", "conversation"])
def test_a_provider_that_fails_pauses_the_channel_unless_the_contact_is_the_reason(
    api: Api, channel_id: str, pauses: Literal["channel", "conversation"]
) -> None:
    [message_id] = post(open_talk(api, channel_id), "Hello")
    [dispatch] = claim(channel_id).dispatches

    finish(dispatch, Verdict(Outcome.UNKNOWN, code="provider_error", pause_seconds=5, pauses=pauses))

    assert status_of(message_id) == "unknown"
    assert one("SELECT paused_until > now() FROM channels") is (True if pauses == "channel" else None)
