"""Replies: which run gets a message, and which of several runs waits for one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from app.domain.conversations import messages, replies
from app.domain.work.units import Unit
from app.lib.json import timestamp
from app.models.contacts import Contact
from app.models.conversations import Conversation, Message
from app.models.runs import Run
from tests.cast import Api, all_of, in_threads, one, rung_on
from tests.talks import change, close, locked, make_channel, make_run, receive, recent, undo

Task = Callable[[Unit, Contact], None]


@pytest.fixture
def conversation_id(workspace_id: str, contact_id: str, channel_id: str) -> str:
    return str(receive(workspace_id, contact_id, channel_id, "Hi").conversation_id)


def expect(run_id: str) -> Task:
    """What `wait_for_reply` and the engine do when the run begins to wait."""

    def task(unit: Unit, contact: Contact) -> None:
        conversation = recent(unit, contact)
        replies.expect(unit, conversation, unit.get(Run, contact.workspace_id, "id", run_id))
        run = unit.get(Run, contact.workspace_id, "id", run_id)
        waiting = {"status": "waiting", "waits_for": "reply", "conversation_id": conversation.id, "due_at": None}
        unit.put(Run(**{**run.__data__, **waiting}))

    return task


def prompt(run_id: str, unit: Unit, contact: Contact) -> str:
    """What `send_message` and the engine do."""
    author = {"type": "automation", "id": "aut_1"}
    changed = change(unit, contact.workspace_id)
    queued = messages.queue(changed, contact, recent(unit, contact), "Well?", author=author, run_id=run_id)
    run = unit.get(Run, contact.workspace_id, "id", run_id)
    unit.put(Run(**{**run.__data__, "prompted": queued.id}))
    return str(queued.id)


def prompting(run_id: str) -> Callable[[Unit, Contact], str]:
    return lambda unit, contact: prompt(run_id, unit, contact)


def arrived(run_id: str) -> Callable[[Unit, Contact], Message | None]:
    def task(unit: Unit, contact: Contact) -> Message | None:
        return replies.arrived(unit, recent(unit, contact), unit.get(Run, contact.workspace_id, "id", run_id))

    return task


def due() -> list[str]:
    return all_of("SELECT id FROM runs WHERE due_at IS NOT NULL ORDER BY id")


# To a run that waits


def test_a_reply_makes_the_waiting_run_due(
    workspace_id: str, contact_id: str, channel_id: str, conversation_id: str
) -> None:
    run_id = make_run(workspace_id, contact_id)
    locked(workspace_id, contact_id, expect(run_id))

    reply = receive(workspace_id, contact_id, channel_id, "Yes", "yes")

    run = Run.get_by_id(run_id)
    assert run.due_at is not None
    assert run.resume_at is None
    answer = {"text": "Yes", "button_id": "yes", "message_id": reply.id, "at": timestamp(reply.created_at)}
    assert run.answer == answer
    assert one("SELECT run_id FROM messages WHERE id = %s", reply.id) == run_id
    assert rung_on("runs") == [workspace_id]


def test_a_message_reaches_no_run_if_none_waits(
    workspace_id: str, contact_id: str, channel_id: str, conversation_id: str
) -> None:
    make_run(workspace_id, contact_id, conversation_id=conversation_id, waits_for="time")

    receive(workspace_id, contact_id, channel_id)

    assert due() == []
    assert all_of("SELECT run_id FROM messages") == [None, None]


def test_a_reply_in_another_conversation_reaches_no_run(
    workspace_id: str, contact_id: str, conversation_id: str
) -> None:
    run_id = make_run(workspace_id, contact_id)
    locked(workspace_id, contact_id, expect(run_id))

    receive(workspace_id, contact_id, make_channel(workspace_id))

    assert due() == []


def test_a_reply_of_another_contact_reaches_no_run(
    api: Api, workspace_id: str, contact_id: str, channel_id: str, conversation_id: str
) -> None:
    run_id = make_run(workspace_id, contact_id)
    locked(workspace_id, contact_id, expect(run_id))

    receive(workspace_id, api.contact(external_id="eve")["id"], channel_id)

    assert due() == []


@pytest.mark.usefixtures("conversation_id")
def test_a_reply_reopens_a_closed_conversation_and_counts(workspace_id: str, contact_id: str, channel_id: str) -> None:
    run_id = make_run(workspace_id, contact_id)
    locked(workspace_id, contact_id, expect(run_id))
    close(workspace_id, contact_id)

    receive(workspace_id, contact_id, channel_id)

    assert due() == [run_id]


@pytest.mark.usefixtures("conversation_id")
@pytest.mark.parametrize(
    "fields", [{"status": "completed", "waits_for": None}, {"waits_for": "time"}, {"answer": {"text": "No"}}]
)
def test_a_run_that_waits_no_more_gets_no_reply(
    workspace_id: str, contact_id: str, channel_id: str, fields: dict[str, Any]
) -> None:
    run_id = make_run(workspace_id, contact_id)
    locked(workspace_id, contact_id, expect(run_id))
    Run.update(**fields).where(Run.id == run_id).execute()

    reply = receive(workspace_id, contact_id, channel_id)

    assert due() == []
    assert reply.run_id is None


@pytest.mark.usefixtures("conversation_id")
def test_of_two_quick_replies_the_first_reaches_the_run(workspace_id: str, contact_id: str, channel_id: str) -> None:
    run_id = make_run(workspace_id, contact_id)
    locked(workspace_id, contact_id, expect(run_id))

    both = in_threads([lambda text=text: receive(workspace_id, contact_id, channel_id, text) for text in "ab"])

    [taken] = [reply for reply in both if reply.run_id == run_id]
    [left] = [reply for reply in both if reply.run_id is None]
    assert taken.created_at < left.created_at
    assert Run.get_by_id(run_id).answer["message_id"] == taken.id


# To the newest that waits


@pytest.mark.usefixtures("conversation_id")
def test_a_newer_run_takes_over_from_an_older_one(workspace_id: str, contact_id: str, channel_id: str) -> None:
    older, newer = make_run(workspace_id, contact_id), make_run(workspace_id, contact_id)
    locked(workspace_id, contact_id, expect(older))

    locked(workspace_id, contact_id, expect(newer))

    assert due() == [older]
    assert Run.get_by_id(older).answer == {"taken_over_by": newer}
    assert receive(workspace_id, contact_id, channel_id).run_id == newer


@pytest.mark.usefixtures("conversation_id")
def test_a_run_takes_over_from_one_of_the_same_unit(workspace_id: str, contact_id: str, channel_id: str) -> None:
    runs = [make_run(workspace_id, contact_id) for _ in range(3)]

    def all_expect(unit: Unit, contact: Contact) -> None:
        for run_id in (runs[2], runs[0], runs[1]):
            expect(run_id)(unit, contact)

    locked(workspace_id, contact_id, all_expect)

    assert due() == sorted([runs[0], runs[2]])
    assert Run.get_by_id(runs[2]).answer == {"taken_over_by": runs[0]}
    assert Run.get_by_id(runs[0]).answer == {"taken_over_by": runs[1]}
    assert receive(workspace_id, contact_id, channel_id).run_id == runs[1]


@pytest.mark.usefixtures("conversation_id")
def test_a_run_that_has_its_reply_keeps_it(workspace_id: str, contact_id: str, channel_id: str) -> None:
    older, newer = make_run(workspace_id, contact_id), make_run(workspace_id, contact_id)
    locked(workspace_id, contact_id, expect(older))
    receive(workspace_id, contact_id, channel_id, "Yes")

    locked(workspace_id, contact_id, expect(newer))

    assert Run.get_by_id(older).answer["text"] == "Yes"


@pytest.mark.usefixtures("conversation_id")
def test_a_run_that_waits_again_does_not_take_over_from_itself(
    workspace_id: str, contact_id: str, channel_id: str
) -> None:
    run_id = make_run(workspace_id, contact_id)
    locked(workspace_id, contact_id, expect(run_id))

    locked(workspace_id, contact_id, expect(run_id))

    assert due() == []
    assert receive(workspace_id, contact_id, channel_id).run_id == run_id


# Before the wait


@pytest.mark.usefixtures("conversation_id")
def test_a_reply_that_came_after_the_prompt_is_taken_once(workspace_id: str, contact_id: str, channel_id: str) -> None:
    run_id = make_run(workspace_id, contact_id)
    locked(workspace_id, contact_id, prompting(run_id))
    texts = [receive(workspace_id, contact_id, channel_id, text).text for text in ("One", "Two")]

    taken = [locked(workspace_id, contact_id, arrived(run_id)) for _ in range(3)]

    assert [message.text for message in taken if message] == texts
    assert taken[2] is None
    assert one("SELECT count(*) FROM messages WHERE run_id = %s AND direction = 'in'", run_id) == 2


@pytest.mark.usefixtures("conversation_id")
def test_a_message_from_before_the_prompt_is_no_reply(workspace_id: str, contact_id: str, channel_id: str) -> None:
    run_id = make_run(workspace_id, contact_id)
    locked(workspace_id, contact_id, prompting(run_id))
    receive(workspace_id, contact_id, channel_id)

    locked(workspace_id, contact_id, prompting(run_id))

    assert locked(workspace_id, contact_id, arrived(run_id)) is None


@pytest.mark.usefixtures("conversation_id")
def test_without_a_prompt_only_what_comes_later_is_a_reply(workspace_id: str, contact_id: str) -> None:
    run_id = make_run(workspace_id, contact_id)

    assert locked(workspace_id, contact_id, arrived(run_id)) is None


@pytest.mark.usefixtures("conversation_id")
def test_a_clock_that_is_behind_loses_no_reply(workspace_id: str, contact_id: str, channel_id: str) -> None:
    run_id = make_run(workspace_id, contact_id)
    prompted = locked(workspace_id, contact_id, prompting(run_id))
    before = Message.select(Message.id).where(Message.direction == "in").scalar()
    reply = receive(workspace_id, contact_id, channel_id, "Yes")
    # An identifier from a machine whose clock is behind.
    low = before[:-2] + "zz"
    Message.update(id=low).where(Message.id == reply.id).execute()
    assert low < prompted

    taken = locked(workspace_id, contact_id, arrived(run_id))

    assert taken is not None
    assert taken.text == "Yes"


@pytest.mark.usefixtures("conversation_id")
def test_a_prompt_of_the_same_unit_costs_no_look_at_messages(
    workspace_id: str, contact_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = make_run(workspace_id, contact_id)
    monkeypatch.setattr(replies, "rows", None)

    def task(unit: Unit, contact: Contact) -> Message | None:
        prompt(run_id, unit, contact)
        return arrived(run_id)(unit, contact)

    assert locked(workspace_id, contact_id, task) is None


@pytest.mark.usefixtures("conversation_id")
def test_a_reply_taken_by_a_task_that_failed_is_still_there(
    workspace_id: str, contact_id: str, channel_id: str
) -> None:
    run_id = make_run(workspace_id, contact_id)
    locked(workspace_id, contact_id, prompting(run_id))
    reply = receive(workspace_id, contact_id, channel_id)

    def fail(unit: Unit, contact: Contact) -> None:
        undo(unit, lambda: arrived(run_id)(unit, contact))

    locked(workspace_id, contact_id, fail)

    taken = locked(workspace_id, contact_id, arrived(run_id))
    assert taken is not None
    assert taken.id == reply.id


def test_a_run_of_another_conversation_is_never_the_one_that_waits(
    workspace_id: str, contact_id: str, channel_id: str, conversation_id: str
) -> None:
    run_id = make_run(workspace_id, contact_id, waits_for="reply", conversation_id="cnv_other")
    Conversation.update(waiting_run_id=run_id).where(Conversation.id == conversation_id).execute()

    assert receive(workspace_id, contact_id, channel_id).run_id is None
