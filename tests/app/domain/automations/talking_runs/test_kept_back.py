"""Messages of runs that have to wait or cannot be sent."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from app.database import rows
from app.domain.triggers import run_states
from app.domain.work.units import Unit
from app.lib import json
from app.models.contacts import Contact
from app.models.runs import Run
from tests.app.domain.automations.talking_runs.steps import (
    ASK,
    PAUSE,
    REMIND,
    sent,
    time_passes,
)
from tests.cast import one
from tests.talks import close, locked, make_channel, make_member, receive, write


def test_a_member_holds_the_run_until_the_conversation_is_closed(
    workspace_id: str, contact_id: str, channel_id: str, start: Callable[..., str], work: Callable[[], None]
) -> None:
    receive(workspace_id, contact_id, channel_id)
    write(workspace_id, contact_id, make_member(workspace_id), "I am on it")
    run_id = start(ASK)
    work()
    assert (Run.get_by_id(run_id).status, Run.get_by_id(run_id).waits_for) == ("held", "member")

    close(workspace_id, contact_id)
    work()

    assert Run.get_by_id(run_id).status == "completed"
    assert sent() == ["I am on it", "Well?"]


def test_a_member_holds_the_run_until_it_is_resumed_and_again_with_the_next_message(
    workspace_id: str, contact_id: str, channel_id: str, start: Callable[..., str], work: Callable[[], None]
) -> None:
    receive(workspace_id, contact_id, channel_id)
    member_id = make_member(workspace_id)
    write(workspace_id, contact_id, member_id, "I am on it")
    run_id = start(ASK, PAUSE, REMIND)
    work()

    def resume(unit: Unit, contact: Contact) -> None:
        run_states.wake(unit, unit.get(Run, workspace_id, "id", run_id), is_released=True)

    locked(workspace_id, contact_id, resume)
    work()
    assert sent() == ["I am on it", "Well?"]
    write(workspace_id, contact_id, member_id, "Still here")
    time_passes()
    work()

    assert (Run.get_by_id(run_id).status, Run.get_by_id(run_id).step) == ("held", "remind")


def test_a_run_that_closes_the_conversation_releases_another_of_the_same_batch(
    workspace_id: str, contact_id: str, channel_id: str, start: Callable[..., str], work: Callable[[], None]
) -> None:
    receive(workspace_id, contact_id, channel_id)
    write(workspace_id, contact_id, make_member(workspace_id))
    held = start(ASK)
    start({"id": "close", "kind": "close_conversation"})

    work()

    assert Run.get_by_id(held).status == "completed"


def test_messages_wait_for_the_end_of_quiet_hours_and_are_checked_again(
    workspace_id: str, contact_id: str, channel_id: str, start: Callable[..., str], work: Callable[[], None]
) -> None:
    hour = one("SELECT extract(hour FROM now() AT TIME ZONE 'UTC')::int")
    hours = {"from": f"{(hour - 1) % 24:02}:00", "to": f"{(hour + 2) % 24:02}:00"}
    rows("UPDATE workspaces SET quiet_hours = %s", (json.dumps(hours).decode(),))
    first, second = start(ASK), start({**ASK, "quiet_hours": "ignore"})
    work()
    run = Run.get_by_id(first)
    assert (run.status, run.waits_for) == ("waiting", "quiet_hours")
    assert one("SELECT resume_at > now() + interval '1 hour' FROM runs WHERE id = %s", first)
    assert Run.get_by_id(second).status == "completed"

    time_passes()
    work()
    assert Run.get_by_id(first).waits_for == "quiet_hours"

    rows("UPDATE workspaces SET quiet_hours = NULL")
    rows("UPDATE contacts SET opted_out = true")
    time_passes()
    work()
    assert Run.get_by_id(first).failure["code"] == "opted_out"
    assert sent() == ["Well?"]


@pytest.mark.parametrize(("opted_out", "connected", "code"), [(True, True, "opted_out"), (False, False, "no_channel")])
def test_a_run_that_cannot_send_fails_with_a_reason(
    workspace_id: str,
    start: Callable[..., str],
    work: Callable[[], None],
    opted_out: bool,
    connected: bool,
    code: str,
) -> None:
    rows("UPDATE contacts SET opted_out = %s", (opted_out,))
    make_channel(workspace_id, state="connected" if connected else "disconnected")
    run_id = start(ASK)

    work()

    run = Run.get_by_id(run_id)
    assert (run.status, run.failure["code"], run.failure["step"]) == ("failed", code, "ask")
    assert sent() == []


def test_a_run_fails_at_the_twenty_first_identical_text(
    channel_id: str, start: Callable[..., str], work: Callable[[], None]
) -> None:
    first = start(*({**ASK, "id": f"ask-{number}"} for number in range(12)))
    work()

    second = start(*({**ASK, "id": f"ask-{number}"} for number in range(12)))
    work()

    assert Run.get_by_id(first).status == "completed"
    failed = Run.get_by_id(second)
    assert (failed.failure["code"], failed.failure["step"]) == ("limit", "ask-8")
    assert sent() == ["Well?"] * 20
