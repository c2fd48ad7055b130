from __future__ import annotations

from typing import Any

import pytest

from app.database import rows
from app.domain.automations.steps.base import Done, Outcome, StepFailed
from app.lib import ids
from app.models.runs import Run
from tests.app.domain.automations.steps.moments import begin
from tests.automations import deltas, make_automation
from tests.cast import Api, one
from tests.talks import make_run


@pytest.fixture
def other(workspace_id: str) -> str:
    return make_automation(workspace_id, name="Other")


def start(run_id: str, automation_id: str, given: Any = None, **options: Any) -> Outcome:
    fields = {"automation_id": automation_id} | ({} if given is None else {"variables": given})
    return begin(run_id, "start_automation", fields, **options)


def test_a_run_of_the_other_automation_begins_with_its_cause(run_id: str, other: str) -> None:
    rows("UPDATE runs SET depth = 3, trace_id = 'trace-7' WHERE id = %s", (run_id,))
    given = {"who": "{name}", "n": 1, "in": [{"x": "{name}!"}]}

    outcome = start(run_id, other, given, variables={"name": "Ada"})

    begun = Run.get(Run.automation_id == other)
    assert isinstance(outcome, Done)
    assert outcome.output == {"run_id": begun.id} == outcome.saved["step"]
    assert begun.variables == {"who": "Ada", "n": 1, "in": [{"x": "Ada!"}]}
    assert (begun.status, begun.version, begun.depth, begun.parent_id) == ("queued", 1, 4, run_id)
    assert (begun.trace_id, begun.event_id, begun.job_id) == ("trace-7", None, None)
    assert begun.contact_id == Run.get_by_id(run_id).contact_id


def test_an_automation_that_is_paused_is_started(run_id: str, other: str) -> None:
    rows("UPDATE automations SET status = 'paused' WHERE id = %s", (other,))

    assert isinstance(start(run_id, other), Done)


@pytest.mark.parametrize("status", ["draft", "unpublished"])
def test_an_automation_that_is_not_published_fails_the_run(run_id: str, other: str, status: str) -> None:
    rows("UPDATE automations SET status = %s, version = NULL WHERE id = %s", (status, other))

    with pytest.raises(StepFailed) as failed:
        start(run_id, other)

    assert failed.value.code == "gone"


def test_an_automation_of_another_workspace_does_not_exist(run_id: str, others: Api) -> None:
    for automation_id in (ids.new("aut"), make_automation(others.workspace_id)):
        with pytest.raises(StepFailed) as failed:
            start(run_id, automation_id)
        assert failed.value.code == "gone"


@pytest.mark.parametrize(("reentry", "runs"), [(None, 2), ("every", 2), ("after_finish", 1), ("once", 1)])
def test_reentry_may_keep_the_contact_out_and_the_run_goes_on(
    run_id: str, other: str, reentry: str | None, runs: int
) -> None:
    rows("UPDATE automations SET reentry = %s WHERE id = %s", (reentry, other))
    start(run_id, other)

    outcome = start(run_id, other)

    assert one("SELECT count(*) FROM runs WHERE automation_id = %s", other) == runs
    assert deltas().get((other, "refused:reentry"), 0) == 2 - runs
    if runs == 1:
        assert isinstance(outcome, Done)
        assert outcome.code == "reentry"
        assert one("SELECT id FROM runs WHERE automation_id = %s", other) in outcome.text


def test_the_tenth_automation_in_a_row_starts_no_other(run_id: str, other: str) -> None:
    rows("UPDATE runs SET depth = 9 WHERE id = %s", (run_id,))
    assert isinstance(start(run_id, other), Done)
    rows("UPDATE runs SET depth = 10 WHERE id = %s", (run_id,))

    with pytest.raises(StepFailed) as failed:
        start(run_id, other)

    assert failed.value.code == "limit"


@pytest.mark.parametrize(
    "given", [{"a": "{long}"}, {"a": ["{half}"] * 2}, {"a": "{half}", "b": "é" * 9_000}], ids="abc"
)
def test_variables_that_are_too_long_fail_the_run(run_id: str, other: str, given: Any) -> None:
    with pytest.raises(StepFailed) as failed:
        start(run_id, other, given, variables={"long": "x" * 33_000, "half": "x" * 17_000})

    assert failed.value.code == "limit"
    assert one("SELECT count(*) FROM runs WHERE automation_id = %s", other) == 0


def test_a_simulation_only_says_what_it_would_start(workspace_id: str, contact_id: str, other: str) -> None:
    run_id = make_run(workspace_id, contact_id)

    outcome = start(run_id, other, {"a": "b"}, is_simulated=True)

    assert isinstance(outcome, Done)
    assert outcome.input == {"automation_id": other, "variables": {"a": "b"}}
    assert one("SELECT count(*) FROM runs WHERE automation_id = %s", other) == 0
