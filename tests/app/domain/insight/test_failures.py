"""Failures are grouped by cause, with how many there were, and how many there are now."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from app import database
from app.domain.insight import failures
from app.domain.insight.failures import Group
from app.domain.insight.trends import WINDOWS
from app.models.endpoints import Endpoint
from tests import sending
from tests.automations import make_automation
from tests.cast import Api
from tests.figures import ago, attempted, counted, failed_job, failed_run
from tests.sending import BROKEN, SILENT

Happen = Callable[[int], None]

pytestmark = pytest.mark.usefixtures("without_lag")


def shown(group: Group) -> tuple[object, ...]:
    return group.subject, group.code, group.status, group.failed, group.final, group.failed_now, group.held_now


def test_a_workspace_without_failures_has_no_groups(api: Api, statements: list[str]) -> None:
    found = failures.groups(api.workspace_id)

    assert (found.groups, found.has_more) == ([], False)
    assert len(statements) == 2


def test_attempts_with_one_cause_are_one_group(endpoint: Endpoint, happen: Happen, without_probing: None) -> None:
    happen(3)
    sending.attempt(endpoint, BROKEN)
    sending.attempt(endpoint, SILENT)
    counted()

    found = failures.groups(endpoint.workspace_id).groups

    assert sorted(map(shown, found)) == [
        (endpoint.id, "status", 500, 3, 0, 0, 0),
        (endpoint.id, "timeout", None, 3, 0, 0, 0),
    ]
    assert {(group.kind, group.subject_name, group.workspace_name, group.goes_on) for group in found} == {
        ("delivery", endpoint.address, "Ours", True)
    }


def test_a_group_has_what_is_failed_and_held_now(api: Api) -> None:
    endpoint_id = api.endpoint()
    attempted(api.workspace_id, endpoint_id, ago(hours=1), "status", 503, times=3)
    attempted(api.workspace_id, endpoint_id, ago(hours=1), "status", 503, times=2, state="held")
    attempted(api.workspace_id, endpoint_id, ago(hours=1), "status", 503, times=4, state="delivered")
    attempted(api.workspace_id, endpoint_id, ago(hours=1), "status", 500, times=1, state="held")
    attempted(api.workspace_id, endpoint_id, ago(hours=1), "timeout", None, times=2)
    attempted(api.workspace_id, endpoint_id, ago(hours=1), times=2)
    counted()

    found = failures.groups(api.workspace_id)

    assert [shown(group) for group in found.groups] == [
        (endpoint_id, "status", 503, 9, 3, 3, 2),
        (endpoint_id, "timeout", None, 2, 2, 2, 0),
        (endpoint_id, "status", 500, 1, 0, 0, 1),
    ]


def test_counting_what_there_is_now_stops_at_a_limit(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failures, "MOST_COUNTED", 2)
    attempted(api.workspace_id, "whe_1", ago(hours=1), "status", 503, times=4)
    counted()

    found = failures.groups(api.workspace_id)

    assert (found.groups[0].failed_now, found.groups[0].failed, found.counted_to) == (3, 4, 2)


def test_many_groups_share_what_is_counted(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failures, "MOST_COUNTED_TOGETHER", 10)
    for number in range(5):
        attempted(api.workspace_id, f"whe_{number}", ago(hours=1), "status", 503, times=4)
    counted()

    found = failures.groups(api.workspace_id)

    assert {group.failed_now for group in found.groups} == {3}
    assert found.counted_to == 2


def test_a_group_has_its_failures_over_time(api: Api) -> None:
    attempted(api.workspace_id, "whe_1", ago(hours=5), "status", 503, times=2)
    attempted(api.workspace_id, "whe_1", ago(hours=1), "status", 503, times=1)
    attempted(api.workspace_id, "whe_1", ago(minutes=20), "status", 503, times=4)
    counted()

    of_day = failures.groups(api.workspace_id, WINDOWS["24h"])
    of_hour = failures.groups(api.workspace_id, WINDOWS["1h"])

    assert len(of_day.groups[0].counts) == len(of_day.steps) == 25
    assert sum(of_day.groups[0].counts) == of_day.groups[0].failed == 7
    assert sum(of_hour.groups[0].counts) == of_hour.groups[0].failed
    assert of_hour.groups[0].failed in (4, 5)  # the window begins at a full minute


@pytest.mark.parametrize("name", WINDOWS)
def test_every_window_has_what_failed_in_it(api: Api, name: str) -> None:
    attempted(api.workspace_id, "whe_1", ago(minutes=3), "status", 503)
    counted()

    [group] = failures.groups(api.workspace_id, WINDOWS[name]).groups

    assert (group.failed, sum(group.counts)) == (1, 1)


def test_what_failed_before_the_window_is_not_shown(api: Api) -> None:
    attempted(api.workspace_id, "whe_1", ago(hours=2), "status", 503)
    counted()

    assert failures.groups(api.workspace_id, WINDOWS["1h"]).groups == []


def test_what_goes_on_comes_first_then_the_largest_or_the_newest(api: Api) -> None:
    attempted(api.workspace_id, "whe_large", ago(hours=3), "status", 503, times=5)
    attempted(api.workspace_id, "whe_small", ago(hours=2), "status", 503, times=1)
    attempted(api.workspace_id, "whe_now", ago(minutes=1), "status", 503, times=2)
    attempted(api.workspace_id, "whe_again", ago(minutes=2), "status", 503, times=3)
    counted()

    largest = [group.subject for group in failures.groups(api.workspace_id).groups]
    newest = [group.subject for group in failures.groups(api.workspace_id, order="newest").groups]

    assert largest == ["whe_again", "whe_now", "whe_large", "whe_small"]
    assert newest == ["whe_now", "whe_again", "whe_small", "whe_large"]


def test_what_failed_at_a_stopped_endpoint_does_not_go_on(api: Api) -> None:
    endpoint_id = api.endpoint()
    attempted(api.workspace_id, endpoint_id, ago(minutes=1), "gone", 410)
    counted()
    assert [group.goes_on for group in failures.groups(api.workspace_id).groups] == [True]

    database.rows("UPDATE endpoints SET state = 'stopped', stopped_at = now()")

    assert [group.goes_on for group in failures.groups(api.workspace_id).groups] == [False]


def test_only_the_groups_that_failed_last_are_looked_at(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failures, "MOST_GROUPS", 2)
    for hours in (1, 2, 3):
        attempted(api.workspace_id, f"whe_{hours}", ago(hours=hours), "status", 503, times=hours)
    counted()

    found = failures.groups(api.workspace_id)

    assert [group.subject for group in found.groups] == ["whe_2", "whe_1"]
    assert found.has_more


def test_failed_writes_and_runs_are_groups_without_a_now(api: Api) -> None:
    automation_id = make_automation(api.workspace_id)
    failed_job(api.workspace_id, "contacts.update", ago(hours=1))
    failed_run(api.workspace_id, automation_id, ago(hours=2))
    counted()

    job, run = failures.groups(api.workspace_id).groups

    assert (job.kind, shown(job)) == ("job", ("contacts.update", "not-found", 404, 1, 1, None, None))
    assert (run.kind, shown(run)) == ("run", (automation_id, "template", None, 1, 1, None, None))
    assert (job.subject_name, run.subject_name) == (None, "Welcome")
    assert failures.groups(api.workspace_id, kind="run").groups == [run]


def test_a_workspace_sees_only_its_own_and_staff_sees_all(api: Api, others: Api) -> None:
    attempted(api.workspace_id, "whe_ours", ago(hours=1), "status", 503)
    attempted(others.workspace_id, "whe_theirs", ago(hours=2), "status", 503)
    counted()

    assert [group.subject for group in failures.groups(api.workspace_id).groups] == ["whe_ours"]
    assert [(group.subject, group.workspace_name) for group in failures.groups().groups] == [
        ("whe_ours", "Ours"),
        ("whe_theirs", "Theirs"),
    ]


def test_stopped_endpoints_are_shown_with_what_is_held_for_them(api: Api, others: Api) -> None:
    endpoint_id, other_id = api.endpoint(), others.endpoint()
    for each in (endpoint_id, other_id):
        database.rows(
            "UPDATE endpoints SET state = 'stopped', stop_reason = 'failures', stopped_at = now() WHERE id = %s",
            (each,),
        )
    attempted(api.workspace_id, endpoint_id, ago(hours=1), None, None, times=3, state="held")

    [ours] = failures.stopped(api.workspace_id)

    assert (ours.endpoint_id, ours.reason, ours.held_now, ours.workspace_name) == (endpoint_id, "failures", 3, "Ours")
    assert [each.endpoint_id for each in failures.stopped()] == [other_id, endpoint_id]


def test_groups_take_four_statements_however_many_there_are(api: Api, statements: list[str]) -> None:
    for number in range(20):
        attempted(api.workspace_id, f"whe_{number}", ago(hours=1), "status", 500 + number % 4, times=2)
    failed_job(api.workspace_id, "contacts.update", ago(hours=1))
    counted()
    statements.clear()

    assert len(failures.groups().groups) == 21
    assert len(statements) == 4
