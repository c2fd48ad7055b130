"""Messages of runs that have to wait or cannot be sent."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from app import mailbox
from app.database import rows
from app.domain.automations import executions
from app.domain.conversations import workspace_changes
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
from tests.cast import Api, all_of, elsewhere, one
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


def always_quiet() -> dict[str, str]:
    """Hours that have begun, and last for some more."""
    hour = one("SELECT extract(hour FROM now() AT TIME ZONE 'UTC')::int")
    return {"from": f"{(hour - 1) % 24:02}:00", "to": f"{(hour + 2) % 24:02}:00"}


def change_workspace(api: Api, **fields: object) -> None:
    job = api.done(api.patch(f"/api/v1/workspaces/{api.workspace_id}", fields))
    assert job["status"] == "succeeded", job


@pytest.mark.usefixtures("contact_id", "channel_id")
def test_a_message_goes_out_at_once_when_its_quiet_hours_are_lifted(
    api: Api, start: Callable[..., str], work: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workspace_changes, "PART", 2)
    change_workspace(api, quiet_hours=always_quiet())
    runs = [start({**ASK, "text": f"{number}"}) for number in range(5)]
    work()
    assert all_of("SELECT waits_for FROM runs") == ["quiet_hours"] * 5
    change_workspace(api, name="Another name")
    assert one("SELECT count(*) FROM runs WHERE due_at IS NOT NULL") == 0

    change_workspace(api, quiet_hours=None)
    work()

    assert {Run.get_by_id(run).status for run in runs} == {"completed"}
    assert sorted(sent()) == ["0", "1", "2", "3", "4"]


@pytest.mark.usefixtures("contact_id", "channel_id")
def test_a_message_waits_on_if_the_new_quiet_hours_hold_it_too(
    api: Api, start: Callable[..., str], work: Callable[[], None]
) -> None:
    change_workspace(api, quiet_hours=always_quiet())
    run_id = start(ASK)
    work()
    hour = int(always_quiet()["to"][:2])

    change_workspace(api, quiet_hours=always_quiet() | {"to": f"{(hour + 1) % 24:02}:00"})
    work()

    run = Run.get_by_id(run_id)
    assert (run.waits_for, run.resume_at.hour) == ("quiet_hours", (hour + 1) % 24)


@pytest.mark.usefixtures("contact_id", "channel_id")
def test_no_message_waits_for_hours_that_are_being_changed(
    api: Api, start: Callable[..., str], work: Callable[[], None]
) -> None:
    change_workspace(api, quiet_hours=always_quiet())
    run_id = start(ASK)

    with elsewhere(lambda: rows("UPDATE workspaces SET quiet_hours = NULL RETURNING id")):
        executions._work_on(mailbox.claim(run_states.MAIL, {api.workspace_id: 1}, 5))
        assert Run.get_by_id(run_id).waits_for is None
    work()

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
