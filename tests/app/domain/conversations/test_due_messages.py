"""Due messages: scheduled ones go at their time, once, behind what is queued then."""

from __future__ import annotations

import os
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from app.channels.base import Outcome, Verdict
from app.database import rows, transaction
from app.domain.channels import outboxes
from app.domain.conversations import messages, scheduled_messages, sending_outcomes, sendings
from app.domain.conversations.sendings import Sending
from app.domain.triggers import batches
from app.domain.work import equal_parts
from app.models.conversations import Conversation, Message
from tests.cast import Api, all_of, elsewhere, event_bodies, event_kinds, in_another_process, in_threads, one
from tests.later import go, pass_time, schedule, state
from tests.posts import make_post, open_talk, post, status_of
from tests.talks import close, locked, make_member, make_run
from tests.wires import WIRE


@pytest.fixture
def channel_id(api: Api) -> str:
    return make_post(api.workspace_id)


@pytest.fixture
def talk(api: Api, channel_id: str) -> str:
    return open_talk(api, channel_id)


def conversation(talk: str) -> Conversation:
    return Conversation.get_by_id(talk)


def claimed_in_turn(channel_id: str) -> list[str]:
    """What goes out over the channel, in that order."""
    texts = []
    while found := sendings.claim({channel_id: 10}).dispatches:
        texts += [each.text or "" for each in found]
        rows("UPDATE messages SET status = 'sent', due_at = NULL, leased_until = NULL WHERE status = 'sending'")
        rows(
            "UPDATE messages SET is_behind = false, due_at = now() WHERE id = ("
            "SELECT id FROM messages WHERE is_behind ORDER BY created_at, id LIMIT 1)"
        )
    return texts


def test_it_is_queued_at_its_time_as_if_it_were_written_then(api: Api, talk: str) -> None:
    rows("UPDATE conversations SET waiting_since = now()")
    message_id = schedule(api, talk)
    before, kinds = conversation(talk), event_kinds(api.workspace_id)

    assert (scheduled_messages.queue_some(), state(message_id)) == (0, ("scheduled", None))
    assert (before.last_message_at, before.first_answered_at, before.scheduled) == (None, None, 1)
    assert go(message_id) == 1

    message, after = Message.get_by_id(message_id), conversation(talk)
    assert (message.status, message.send_at) == ("queued", None)
    assert message.due_at is not None
    assert (after.waiting_since, after.scheduled) == (None, 0)
    assert after.first_answered_at is not None
    assert after.last_message_at >= before.created_at
    assert after.last_message_at <= message.created_at <= after.last_message_at + timedelta(milliseconds=1)
    assert (scheduled_messages.queue_some(), event_kinds(api.workspace_id)) == (0, kinds)


def test_it_blocks_none_and_takes_its_place_behind_what_is_queued_then(api: Api, channel_id: str, talk: str) -> None:
    later, sooner = schedule(api, talk, "fourth"), schedule(api, talk, "third")
    post(talk, "first", "second")
    assert go(sooner, later) == 2
    post(talk, "fifth")

    assert claimed_in_turn(channel_id) == ["first", "second", "third", "fourth", "fifth"]


def test_recording_an_outcome_brings_up_the_next_in_that_order(api: Api, channel_id: str, talk: str) -> None:
    message_id = schedule(api, talk, "third")
    first, second = post(talk, "first", "second")
    go(message_id)
    [each] = sendings.claim({channel_id: 10}).dispatches
    assert each.claimed.id == first

    sending_outcomes.record([Sending(each.claimed, talk, Verdict(Outcome.SENT), each.at)])

    assert all_of("SELECT id FROM messages WHERE due_at IS NOT NULL") == [second]
    assert all_of("SELECT id FROM messages WHERE is_behind") == [message_id]


def test_two_schedulers_queue_each_once(api: Api, talk: str) -> None:
    message_ids = [schedule(api, talk, f"{number}") for number in range(5)]
    pass_time(*message_ids)

    queued = sum(in_threads([scheduled_messages.queue_some] * 3)) + scheduled_messages.queue_some()

    assert (queued, scheduled_messages.queue_some()) == (5, 0)
    assert [status_of(message_id) for message_id in message_ids] == ["queued"] * 5
    assert conversation(talk).scheduled == 0


