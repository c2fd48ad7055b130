from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from app import database
from app.domain.automations.steps.base import Done, StepFailed, Wait
from app.domain.conversations import sending_checks
from app.domain.conversations.messages import MOST_CHARACTERS
from app.domain.conversations.sending_checks import MOST_IDENTICAL
from app.models.conversations import Message
from app.models.runs import Run
from tests.app.domain.automations.steps.moments import begin
from tests.cast import all_of, event_kinds, one
from tests.talks import close, make_channel, make_member, receive, write
from tests.wires import WIRE

HELLO = {"text": "Hello {name}!"}
NOWHERE = ("no_channel", "The contact has not written yet, and no connected channel can reach it first.")
ADA = {"variables": {"name": "Ada"}}


def sent() -> list[str]:
    return all_of("SELECT text FROM messages WHERE direction = 'out' ORDER BY id")


def failing(run_id: str, fields: dict[str, Any] | None = None, **options: Any) -> tuple[str, str]:
    """The code and sentence with which the step fails."""
    with pytest.raises(StepFailed) as failure:
        begin(run_id, "send_message", fields or {"text": "Hello"}, **options)
    return failure.value.code, failure.value.text


def opt_out() -> None:
    database.rows("UPDATE contacts SET opted_out = true")


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Quiet hours last."""
    until = one("SELECT now() + interval '1 hour'")
    monkeypatch.setattr(sending_checks, "quiet_until", lambda unit, contact: until)
    return until


def test_the_message_goes_to_the_contacts_conversation(
    workspace_id: str, contact_id: str, channel_id: str, run_id: str
) -> None:
    conversation_id = receive(workspace_id, contact_id, channel_id).conversation_id

    outcome = begin(run_id, "send_message", HELLO | {"template": {"name": "hi", "values": ["{name}", 1]}}, **ADA)

    [message] = Message.select().where(Message.direction == "out")
    assert (message.conversation_id, message.text, message.status) == (conversation_id, "Hello Ada!", "queued")
    assert message.template == {"name": "hi", "values": ["Ada", 1]}
    assert (message.author, message.run_id) == ({"type": "automation", "id": "aut_1"}, run_id)
    run = Run.get_by_id(run_id)
    assert (run.conversation_id, run.prompted) == (conversation_id, message.id)
    assert isinstance(outcome, Done)
    assert outcome.input == {"text": "Hello Ada!"}
    assert outcome.output == {"message_id": message.id, "conversation_id": conversation_id}


def test_buttons_are_rendered_in_one_line_and_cut(channel_id: str, run_id: str) -> None:
    labels = ("Yes, {name}", " {name}\n\tsays  no ", *["{name} would rather not" + more for more in (", thanks", "?")])
    labels += ("x" * 20,)
    offered = [{"id": f"b:{number}", "label": label} for number, label in enumerate(labels)]

    outcome = begin(run_id, "send_message", HELLO | {"buttons": offered}, **ADA)

    shown = ["Yes, Ada", "Ada says no", "Ada would rather no…", "Ada would rather… 2", "x" * 20]
    buttons = [{"id": f"b:{number}", "label": label} for number, label in enumerate(shown)]
    assert one("SELECT buttons FROM messages") == buttons
    assert isinstance(outcome, Done)
    assert outcome.input == {"text": "Hello Ada!", "buttons": buttons}


@pytest.mark.parametrize(
    ("labels", "sentence"),
    [
        (("Yes", "{empty}"), "The label of the button 'b:1' is empty."),
        (("Ada", "{name}"), "Two buttons have the label 'Ada'."),
    ],
)
@pytest.mark.parametrize("is_simulated", [False, True])
def test_buttons_that_cannot_be_told_apart_fail_the_run(
    channel_id: str, run_id: str, labels: tuple[str, ...], sentence: str, *, is_simulated: bool
) -> None:
    offered = [{"id": f"b:{number}", "label": label} for number, label in enumerate(labels)]
    variables = {"name": "Ada", "empty": " \n"}

    code, text = failing(run_id, {"text": "?", "buttons": offered}, variables=variables, is_simulated=is_simulated)

    assert (code, text[: len(sentence)]) == ("template", sentence)
    assert sent() == []


def test_a_first_message_opens_a_conversation(workspace_id: str, contact_id: str, channel_id: str, run_id: str) -> None:
    begin(run_id, "send_message", HELLO, **ADA)

    assert one("SELECT channel_id FROM conversations") == channel_id
    assert one("SELECT conversation_id FROM runs") == one("SELECT id FROM conversations")
    assert event_kinds(workspace_id)[-1] == "conversation.opened"
    begin(run_id, "send_message", HELLO, **ADA)
    assert one("SELECT count(DISTINCT conversation_id) FROM messages") == 1


def test_the_run_stays_in_its_conversation(workspace_id: str, contact_id: str, channel_id: str, run_id: str) -> None:
    begin(run_id, "send_message", HELLO, **ADA)
    receive(workspace_id, contact_id, make_channel(workspace_id))

    begin(run_id, "send_message", HELLO, **ADA)

    assert one("SELECT count(DISTINCT conversation_id) FROM messages WHERE direction = 'out'") == 1


def test_without_a_channel_the_run_fails(run_id: str) -> None:
    assert failing(run_id) == NOWHERE


@pytest.mark.parametrize("kind", ["web_chat", "telegram"])
def test_where_nobody_has_written_yet_nobody_is_written_to(
    workspace_id: str, channel_id: str, run_id: str, kind: str
) -> None:
    database.rows("UPDATE channels SET kind = %s", (kind,))

    assert failing(run_id) == NOWHERE
    assert one("SELECT count(*) FROM conversations") == 0


def test_a_contact_without_a_phone_number_is_not_reached_first(channel_id: str, run_id: str) -> None:
    database.rows("UPDATE contacts SET phone = NULL")

    assert failing(run_id) == NOWHERE


def test_a_contact_that_opted_out_gets_nothing(channel_id: str, run_id: str) -> None:
    opt_out()

    assert failing(run_id) == ("opted_out", "The contact has opted out of messages.")
    assert sent() == []


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("", "A message without text cannot be sent."),
        ("x" * (MOST_CHARACTERS + 1), "A message has at most 4,096 characters; this one has 4,097."),
    ],
)
def test_a_text_that_cannot_be_sent_fails_the_run(channel_id: str, run_id: str, name: str, sentence: str) -> None:
    assert failing(run_id, {"text": "{name}"}, variables={"name": name}) == ("template", sentence)
    assert one("SELECT count(*) FROM conversations") == 0


# Limits


def test_the_twenty_first_identical_text_fails_the_run(channel_id: str, run_id: str) -> None:
    for _ in range(MOST_IDENTICAL):
        begin(run_id, "send_message", {"text": "Hello"})

    code, sentence = failing(run_id)

    assert (code, sentence) == ("limit", "The contact was sent this text 20 times within five minutes.")
    assert sent() == ["Hello"] * 20
    begin(run_id, "send_message", {"text": "Hello again"})


# Members


def test_a_members_message_holds_the_run_until_the_conversation_is_closed(
    workspace_id: str, contact_id: str, channel_id: str, run_id: str
) -> None:
    conversation_id = receive(workspace_id, contact_id, channel_id).conversation_id
    write(workspace_id, contact_id, make_member(workspace_id), "I am on it")

    outcome = begin(run_id, "send_message", {"text": "Hello"})

    assert isinstance(outcome, Wait)
    assert (outcome.waits_for, outcome.until) == ("member", None)
    assert one("SELECT conversation_id FROM runs") == conversation_id
    assert sent() == ["I am on it"]
    close(workspace_id, contact_id)
    assert isinstance(begin(run_id, "send_message", {"text": "Hello"}), Done)


def test_a_run_that_was_resumed_is_not_held(workspace_id: str, contact_id: str, channel_id: str, run_id: str) -> None:
    receive(workspace_id, contact_id, channel_id)
    write(workspace_id, contact_id, make_member(workspace_id))
    Run.update(is_released=True).execute()

    assert isinstance(begin(run_id, "send_message", {"text": "Hello"}), Done)


# Quiet hours


def test_in_quiet_hours_the_run_waits_for_their_end(channel_id: str, run_id: str, ends: Any) -> None:
    outcome = begin(run_id, "send_message", {"text": "Hello"})

    assert isinstance(outcome, Wait)
    assert (outcome.waits_for, outcome.until) == ("quiet_hours", ends)
    assert sent() == []


def test_a_step_can_ignore_quiet_hours(channel_id: str, run_id: str, ends: Any) -> None:
    assert isinstance(begin(run_id, "send_message", {"text": "Hello", "quiet_hours": "ignore"}), Done)


def test_a_step_can_send_during_quiet_hours(channel_id: str, run_id: str, ends: Any) -> None:
    assert isinstance(begin(run_id, "send_message", {"text": "Hello", "on_quiet": "send"}), Done)
    assert sent() == ["Hello"]


def test_a_step_can_leave_its_message_out_during_quiet_hours(channel_id: str, run_id: str, ends: Any) -> None:
    outcome = begin(run_id, "send_message", {"text": "Hello", "on_quiet": "skip"})

    assert isinstance(outcome, Done)
    assert (outcome.code, outcome.text) == ("quiet_hours", "The message was left out because of quiet hours.")
    assert sent() == []


def test_a_message_that_expires_before_quiet_hours_end_waits_only_until_then(
    channel_id: str, run_id: str, ends: Any
) -> None:
    expires_at = ends - timedelta(minutes=5)

    outcome = begin(run_id, "send_message", {"text": "Hello", "expires_at": expires_at.isoformat()})

    assert isinstance(outcome, Wait)
    assert (outcome.waits_for, outcome.until) == ("quiet_hours", expires_at)


# Channels


def test_a_step_chooses_its_channel(workspace_id: str, contact_id: str, channel_id: str, run_id: str) -> None:
    other = make_channel(workspace_id)
    receive(workspace_id, contact_id, other)

    begin(run_id, "send_message", {"text": "Hello", "channel_id": channel_id})
    begin(run_id, "send_message", {"text": "Still here"})

    assert all_of("SELECT channel_id FROM messages WHERE direction = 'out'") == [channel_id] * 2
    assert one("SELECT count(*) FROM conversations") == 2


@pytest.mark.parametrize("chosen", [{"channel_kind": "telegram"}, {"channel_id": "chn_01kaj5bd40f1x7w3k5j9p2d6gs"}])
def test_without_the_chosen_channel_the_run_fails(
    workspace_id: str, contact_id: str, channel_id: str, run_id: str, chosen: dict[str, str]
) -> None:
    receive(workspace_id, contact_id, channel_id)

    assert failing(run_id, {"text": "Hello", **chosen}) == NOWHERE


# Expiry


def test_an_expired_message_is_not_sent_and_the_run_goes_on(channel_id: str, run_id: str) -> None:
    begun = {"text": "See you soon", "expires_at": "{starts_at}"}

    outcome = begin(run_id, "send_message", begun, variables={"starts_at": "2026-11-01T10:00:00+01:00"})

    assert isinstance(outcome, Done)
    assert (outcome.code, outcome.input) == ("expired", {"expires_at": "2026-11-01T09:00:00.000Z"})
    assert sent() == []


def test_a_message_keeps_the_time_at_which_it_expires(channel_id: str, run_id: str) -> None:
    begin(run_id, "send_message", {"text": "Hello", "expires_at": "2126-11-01T10:00:00Z"})

    assert one("SELECT expires_at::text FROM messages") == "2126-11-01 10:00:00+00"


def test_what_is_no_time_fails_the_run(channel_id: str, run_id: str) -> None:
    code, sentence = failing(run_id, {"text": "Hello", "expires_at": "{at}"}, variables={"at": "soon"})

    assert (code, sentence) == ("error", "'soon' is not a time. Give one such as 2026-11-21T10:00:00Z.")


def test_opting_out_and_members_come_before_quiet_hours(
    workspace_id: str, contact_id: str, channel_id: str, run_id: str, ends: Any
) -> None:
    receive(workspace_id, contact_id, channel_id)
    write(workspace_id, contact_id, make_member(workspace_id))

    outcome = begin(run_id, "send_message", {"text": "Hello"})

    assert isinstance(outcome, Wait)
    assert outcome.waits_for == "member"
    opt_out()
    assert failing(run_id)[0] == "opted_out"


# Simulated


def test_a_simulation_shows_the_text_and_sends_nothing(run_id: str, ends: Any) -> None:
    outcome = begin(run_id, "send_message", HELLO, is_simulated=True, **ADA)

    assert isinstance(outcome, Done)
    assert outcome.input == {"text": "Hello Ada!"}
    assert one("SELECT count(*) FROM messages") == 0
    assert one("SELECT count(*) FROM conversations") == 0


def test_a_simulation_shows_what_would_fail(run_id: str) -> None:
    assert failing(run_id, {"text": " "}, is_simulated=True)[0] == "template"
    opt_out()
    assert failing(run_id, is_simulated=True)[0] == "opted_out"


def test_the_conversation_it_opens_is_with_the_contacts_phone_number(
    workspace_id: str, channel_id: str, run_id: str
) -> None:
    begin(run_id, "send_message", HELLO, **ADA)

    assert one("SELECT peer FROM conversations") == "+4930123456"


def test_a_text_that_is_too_long_for_its_channel_fails_the_run(
    channel_id: str, run_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(WIRE), "most_characters", 3)

    code, sentence = failing(run_id)

    assert (code, sentence) == ("template", "On this channel a message has at most 3 characters; this one has 5.")
