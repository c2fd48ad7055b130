from __future__ import annotations

from typing import Any

import pytest

from app.domain.automations.steps.base import Done, StepFailed
from app.domain.automations.steps.conversation_steps import NOTE
from app.domain.conversations import notes
from app.errors import Fault
from app.models.notes import Note
from tests.app.domain.automations.steps.moments import begin
from tests.cast import event_kinds, one
from tests.talks import close, receive


def add(run_id: str, text: str, **options: Any) -> Done:
    outcome = begin(run_id, "add_note", {"text": text}, **options)
    assert isinstance(outcome, Done)
    return outcome


def test_the_automation_adds_a_note(workspace_id: str, contact_id: str, channel_id: str, run_id: str) -> None:
    conversation_id = receive(workspace_id, contact_id, channel_id).conversation_id
    told = event_kinds(workspace_id)

    outcome = add(run_id, "Wants {what}.", variables={"what": "a refund"})

    note = Note.get()
    assert (note.text, note.author, note.mentions) == (
        "Wants a refund.",
        {"type": "automation", "id": "aut_1"},
        [],
    )
    assert outcome.output == {"note_id": note.id, "conversation_id": conversation_id}
    assert one("SELECT conversation_id FROM runs") == conversation_id
    assert event_kinds(workspace_id) == told


def test_a_closed_conversation_gets_it_too(workspace_id: str, contact_id: str, channel_id: str, run_id: str) -> None:
    receive(workspace_id, contact_id, channel_id)
    close(workspace_id, contact_id)

    assert add(run_id, "Called.").code is None
    assert one("SELECT status FROM conversations") == "closed"
    assert one("SELECT count(*) FROM notes") == 1


def test_a_conversation_with_all_the_notes_it_can_have_keeps_them(
    workspace_id: str, contact_id: str, channel_id: str, run_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notes, "MOST_NOTES", 1)
    receive(workspace_id, contact_id, channel_id)
    add(run_id, "One")

    outcome = add(run_id, "Two")

    assert (outcome.code, outcome.text) == ("limit", notes.TOO_MANY)
    assert one("SELECT text FROM notes") == "One"


@pytest.mark.parametrize("text", ["  ", "{long}", "a\0b"])
def test_a_text_that_is_no_note_fails_the_run(
    workspace_id: str, contact_id: str, channel_id: str, run_id: str, text: str
) -> None:
    receive(workspace_id, contact_id, channel_id)

    with pytest.raises(StepFailed, match="A note has 1 to 10,000 characters") as failure:
        add(run_id, text, variables={"long": "x" * 10_001})

    assert failure.value.code == "error"


def test_a_text_without_a_template_is_checked_at_once() -> None:
    detail = "A note has 1 to 10,000 characters, none of them U+0000, and more than spaces."

    assert list(NOTE.check({"text": " "}, "/steps/0")) == [Fault("/steps/0/text", detail)]
    assert list(NOTE.check({"text": "{{ contact.email }}"}, "/steps/0")) == []


def test_without_a_conversation_the_run_goes_on(channel_id: str, run_id: str) -> None:
    outcome = add(run_id, "Called.")

    assert (outcome.code, outcome.text) == ("no_channel", "The contact has no conversation.")


def test_a_simulation_adds_nothing(workspace_id: str, contact_id: str, channel_id: str, run_id: str) -> None:
    receive(workspace_id, contact_id, channel_id)

    assert add(run_id, "Called.", is_simulated=True).text == "The note was added."
    assert one("SELECT count(*) FROM notes") == 0