def test_one_whose_contact_is_locked_is_queued_later(api: Api, talk: str) -> None:
    message_id = schedule(api, talk)

    with elsewhere(lambda: rows("SELECT 1 FROM contacts FOR UPDATE")):
        assert go(message_id) == 0

    assert scheduled_messages.queue_some() == 1


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ("UPDATE contacts SET opted_out = true", "opted_out"),
        ("UPDATE conversations SET window_ends_at = now() - interval '1 second'", "window_closed"),
        ("UPDATE messages SET expires_at = now() - interval '1 second'", "expired"),
        ("UPDATE channels SET deleted_at = now()", "channel_deleted"),
    ],
)
def test_what_forbids_it_is_looked_at_when_it_goes(
    api: Api, talk: str, change: str, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(WIRE), "window", timedelta(hours=24))
    rows("UPDATE conversations SET window_ends_at = now() + interval '1 hour'")
    message_id = schedule(api, talk)
    rows(change)

    assert go(message_id) == 1

    assert state(message_id) == ("failed", code)
    body = event_bodies(api.workspace_id)[-1]
    assert (body["kind"], body["data"]["message"]["failure"]["code"]) == ("message.failed", code)
    assert conversation(talk).scheduled == 0


def test_a_window_that_is_open_when_it_is_written_is_not_looked_at(
    api: Api, talk: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(WIRE), "window", timedelta(hours=24))
    message_id = schedule(api, talk)
    rows("UPDATE conversations SET window_ends_at = now() + interval '1 hour'")

    go(message_id)

    assert state(message_id) == ("queued", None)


def test_quiet_hours_do_not_move_it(api: Api, talk: str) -> None:
    rows("""UPDATE workspaces SET quiet_hours = '{"from": "00:00", "to": "23:59"}'""")
    message_id = schedule(api, talk)

    go(message_id)

    assert state(message_id) == ("queued", None)


def test_scheduling_leaves_a_closed_conversation_closed_and_going_opens_it(api: Api, talk: str) -> None:
    close(api.workspace_id, conversation(talk).contact_id)
    message_id = schedule(api, talk)
    assert conversation(talk).status == "closed"

    go(message_id)

    assert conversation(talk).status == "open"
    assert event_kinds(api.workspace_id)[-1] == "conversation.opened"


def test_a_members_message_holds_runs_when_it_goes(api: Api, talk: str) -> None:
    message_id = schedule(api, talk)
    author = f'{{"type": "member", "id": "{make_member(api.workspace_id)}"}}'
    rows("UPDATE messages SET author = %s", (author,))
    run_id = make_run(api.workspace_id, conversation(talk).contact_id, is_released=True)
    assert conversation(talk).held_at is None

    go(message_id)

    assert conversation(talk).held_at is not None
    assert one("SELECT is_released FROM runs WHERE id = %s", run_id) is False


def test_in_a_web_chat_it_is_shown_at_its_time(api: Api, channel_id: str, talk: str) -> None:
    rows("UPDATE channels SET kind = 'web_chat'")
    message_id = schedule(api, talk)

    go(message_id)

    assert state(message_id) == ("sent", None)
    assert one("SELECT sent_at IS NOT NULL FROM messages")
    assert event_kinds(api.workspace_id)[-1] == "message.sent"


