from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from app.database import now
from app.lib.json import timestamp
from tests.app.domain.automations.steps.runs import carried_out, log_of, woken

STOP = {"kind": "stop"}


def test_a_run_waits_for_some_seconds_and_then_goes_on(workspace_id: str, contact_id: str) -> None:
    before = now()

    run = carried_out(workspace_id, contact_id, {"kind": "wait", "seconds": 3600}, STOP)

    assert (run.status, run.step) == ("waiting", "1")
    assert before <= run.resume_at - timedelta(hours=1) <= now()
    assert log_of(run) == [("waiting", f"The run waits until {timestamp(run.resume_at)}.")]
    run = woken(run)
    assert run.status == "completed"
    assert log_of(run)[1:] == [("succeeded", "The wait is over."), ("succeeded", "The run was stopped.")]


@pytest.mark.parametrize(
    "until", ["2099-01-01T12:00:00Z", "2099-01-01t13:00:00.000+01:00", "{{ trigger.variables.at }}"]
)
def test_a_run_waits_until_a_time(workspace_id: str, contact_id: str, until: str) -> None:
    run = carried_out(workspace_id, contact_id, {"kind": "wait", "until": until}, at=" 2099-01-01T12:00:00.000Z ")

    assert run.resume_at == datetime(2099, 1, 1, 12, tzinfo=UTC)


def test_a_run_waits_until_a_time_before_another(workspace_id: str, contact_id: str) -> None:
    until = "{{ trigger.variables.at | add_days: -1 }}"

    run = carried_out(workspace_id, contact_id, {"kind": "wait", "until": until}, at="2099-01-02T12:00:00.000Z")

    assert run.resume_at == datetime(2099, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize("wait", [{"seconds": 0}, {"until": "2001-01-01T12:00:00Z"}])
def test_a_time_that_has_passed_is_not_waited_for(workspace_id: str, contact_id: str, wait: dict[str, str]) -> None:
    run = carried_out(workspace_id, contact_id, {"kind": "wait", **wait})

    assert run.status == "completed"
    [(status, text)] = log_of(run)
    assert status == "succeeded"
    assert text.endswith("had passed.")


@pytest.mark.parametrize(
    ("at", "detail"),
    [
        ("soon", "'soon' is not a time. Give one such as 2026-11-21T10:00:00Z."),
        ("", "'' is not a time. Give one such as 2026-11-21T10:00:00Z."),
        ("2026-11-21T10:00:00", "'2026-11-21T10:00:00' has no time zone. Give a time such as 2026-11-21T10:00:00Z."),
        ("9999-12-31T23:59:59-12:00", "'9999-12-31T23:59:59-12:00' lies too far away."),
    ],
)
def test_a_text_that_is_no_time_fails_the_run(workspace_id: str, contact_id: str, at: str, detail: str) -> None:
    run = carried_out(workspace_id, contact_id, {"kind": "wait", "until": "{{ trigger.variables.at }}"}, at=at)

    assert run.failure == {"code": "error", "detail": detail, "step": "1"}
