"""Runs that start another automation, and wait for its result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from app.domain.automations.steps.stop import KIND as STOP
from app.models.runs import Run
from tests.app.domain.automations.talking_runs.steps import log_of
from tests.automations import make_automation
from tests.cast import Api, event_kinds, one

MARK = {"id": "mark", "kind": "set_field", "field": "plan"}


def called(workspace_id: str, *steps: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A step that starts an automation with these steps, and waits for it."""
    automation_id = make_automation(workspace_id, {"steps": steps})
    return {"id": "call", "kind": "start_automation", "automation_id": automation_id, "wait": True, **fields}


def plan() -> Any:
    return one("SELECT custom_fields->>'plan' FROM contacts")


def test_the_run_goes_on_with_the_result_of_the_other(
    workspace_id: str, start: Callable[..., str], work: Callable[[], None]
) -> None:
    stop = {"id": "end", "kind": "stop", "result": {"plan": "{{ trigger.variables.plan | upcase }}", "seats": 3}}
    step = called(workspace_id, stop, variables={"plan": "gold"}, save_as="answer")
    value = "{{ steps.answer.plan }} {{ steps.call.result.seats }} {{ steps.call.status }}"
    run_id = start(step, {**MARK, "value": value})

    work()

    assert (plan(), Run.get_by_id(run_id).status) == ("GOLD 3 completed", "completed")
    assert log_of(run_id) == [("call", "waiting"), ("call", "succeeded"), ("mark", "succeeded")]
    [child] = Run.select().where(Run.parent_id == run_id)
    assert (child.result, child.is_awaited) == ({"plan": "GOLD", "seats": 3}, True)


def test_the_run_waits_for_as_long_as_the_other_does(
    workspace_id: str, start: Callable[..., str], work: Callable[[], None]
) -> None:
    run_id = start(called(workspace_id, {"id": "pause", "kind": "wait", "seconds": 60}), {**MARK, "value": "done"})
    work()
    run = Run.get_by_id(run_id)
    assert (run.status, run.waits_for, run.resume_at) == ("waiting", "run", None)

    Run.update(due_at=run.created_at, resume_at=None).where(Run.parent_id == run_id).execute()
    work()

    assert (plan(), Run.get_by_id(run_id).status) == ("done", "completed")


@pytest.mark.parametrize(
    ("step", "status"),
    [
        ({"id": "reply", "kind": "wait_for_reply"}, "failed"),
        ({"id": "pause", "kind": "wait", "seconds": 60}, "cancelled"),
    ],
)
def test_a_run_that_fails_or_is_cancelled_lets_the_other_go_on(
    api: Api, workspace_id: str, start: Callable[..., str], work: Callable[[], None], step: dict[str, Any], status: str
) -> None:
    run_id = start(called(workspace_id, step), {**MARK, "value": "{{ steps.call.status }}{{ steps.call.result }}"})
    work()
    for child in Run.select().where((Run.parent_id == run_id) & (Run.status == "waiting")):
        api.done(api.post(f"runs/{child.id}/cancel"))
    work()

    assert (plan(), Run.get_by_id(run_id).status) == (status, "completed")
    assert log_of(run_id)[1] == ("call", "failed")


def test_a_run_that_is_cancelled_meanwhile_stays_cancelled(
    api: Api, workspace_id: str, start: Callable[..., str], work: Callable[[], None]
) -> None:
    run_id = start(called(workspace_id, {"id": "pause", "kind": "wait", "seconds": 60}))
    work()
    api.done(api.post(f"runs/{run_id}/cancel"))

    Run.update(due_at=Run.created_at, resume_at=None).where(Run.parent_id == run_id).execute()
    work()

    assert {run.status for run in Run.select()} == {"cancelled", "completed"}


def test_a_run_that_is_cancelled_takes_those_along_that_it_waits_for_if_asked(
    api: Api, workspace_id: str, start: Callable[..., str], work: Callable[[], None]
) -> None:
    pause = {"id": "pause", "kind": "wait", "seconds": 60}
    inner = called(workspace_id, pause, cancel_together=True)
    run_id = start(called(workspace_id, inner, cancel_together=True))
    work()
    assert [run.status for run in Run.select()] == ["waiting"] * 3

    api.done(api.post(f"runs/{run_id}/cancel"))

    assert [(run.status, run.reason) for run in Run.select()] == [("cancelled", "request")] * 3
    assert sorted(event_kinds(workspace_id)).count("automation.cancelled") == 3


def test_an_exit_takes_them_along_too(
    api: Api, workspace_id: str, start: Callable[..., str], work: Callable[[], None]
) -> None:
    step = called(workspace_id, {"id": "pause", "kind": "wait", "seconds": 60}, cancel_together=True)
    automation_id = make_automation(
        workspace_id, {"triggers": [{"event": "contact.created"}], "steps": [step]}, exits=[{"event": "sale.recorded"}]
    )
    contact = api.contact(email="eve@example.com")
    work()

    api.sale(contact["id"])

    found = {run.automation_id: (run.status, run.reason) for run in Run.select()}
    assert found == {automation_id: ("cancelled", "exit"), step["automation_id"]: ("cancelled", "exit")}


def test_one_that_goes_on_leaves_what_it_waited_for_alone(
    api: Api, workspace_id: str, start: Callable[..., str], work: Callable[[], None]
) -> None:
    step = called(workspace_id, {"id": "end", "kind": "stop"}, cancel_together=True)
    run_id = start(step, {"id": "pause", "kind": "wait", "seconds": 60})
    work()

    api.done(api.post(f"runs/{run_id}/cancel"))

    assert {run.automation_id: run.status for run in Run.select()}[step["automation_id"]] == "completed"


def test_a_result_is_an_object_of_at_most_32_kib(start: Callable[..., str], work: Callable[[], None]) -> None:
    run_id = start({"id": "end", "kind": "stop", "result": {"text": "x" * 40_000}})

    work()

    assert Run.get_by_id(run_id).failure["detail"] == "The result is longer than 32 KiB."
    assert STOP.fields["result"]["type"] == "object"


@pytest.mark.parametrize(("field", "value"), [("save_as", "x"), ("cancel_together", True)])
def test_only_a_step_that_waits_has_a_result_to_save_and_another_to_cancel(api: Api, field: str, value: Any) -> None:
    step = {"id": "call", "kind": "start_automation", "automation_id": "aut_01kaj5bd40e6rr3f5y2kq0w9xz", field: value}

    answer = api.post("automations", {"name": "Call", "definition": {"steps": [step]}})

    assert [each["pointer"] for each in answer.get_json(force=True)["errors"]] == [f"/definition/steps/0/{field}"]
