"""The statements of a batch do not grow with the age of a run, nor with what else its contact and workspace have."""

from __future__ import annotations

import pytest

from app import mailbox
from app.database import rows
from app.domain.automations import executions
from app.domain.triggers import run_states
from app.lib import ids
from tests.automations import make_automation
from tests.cast import accept, apply, one

pytestmark = pytest.mark.usefixtures("channel_id")

STEPS = [
    {"id": "pause", "kind": "wait", "seconds": 60},
    {"id": "mark", "kind": "add_tag", "tag": "{{ trigger.variables.tag }}"},
    {"id": "name", "kind": "set_field", "field": "first_name", "value": "{{ trigger.variables.tag }}"},
    {"id": "greet", "kind": "send_message", "text": "Hello {{ contact.first_name }}"},
    {"id": "ask", "kind": "wait_for_reply", "timeout_seconds": 60},
]


@pytest.fixture
def automation_id(workspace_id: str) -> str:
    return make_automation(workspace_id, {"steps": STEPS})


def start(workspace_id: str, automation_id: str, contact_id: str) -> str:
    """A run that the contact's first wait has just ended."""
    run_id = ids.new("run")
    payload = {"automation_id": automation_id, "contact_id": contact_id, "variables": {"tag": run_id}}
    accept(workspace_id, "automations.start", payload, run_id)
    apply(workspace_id)
    carry_out(workspace_id)
    rows("UPDATE runs SET due_at = now(), resume_at = NULL WHERE id = %s", (run_id,))
    return run_id


def carry_out(workspace_id: str) -> None:
    executions._work_on(mailbox.claim(run_states.MAIL, {workspace_id: 100}, 5))


def count(statements: list[str], workspace_id: str) -> int:
    """The statements of the batch that is due."""
    batch = mailbox.claim(run_states.MAIL, {workspace_id: 100}, 5)
    assert len(batch) == 1
    before = len(statements)
    executions._work_on(batch)
    assert one("SELECT waits_for FROM runs WHERE id = %s", batch[0].id) == "reply"
    return len(statements) - before


@pytest.fixture
def usual(workspace_id: str, contact_id: str, automation_id: str, statements: list[str]) -> int:
    """The statements for one young run, once everything has been read for the first time."""
    for _ in range(2):
        start(workspace_id, automation_id, contact_id)
        counted = count(statements, workspace_id)
        rows("UPDATE runs SET resume_at = now() + interval '1 hour' WHERE resume_at IS NOT NULL")
    return counted


def test_they_do_not_grow_with_the_age_of_a_run(
    workspace_id: str, contact_id: str, automation_id: str, statements: list[str], usual: int
) -> None:
    run_id = start(workspace_id, automation_id, contact_id)
    rows("UPDATE runs SET taken = 9000, logged = 9000, wait = 4000 WHERE id = %s", (run_id,))
    rows(
        """
        INSERT INTO run_steps (id, workspace_id, run_id, number, step, kind, status, at, detail)
        SELECT id || later, workspace_id, run_id, later, step, kind, status, at, detail
        FROM run_steps CROSS JOIN generate_series(2, 9000) AS later WHERE run_id = %s
        """,
        (run_id,),
    )

    assert count(statements, workspace_id) == usual


def test_they_do_not_grow_with_the_contacts_other_runs(
    workspace_id: str, contact_id: str, automation_id: str, statements: list[str], usual: int
) -> None:
    for _ in range(100):
        start(workspace_id, automation_id, contact_id)
        rows("UPDATE runs SET due_at = NULL, resume_at = now() + interval '1 hour' WHERE due_at IS NOT NULL")
    start(workspace_id, automation_id, contact_id)

    assert count(statements, workspace_id) == usual
    assert one("SELECT count(*) FROM runs WHERE contact_id = %s AND finished_at IS NULL", contact_id) > 100


def test_they_do_not_grow_with_the_automations_that_listen(
    workspace_id: str, contact_id: str, automation_id: str, statements: list[str], usual: int
) -> None:
    never = {"field": "contact.last_name", "is": "equals", "value": "nobody"}
    for number in range(500):
        listened = {"tag": f"t-{number}"} if number % 2 else {"if": never}
        make_automation(workspace_id, {"triggers": [{"event": "tag.added", **listened}]})
    for _ in range(2):  # the first one reads the triggers
        start(workspace_id, automation_id, contact_id)
        counted = count(statements, workspace_id)
        rows("UPDATE runs SET resume_at = now() + interval '1 hour' WHERE resume_at IS NOT NULL")

    assert counted == usual