def test_of_a_workspace_with_many_a_pass_queues_some_and_of_others_too(
    api: Api, others: Api, talk: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(equal_parts, "PART", 4)
    monkeypatch.setattr(equal_parts, "SLICE_SECONDS", 0)
    theirs = schedule(others, open_talk(others, make_post(others.workspace_id)))
    pass_time(*(schedule(api, talk, f"{number}") for number in range(20)), theirs)

    assert scheduled_messages.queue_some() == 3  # two of each workspace, as far as it has them
    assert state(theirs) == ("queued", None)
    while scheduled_messages.queue_some():
        pass
    assert all_of("SELECT DISTINCT status FROM messages") == ["queued"]
    texts = all_of("SELECT text FROM messages WHERE conversation_id = %s ORDER BY created_at, id", talk)
    assert texts == [f"{number}" for number in range(20)]


def test_one_that_breaks_fails_and_blocks_no_other(api: Api, talk: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bad, good = schedule(api, talk, "bad"), schedule(api, talk, "good")
    real = messages.queue_draft

    def queue_draft(change: Any, contact: Any, found: Any, message: Message) -> Message:
        if message.text == "bad":
            raise RuntimeError
        return real(change, contact, found, message)

    monkeypatch.setattr(messages, "queue_draft", queue_draft)

    assert go(bad, good) == 2

    assert (state(bad), state(good)) == (("failed", "error"), ("queued", None))
    assert conversation(talk).scheduled == 0
    assert event_kinds(api.workspace_id)[-1] == "message.failed"


def test_a_process_that_dies_leaves_it_scheduled(api: Api, talk: str) -> None:
    message_id = schedule(api, talk)
    pass_time(message_id)

    assert in_another_process(_queue_and_die) != 0

    assert state(message_id) == ("scheduled", None)
    assert scheduled_messages.queue_some() == 1


def _queue_and_die() -> None:
    scheduled_messages._give_up = lambda _: os._exit(9)  # within the transaction, when all is written
    scheduled_messages.queue_some()


def test_what_is_due_is_found_by_an_index(api: Api, talk: str) -> None:
    schedule(api, talk)
    rows(
        """
        INSERT INTO messages (id, workspace_id, conversation_id, contact_id, channel_id, direction, text, author,
            status, send_at)
        SELECT 'msg_' || n, workspace_id, conversation_id, contact_id, channel_id, 'out', 'x', author,
            CASE WHEN n %% 10 = 0 THEN 'scheduled' ELSE 'sent' END,
            CASE WHEN n %% 10 = 0 THEN now() + interval '1 hour' END
        FROM messages, generate_series(1, %s) AS n RETURNING 1
        """,
        (20_000,),
    )
    rows("ANALYZE messages")

    due = scheduled_messages._DUE % {"each": 50, "owners": f"ARRAY['{api.workspace_id}']"}
    replied = scheduled_messages._OF_CONVERSATION.replace("%s", f"'{talk}'")
    of_talk = f"""
        SELECT * FROM messages WHERE conversation_id = '{talk}' AND send_at IS NOT NULL ORDER BY send_at, id LIMIT 50"""
    of_all = of_talk.replace("conversation_id", "workspace_id").replace(talk, api.workspace_id)
    for query in (due, scheduled_messages._OWNERS, f"SELECT {scheduled_messages.IS_ANY_DUE}", replied, of_talk, of_all):
        plan = "\n".join(line for (line,) in rows(f"EXPLAIN {query}"))
        assert "messages_scheduled" in plan
        assert "Seq Scan on messages" not in plan


def test_a_conversation_whose_messages_wait_is_asked_about_once(
    api: Api, talk: str, statements: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked(count: int) -> int:
        pass_time(*(schedule(api, talk, f"{number}") for number in range(count)))
        statements.clear()
        scheduled_messages.queue_some()
        return len(statements)

    asked(1)
    assert asked(2) == asked(20)


def test_a_merge_moves_it_with_its_conversation(api: Api, talk: str) -> None:
    message_id = schedule(api, talk)
    kept = api.contact(external_id="kept")["id"]
    api.done(api.post(f"contacts/{kept}/merge", {"contact_id": conversation(talk).contact_id}))

    go(message_id)

    assert (state(message_id), Message.get_by_id(message_id).contact_id) == (("queued", None), kept)
    assert conversation(talk).scheduled == 0


def test_what_a_unit_queues_knows_of_it(api: Api, talk: str) -> None:
    go(schedule(api, talk))
    found = conversation(talk)

    place = locked(api.workspace_id, found.contact_id, lambda unit, _: outboxes.place(unit, found))

    assert place["is_behind"] is True


@pytest.mark.parametrize("since", ["queued", "put off"])
def test_one_that_was_queued_or_put_off_since_it_was_found_is_left_alone(api: Api, talk: str, since: str) -> None:
    message_id = schedule(api, talk)
    due = messages.MessageIds(api.workspace_id, message_id, talk, conversation(talk).contact_id)
    if since == "queued":
        go(message_id)
    before = (Message.get_by_id(message_id), conversation(talk))

    with transaction():
        [result] = batches.run([partial(scheduled_messages._queue, due, 0)], due.keys)

    assert result is False
    assert [each.__data__ for each in before] == [
        each.__data__ for each in (Message.get_by_id(message_id), conversation(talk))
    ]
